//! The distribution of programs: mostly calls that make sense together, and some that are wrong in
//! one place.

use super::inheriting;
use super::program::{Address, Call, Entry, List, Program, Said, Step, Time, Value, WORDS};
use proptest::collection::vec;
use proptest::prelude::*;
use waitword_testkit::raw::{has_futex2, op::*};

/// Steps of the longest program.
const STEPS: usize = 20;

const SIZE_U32: u32 = 2;

/// What programs may contain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contents {
    /// Unmapped memory where a word, a time or a list is read.
    pub(crate) bad_memory: bool,
    /// Operations with priority inheritance.
    pub(crate) inheriting: bool,
}

pub(crate) fn programs(contents: Contents) -> impl Strategy<Value = Program> {
    let value = if contents.inheriting { inheriting::value() } else { value().boxed() };
    let initial = std::array::from_fn::<_, WORDS, _>(|_| value.clone());
    (initial, vec(step(contents), 1..=STEPS))
        .prop_map(|(initial, steps)| Program { initial, steps })
}

fn value() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![
        6 => 0u32..3,
        1 => Just(u32::MAX),
        1 => Just(1 << 31),
        1 => Just(i32::MAX as u32),
    ]
}

/// Mostly `right`, to which the shrinker also goes.
pub(super) fn mostly<T: Clone + std::fmt::Debug + 'static>(
    right: impl Strategy<Value = T> + 'static,
    wrong: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    prop_oneof![24 => right, 1 => wrong].boxed()
}

fn word() -> impl Strategy<Value = Address> {
    (0..WORDS).prop_map(Address::Word)
}

/// An address from which nothing is read: it is only a key for waiters.
pub(super) fn key() -> BoxedStrategy<Address> {
    let wrong = prop_oneof![
        Just(Address::Null),
        Just(Address::FirstPage),
        Just(Address::Unmapped),
        Just(Address::Kernels),
        (0..WORDS, 1usize..4).prop_map(|(word, bytes)| Address::Into(word, bytes)),
    ];
    mostly(word(), wrong)
}

/// An address that is read.
fn read(contents: Contents) -> BoxedStrategy<Address> {
    let known = prop_oneof![
        Just(Address::Null),
        Just(Address::FirstPage),
        Just(Address::Kernels),
        (0..WORDS, 1usize..4).prop_map(|(word, bytes)| Address::Into(word, bytes)),
    ];
    if contents.bad_memory {
        mostly(word(), prop_oneof![known, Just(Address::Unmapped)])
    } else {
        mostly(word(), known)
    }
}

/// A bad address of a time or a list.
fn nowhere(contents: Contents) -> BoxedStrategy<Address> {
    if contents.bad_memory {
        prop_oneof![Just(Address::FirstPage), Just(Address::Kernels), Just(Address::Unmapped)]
            .boxed()
    } else {
        prop_oneof![Just(Address::FirstPage), Just(Address::Kernels)].boxed()
    }
}

pub(super) fn expected() -> BoxedStrategy<Value> {
    prop_oneof![8 => Just(Value::Current), 1 => value().prop_map(|value| Value::Is(value.into()))]
        .boxed()
}

/// For futex2, whose values are wider than the word.
fn wide_expected() -> BoxedStrategy<Value> {
    mostly(expected(), prop_oneof![Just(1u64 << 32), Just(u64::MAX)].prop_map(Value::Is))
}

fn mask() -> BoxedStrategy<u64> {
    mostly(prop_oneof![2 => Just(u64::from(u32::MAX)), 1 => 1u64..4, 1 => Just(1 << 31)], Just(0))
}

fn wide_mask() -> BoxedStrategy<u64> {
    mostly(mask(), prop_oneof![Just(1u64 << 32), Just(u64::MAX)])
}

fn count() -> BoxedStrategy<i32> {
    prop_oneof![
        6 => 0i32..4,
        2 => Just(i32::MAX),
        1 => prop_oneof![Just(-1), Just(i32::MIN)],
    ]
    .boxed()
}

fn time(contents: Contents) -> BoxedStrategy<Time> {
    let right = prop_oneof![
        8 => Just(Time::None),
        1 => Just(Time::Past),
        1 => Just(Time::Soon),
        3 => Just(Time::Far),
    ];
    let wrong = prop_oneof![
        Just(Time::Askew),
        Just(Time::Wrong(0, 1_000_000_000)),
        Just(Time::Wrong(0, -1)),
        Just(Time::Wrong(-1, 0)),
        Just(Time::Wrong(i64::MIN, 0)),
        Just(Time::Wrong(0, i64::MAX)),
        nowhere(contents).prop_map(Time::At),
    ];
    mostly(right, wrong)
}

fn clock() -> BoxedStrategy<i32> {
    mostly(
        prop_oneof![Just(libc::CLOCK_MONOTONIC), Just(libc::CLOCK_REALTIME)],
        prop_oneof![Just(-1), Just(2), Just(7), Just(i32::MAX)],
    )
}

/// The scope, and now and then bits that no call knows.
fn op_flags() -> BoxedStrategy<i32> {
    mostly(
        prop_oneof![5 => Just(PRIVATE), 1 => Just(0)],
        prop_oneof![Just(PRIVATE | 512), Just(PRIVATE | 1 << 30), Just(PRIVATE | CLOCK_REALTIME)],
    )
}

fn flags2() -> BoxedStrategy<u32> {
    let private = SIZE_U32 | PRIVATE as u32;
    mostly(
        prop_oneof![5 => Just(private), 1 => Just(SIZE_U32)],
        prop_oneof![
            Just(private | 16),
            Just(private | 64),
            Just(private | 256),
            Just(private | 1 << 31)
        ],
    )
}

/// Flags that must be 0.
fn no_flags() -> BoxedStrategy<u32> {
    mostly(Just(0), prop_oneof![Just(1), Just(1u32 << 31)])
}

/// FUTEX_OP: a change and a comparison, packed.
fn packed() -> BoxedStrategy<Value> {
    let twelve = || prop_oneof![4 => 0u64..4, 1 => Just(0xfffu64), 1 => 0u64..0x1000];
    let op = mostly(prop_oneof![0u64..5, 8u64..13], 0u64..16);
    let cmp = mostly(0u64..6, 0u64..16);
    (op, cmp, twelve(), twelve())
        .prop_map(|(op, cmp, operand, comparand)| {
            Value::Is(op << 28 | cmp << 24 | operand << 12 | comparand)
        })
        .boxed()
}

pub(super) fn any_number() -> BoxedStrategy<Value> {
    (0u64..3).prop_map(Value::Is).boxed()
}

fn counted() -> BoxedStrategy<Value> {
    count().prop_map(|count| Value::Is(count as u32 as u64)).boxed()
}

/// futex(2), from its arguments.
pub(super) fn futex(
    op: impl Strategy<Value = i32> + 'static,
    word: BoxedStrategy<Address>,
    val: BoxedStrategy<Value>,
    time: BoxedStrategy<Time>,
    second: BoxedStrategy<Address>,
    val3: BoxedStrategy<Value>,
) -> BoxedStrategy<Call> {
    (op, op_flags(), word, val, time, second, val3)
        .prop_map(|(op, flags, word, val, time, second, val3)| Call::Futex {
            op: op | flags,
            word,
            val,
            time,
            second,
            val3,
        })
        .boxed()
}

pub(super) fn number_for_time() -> BoxedStrategy<Time> {
    count().prop_map(Time::Number).boxed()
}

fn masked() -> BoxedStrategy<Value> {
    mask().prop_map(Value::Is).boxed()
}

fn unread_time(contents: Contents) -> BoxedStrategy<Time> {
    mostly(Just(Time::None), nowhere(contents).prop_map(Time::At))
}

fn wait(contents: Contents) -> BoxedStrategy<Call> {
    let timed = prop_oneof![4 => Just(WAIT), 1 => Just(WAIT | CLOCK_REALTIME)];
    let masked_wait = prop_oneof![3 => Just(WAIT_BITSET), 1 => Just(WAIT_BITSET | CLOCK_REALTIME)];
    let plain = futex(
        mostly(Just(WAIT), timed),
        read(contents),
        expected(),
        time(contents),
        key(),
        any_number(),
    );
    let bitset = futex(masked_wait, read(contents), expected(), time(contents), key(), masked());
    if !has_futex2() {
        return prop_oneof![plain, bitset].boxed();
    }
    let wait2 = (read(contents), wide_expected(), wide_mask(), flags2(), time(contents), clock())
        .prop_map(|(word, val, mask, flags, time, clock)| Call::Futex2Wait {
            word,
            val,
            mask,
            flags,
            time,
            clock,
        });
    let waitv = (list(contents, 1..=3), no_flags(), time(contents), clock())
        .prop_map(|(list, flags, time, clock)| Call::Futex2Waitv { list, flags, time, clock });
    prop_oneof![2 => plain, 2 => bitset, 3 => wait2, 3 => waitv].boxed()
}

fn list(contents: Contents, length: std::ops::RangeInclusive<usize>) -> BoxedStrategy<List> {
    let entry = (read(contents), wide_expected(), flags2(), mostly(Just(0), Just(1)))
        .prop_map(|(word, val, flags, reserved)| Entry { word, val, flags, reserved });
    let lie = prop_oneof![
        Just(Said::Odd),
        prop_oneof![Just(0), Just(129), Just(u32::MAX)].prop_map(Said::Length),
        Just(Said::Start(Address::Null)),
        nowhere(contents).prop_map(Said::Start),
    ];
    (vec(entry, length), mostly(Just(Said::Truth), lie))
        .prop_map(|(entries, said)| List { entries, said })
        .boxed()
}

fn other(contents: Contents) -> BoxedStrategy<Call> {
    let wake = futex(Just(WAKE), key(), counted(), unread_time(contents), key(), any_number());
    let bitset = futex(Just(WAKE_BITSET), key(), counted(), unread_time(contents), key(), masked());
    let requeue = futex(Just(REQUEUE), key(), counted(), number_for_time(), key(), any_number());
    let cmp_requeue =
        futex(Just(CMP_REQUEUE), read(contents), counted(), number_for_time(), key(), expected());
    let change = if contents.inheriting { inheriting::change() } else { packed() };
    let wake_op = futex(Just(WAKE_OP), key(), counted(), number_for_time(), read(contents), change);
    let unknown = prop_oneof![Just(2), Just(14), Just(15), Just(127)];
    let unknown = futex(unknown, key(), counted(), unread_time(contents), key(), any_number());
    if !has_futex2() {
        return prop_oneof![
            6 => wake,
            4 => bitset,
            4 => requeue,
            6 => cmp_requeue,
            6 => wake_op,
            1 => unknown
        ]
        .boxed();
    }
    let wake2 = (key(), wide_mask(), count(), flags2())
        .prop_map(|(word, mask, count, flags)| Call::Futex2Wake { word, mask, count, flags });
    let requeue2 = (list(contents, 2..=2), no_flags(), count(), count())
        .prop_map(|(list, flags, wake, moved)| Call::Futex2Requeue { list, flags, wake, moved });
    prop_oneof![
        6 => wake,
        4 => bitset,
        4 => requeue,
        6 => cmp_requeue,
        6 => wake_op,
        1 => unknown,
        6 => wake2,
        6 => requeue2
    ]
    .boxed()
}

/// Without an unmapped word where the result, or which of two errors comes first, is documented to
/// be undefined.
fn defined(mut call: Call, contents: Contents) -> Call {
    let is_private = |flags: u32| flags & PRIVATE as u32 != 0;
    let mapped = |word: &mut Address| {
        if *word == Address::Unmapped {
            *word = Address::Null;
        }
    };
    match &mut call {
        // A shared word must be mapped, even if no waiter is to be woken.
        Call::Futex2Wake { word, flags, .. } if !contents.bad_memory && !is_private(*flags) => {
            mapped(word);
        }
        // The kernel does not have private words beside shared ones, and they are compared last.
        Call::Futex2Waitv { list, .. } | Call::Futex2Requeue { list, .. } => {
            let entries = &mut list.entries;
            let private = entries.iter().filter(|entry| is_private(entry.flags));
            if (1..entries.len()).contains(&private.count()) {
                entries.iter_mut().for_each(|entry| mapped(&mut entry.word));
            }
        }
        _ => {}
    }
    call
}

fn step(contents: Contents) -> BoxedStrategy<Step> {
    let wait = wait(contents).prop_map(move |call| defined(call, contents));
    let other = other(contents).prop_map(move |call| defined(call, contents));
    let value = if contents.inheriting { inheriting::value() } else { value().boxed() };
    let plain = prop_oneof![
        10 => (any::<u8>(), wait).prop_map(|(thread, call)| Step::Wait(thread, call)),
        10 => other.prop_map(Step::Do),
        1 => (0..WORDS, value).prop_map(|(word, value)| Step::Store(word, value)),
        1 => any::<u8>().prop_map(Step::Interrupt),
    ]
    .boxed();
    if contents.inheriting { prop_oneof![plain, inheriting::step()].boxed() } else { plain }
}
