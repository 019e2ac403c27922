//! Random programs: what a few threads do on a few words, whatever the width of the words.
//!
//! Values are chosen so that a program means the same at every width. Every value is a small signed
//! number whose top bit may be flipped. For such values, setting, adding, the bit operations and
//! signed comparison behave the same at 8 and at 64 bits. [`Width::of_32`] converts such a value
//! from 32 bits to another width.

use proptest::collection::vec;
use proptest::prelude::*;

/// Words of a program.
pub(crate) const WORDS: usize = 4;
/// Threads that wait.
pub(crate) const THREADS: usize = 6;
/// Steps of the longest program. 24 additions of 2 do not leave 7 bits.
const STEPS: usize = 24;

/// How wide the words of a run are, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width(pub(crate) u32);

impl Width {
    pub(crate) const ALL: [Self; 4] = [Self(8), Self(16), Self(32), Self(64)];

    pub(crate) fn bytes(self) -> usize {
        self.0 as usize / 8
    }

    pub(crate) fn all_ones(self) -> u64 {
        u64::MAX >> (64 - self.0)
    }

    pub(crate) fn top_bit(self) -> u64 {
        1 << (self.0 - 1)
    }

    /// The value that corresponds to `value` of a 32-bit run.
    pub(crate) fn of_32(self, value: u64) -> u64 {
        let low = (value as u32) << 1;
        let small = i64::from(low as i32 >> 1);
        assert!((-64..64).contains(&small), "{value:#x} does not fit into 8 bits");
        let low_bits = small as u64 & (self.all_ones() >> 1);
        let top_bit = if value >> 31 & 1 == 1 { self.top_bit() } else { 0 };
        low_bits | top_bit
    }
}

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Small(u8),
    AllOnes,
    TopBit,
}

impl Value {
    pub(crate) fn at(self, width: Width) -> u64 {
        match self {
            Value::Small(small) => small.into(),
            Value::AllOnes => width.all_ones(),
            Value::TopBit => width.top_bit(),
        }
    }
}

/// The value that a word is expected to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    /// Its current value.
    Current,
    Exactly(Value),
}

/// Which waiters a wake is meant for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mask {
    Any,
    /// Bit 7 means the word's highest bit.
    Bits(u8),
}

impl Mask {
    pub(crate) fn at(self, width: Width) -> u64 {
        match self {
            Mask::Any => width.all_ones(),
            Mask::Bits(bits) => {
                let top_bit = if bits & 0x80 != 0 { width.top_bit() } else { 0 };
                u64::from(bits & 0x7f) | top_bit
            }
        }
    }
}

/// How long a wait may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Forever,
    /// Has already passed.
    Past(Clock),
    /// Passes before the next step.
    Soon(Clock),
    /// Does not pass.
    Far(Clock),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Monotonic,
    Realtime,
}

/// The change of a `wake_op`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// `FUTEX_OP_*`: set, add, or, andn, xor.
    pub(crate) op: u32,
    pub(crate) operand: Operand,
    /// `FUTEX_OP_CMP_*`: eq, ne, lt, le, gt, ge.
    pub(crate) cmp: u32,
    pub(crate) comparand: Value,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    Value(Value),
    /// 1 << this, given as it is, or increased by the width, which means the same.
    Shift {
        by: Shift,
        once_around: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shift {
    By(u8),
    /// To the top bit.
    ToTop,
}

impl Operand {
    /// `FUTEX_OP_ARG_SHIFT` or 0, and the operand.
    pub(crate) fn at(self, width: Width) -> (u32, u64) {
        match self {
            Operand::Value(value) => (0, value.at(width)),
            Operand::Shift { by, once_around } => {
                let shift = match by {
                    Shift::By(by) => by.into(),
                    Shift::ToTop => width.0 - 1,
                };
                let around = if once_around { width.0 } else { 0 };
                (8, (shift + around).into())
            }
        }
    }

    /// The value that the word is combined with, at 32 bits.
    fn meaning(self) -> Value {
        match self {
            Operand::Value(value) => value,
            Operand::Shift { by: Shift::By(by), .. } => Value::Small(1 << by),
            Operand::Shift { by: Shift::ToTop, .. } => Value::TopBit,
        }
    }

    pub(crate) fn meaning_at(self, width: Width) -> u64 {
        self.meaning().at(width)
    }
}

/// A step of a program. Words by number; `worker` selects one of the free threads.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Wait {
        worker: u8,
        word: usize,
        expect: Expect,
        mask: Mask,
        limit: Limit,
    },
    WaitAny {
        worker: u8,
        entries: Vec<(usize, Expect)>,
        limit: Limit,
    },
    Wake {
        word: usize,
        count: i32,
        mask: Mask,
    },
    Requeue {
        from: usize,
        to: usize,
        wake: i32,
        moved: i32,
        expect: Option<Expect>,
    },
    WakeOp {
        first: usize,
        count: i32,
        second: usize,
        second_count: i32,
        change: Change,
    },
    Store {
        word: usize,
        value: Value,
    },
    /// A signal to one of the waiters.
    Interrupt {
        waiting: u8,
    },
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) initial: Vec<Value>,
    pub(crate) steps: Vec<Step>,
    /// Words side by side; otherwise far from each other.
    pub(crate) dense: bool,
    /// Where they lie.
    pub(crate) place: u16,
}

/// What programs may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    pub(crate) masks: bool,
    pub(crate) wait_any: bool,
    pub(crate) requeue: bool,
    pub(crate) wake_op: bool,
    pub(crate) dense: bool,
}

impl Contents {
    pub(crate) const ALL: Self =
        Self { masks: true, wait_any: true, requeue: true, wake_op: true, dense: true };
}

pub(crate) fn programs(contents: Contents) -> impl Strategy<Value = Program> {
    let dense = if contents.dense { any::<bool>().boxed() } else { Just(false).boxed() };
    (vec(value(), WORDS), vec(step(contents), 1..=STEPS), dense, any::<u16>())
        .prop_map(|(initial, steps, dense, place)| Program { initial, steps, dense, place })
}

fn word() -> impl Strategy<Value = usize> + Clone {
    0..WORDS
}

fn value() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        4 => (0u8..3).prop_map(Value::Small),
        1 => Just(Value::AllOnes),
        1 => Just(Value::TopBit),
    ]
}

/// A constant that fits into WAKE_OP's 12 bits.
fn operand_value() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![4 => (0u8..3).prop_map(Value::Small), 1 => Just(Value::AllOnes)]
}

fn expect() -> impl Strategy<Value = Expect> + Clone {
    prop_oneof![6 => Just(Expect::Current), 1 => value().prop_map(Expect::Exactly)]
}

fn mask(contents: Contents) -> BoxedStrategy<Mask> {
    if contents.masks {
        prop_oneof![
            2 => Just(Mask::Any),
            1 => (1u8..=255).prop_map(Mask::Bits),
            2 => (0u8..8).prop_map(|bit| Mask::Bits(1 << bit)),
        ]
        .boxed()
    } else {
        Just(Mask::Any).boxed()
    }
}

fn count() -> impl Strategy<Value = i32> + Clone {
    prop_oneof![6 => 0i32..4, 1 => Just(i32::MAX)]
}

fn limit() -> impl Strategy<Value = Limit> + Clone {
    let clock = prop_oneof![Just(Clock::Monotonic), Just(Clock::Realtime)];
    prop_oneof![
        10 => Just(Limit::Forever),
        1 => clock.clone().prop_map(Limit::Past),
        1 => clock.clone().prop_map(Limit::Soon),
        3 => clock.prop_map(Limit::Far),
    ]
}

fn change() -> impl Strategy<Value = Change> + Clone {
    let shift = prop_oneof![(0u8..2).prop_map(Shift::By), Just(Shift::ToTop)];
    let operand = prop_oneof![
        2 => operand_value().prop_map(Operand::Value),
        1 => (shift, any::<bool>())
            .prop_map(|(by, once_around)| Operand::Shift { by, once_around }),
    ];
    (0u32..5, operand, 0u32..6, operand_value()).prop_map(|(op, operand, cmp, comparand)| Change {
        op,
        operand,
        cmp,
        comparand,
    })
}

fn step(contents: Contents) -> BoxedStrategy<Step> {
    let wait = (any::<u8>(), word(), expect(), mask(contents), limit()).prop_map(
        |(worker, word, expect, mask, limit)| Step::Wait { worker, word, expect, mask, limit },
    );
    let wait_any = (any::<u8>(), vec((word(), expect()), 1..=3), limit())
        .prop_map(|(worker, entries, limit)| Step::WaitAny { worker, entries, limit });
    let wake = (word(), count(), mask(contents)).prop_map(|(word, count, mask)| Step::Wake {
        word,
        count,
        mask,
    });
    let requeue = (word(), word(), count(), count(), prop::option::of(expect())).prop_map(
        |(from, to, wake, moved, expect)| Step::Requeue { from, to, wake, moved, expect },
    );
    let wake_op = (word(), count(), word(), count(), change()).prop_map(
        |(first, count, second, second_count, change)| Step::WakeOp {
            first,
            count,
            second,
            second_count,
            change,
        },
    );
    let store = (word(), value()).prop_map(|(word, value)| Step::Store { word, value });
    let interrupt = any::<u8>().prop_map(|waiting| Step::Interrupt { waiting });
    let weight = |wanted: bool, weight: u32| if wanted { weight } else { 0 };
    proptest::strategy::Union::new_weighted(
        [
            (10, wait.boxed()),
            (weight(contents.wait_any, 4), wait_any.boxed()),
            (4, wake.boxed()),
            (weight(contents.requeue, 4), requeue.boxed()),
            (weight(contents.wake_op, 3), wake_op.boxed()),
            (1, store.boxed()),
            (1, interrupt.boxed()),
        ]
        .into_iter()
        .filter(|&(weight, _)| weight > 0)
        .collect(),
    )
    .boxed()
}
