//! Words that name the NUMA node of their waiters: `NumaWord`, and futex2's NUMA flag.
//!
//! In the library the node is part of what identifies a private word. A wake through the
//! [`NumaWord`] does not find a thread that waits on its plain word, or the other way round. (The
//! kernel's answer there depends on how words are hashed, so it is not compared.)

use libc::{EAGAIN, EFAULT, EINVAL, ETIMEDOUT};
use std::sync::Arc;
use std::time::Duration;
use waitword::raw::{NUMA, SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64, Waitv};
use waitword::{Deadline, Error, Futex, NumaWord, Op, WakeOp, probe, wait_any};
use waitword_testkit::{
    Answer, Atomic, Crew, cases,
    cases::{Calls, Case, PAST, Time, VALUE, check},
    for_every_width, watch,
};

/// A word that holds `value`, with this node, -1 or another.
fn pair<A: Atomic>(value: u64, node: u64) -> NumaWord<A> {
    let pair = NumaWord::<A>::default();
    pair.value.set(value);
    pair.node.set(node);
    pair
}

fn past() -> Deadline {
    Deadline::after(Duration::ZERO)
}

#[test]
fn minus_one_becomes_the_callers_node() {
    let _watchdog = watch();
    for_every_width!(minus_one_becomes_the_callers_node_at());
}

fn minus_one_becomes_the_callers_node_at<A: Atomic>() {
    type Call<A> = fn(&NumaWord<A>);
    let calls: [Call<A>; 6] = [
        |pair| assert_eq!(Futex::numa(pair).wake(1), Ok(0)),
        |pair| assert_eq!(Futex::numa(pair).wait(A::value(1)), Err(Error::Mismatch)),
        |pair| assert_eq!(Futex::numa(pair).wait_until(A::value(0), past()), Err(Error::TimedOut)),
        |pair| assert_eq!(Futex::numa(pair).requeue(Futex::numa(pair), 1, 1), Ok(0)),
        |pair| {
            let set = WakeOp::new(Op::Set, A::value(5));
            assert_eq!(Futex::numa(pair).wake_op(1, Futex::numa(pair), 1, set), Ok(0));
        },
        |pair| {
            let words = [Futex::numa(pair).expecting(A::value(0))];
            assert_eq!(wait_any(&words, Some(past())), Err(Error::TimedOut));
        },
    ];
    for call in calls {
        let pair = pair::<A>(0, A::ALL_BITS);
        call(&pair);
        let node = pair.node.get();
        assert_ne!(node, A::ALL_BITS, "{} bits", A::BITS);
        assert!(node < 64, "node {node}");
        // It keeps that node.
        call(&pair);
        assert_eq!(pair.node.get(), node);
    }
}

#[test]
fn a_node_that_does_not_exist_is_refused() {
    let _watchdog = watch();
    for_every_width!(a_node_that_does_not_exist_is_refused_at());
}

fn a_node_that_does_not_exist_is_refused_at<A: Atomic>() {
    let good = pair::<A>(0, A::ALL_BITS);
    // No machine has this node.
    let bad = pair::<A>(0, A::ALL_BITS - 1);
    let (good, bad_futex) = (Futex::numa(&good), Futex::numa(&bad));
    let set = WakeOp::new(Op::Set, A::value(5));
    assert_eq!(bad_futex.wait(A::value(1)), Err(Error::NoSuchNode));
    assert_eq!(bad_futex.wake(1), Err(Error::NoSuchNode));
    assert_eq!(bad_futex.requeue(good, 1, 1), Err(Error::NoSuchNode));
    assert_eq!(good.requeue(bad_futex, 1, 1), Err(Error::NoSuchNode));
    assert_eq!(bad_futex.cmp_requeue(A::value(1), good, 1, 1), Err(Error::NoSuchNode));
    assert_eq!(good.wake_op(1, bad_futex, 1, set), Err(Error::NoSuchNode));
    let words = [good.expecting(A::value(0)), bad_futex.expecting(A::value(0))];
    assert_eq!(wait_any(&words, Some(past())), Err(Error::NoSuchNode));
    assert_eq!((bad.value.get(), bad.node.get()), (0, A::ALL_BITS - 1));
}

#[test]
fn the_node_is_part_of_the_word() {
    let _watchdog = watch();
    for_every_width!(the_node_is_part_of_the_word_at());
}

fn the_node_is_part_of_the_word_at<A: Atomic>() {
    waitword::spin::set_budget(Duration::ZERO);
    let mut crew = Crew::new(2);
    let word = Arc::new(pair::<A>(0, A::ALL_BITS));
    let on_node = Futex::numa(&word);
    let plain = Futex::private(&word.value);
    let waits: [fn(&NumaWord<A>) -> Answer; 2] = [
        |word| answer_of(Futex::numa(word).wait(A::value(0))),
        |word| answer_of(Futex::private(&word.value).wait(A::value(0))),
    ];
    for (worker, wait) in waits.into_iter().enumerate() {
        let word = word.clone();
        crew.order(worker, 1, move || wait(&word));
        assert_eq!(crew.settle(), []);
    }
    assert_eq!(on_node.wake(usize::MAX), Ok(1));
    assert_eq!(crew.settle(), [(0, Ok(0))]);
    assert_eq!(on_node.wake(usize::MAX), Ok(0));
    assert_eq!(plain.wake(usize::MAX), Ok(1));
    assert_eq!(crew.settle(), [(1, Ok(0))]);
}

fn answer_of(waited: Result<(), Error>) -> Answer {
    waited.map(|()| 0).map_err(Error::raw_os_error)
}

#[test]
fn waiters_move_between_plain_words_and_nodes() {
    let _watchdog = watch();
    for_every_width!(waiters_move_at());
}

fn waiters_move_at<A: Atomic>() {
    waitword::spin::set_budget(Duration::ZERO);
    let mut crew = Crew::new(2);
    let word = Arc::new(pair::<A>(0, A::ALL_BITS));
    let (on_node, plain) = (Futex::numa(&word), Futex::private(&word.value));
    for worker in [0, 1] {
        let word = word.clone();
        crew.order(worker, 1, move || answer_of(Futex::private(&word.value).wait(A::value(0))));
        assert_eq!(crew.settle(), []);
    }
    // The same address, but another place, so they do move.
    assert_eq!(plain.requeue(on_node, 0, 2), Ok(2));
    assert_eq!(plain.wake(usize::MAX), Ok(0));
    assert_eq!(on_node.wake(1), Ok(1));
    assert_eq!(crew.settle(), [(0, Ok(0))]);
    assert_eq!(on_node.cmp_requeue(A::value(0), plain, 0, 1), Ok(1));
    assert_eq!(on_node.wake(usize::MAX), Ok(0));
    assert_eq!(plain.wake(usize::MAX), Ok(1));
    assert_eq!(crew.settle(), [(1, Ok(0))]);
}

/// A process's nodes may be changed while it runs (`cpuset(7)`), and the next table is then on
/// other nodes.
///
/// Must be alone in its process, on a machine with nodes 0 to 3, with `WAITWORD_CPUSET` naming a
/// directory of cgroup v2 whose `cpuset.mems` it may set: `scripts/qemu numa` provides that.
#[test]
#[ignore = "needs four nodes and a cpuset of its own: scripts/qemu numa"]
fn a_waiter_is_found_though_the_nodes_have_changed() {
    let group = std::path::PathBuf::from(std::env::var("WAITWORD_CPUSET").unwrap());
    let allow = |nodes: &str| std::fs::write(group.join("cpuset.mems"), nodes).unwrap();
    std::fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    waitword::spin::set_budget(Duration::ZERO);
    for number in [1u32, 2, 3] {
        allow("0-3");
        let _ = waitword::table::reserve(waitword::table::buckets() * 2);
        let mut crew = Crew::new(1);
        let word = Arc::new(pair::<std::sync::atomic::AtomicU32>(0, number.into()));
        let waits = word.clone();
        crew.order(0, 1, move || answer_of(Futex::numa(&waits).wait(0)));
        assert_eq!(crew.settle(), []);
        allow("1-3");
        waitword::table::reserve(waitword::table::buckets() * 2).unwrap();
        assert_eq!(Futex::numa(&word).wake(1), Ok(1), "node {number}");
        assert_eq!(crew.settle(), [(0, Ok(0))]);
    }
}

const SIZES: &[u32] = &[SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64];

/// The word `number`, with this value in the node word after it.
fn with_node(c: &Calls, number: usize, node: u64) -> usize {
    let word = c.word(number);
    c.set(word + c.bytes(), node);
    word
}

fn node_of(c: &Calls, number: usize) -> u64 {
    c.get(c.word(number) + c.bytes())
}

fn flags(c: &Calls) -> u32 {
    c.flags() | NUMA
}

fn wait(c: &Calls, word: usize, value: u64, time: Time) -> Answer {
    c.wait(word, value, c.all_bits(), flags(c), time, libc::CLOCK_MONOTONIC)
}

fn entry(c: &Calls, word: usize, val: u64) -> Waitv {
    Waitv { flags: flags(c), ..c.entry(word, val) }
}

#[test]
fn through_futex2() {
    let _watchdog = watch();
    // Shared words on nodes are the kernel's own, which knows only 32 bits, or (before 6.16) none.
    let cases = cases().into_iter().map(|case| {
        case.only(|c| {
            let by_kernel = c.bits() == 32 && probe::futex2_numa().is_there();
            by_kernel || c.private != 0 && !c.are_the_kernel_s()
        })
    });
    check(cases.collect(), SIZES);
}

const OTHER: u64 = VALUE + 1;

fn cases() -> Vec<Case> {
    cases! { c:
        "wait, equal and past" => Err(ETIMEDOUT),
            wait(c, with_node(c, 0, c.all_bits()), VALUE, PAST);
        "wait, mismatch, and -1 is replaced all the same" => Err(EAGAIN), {
            let answer = wait(c, with_node(c, 0, c.all_bits()), OTHER, Time::None);
            assert_ne!(node_of(c, 0), c.all_bits());
            answer
        };
        "wake replaces -1" => Ok(0), {
            let answer = c.wake(with_node(c, 0, c.all_bits()), 1, 1, flags(c));
            assert_ne!(node_of(c, 0), c.all_bits());
            answer
        };
        "a bad mask before -1 is replaced" => Err(EINVAL), {
            let answer = c.wake(with_node(c, 0, c.all_bits()), 0, 1, flags(c));
            assert_eq!(node_of(c, 0), c.all_bits());
            answer
        };
        "wait, no such node before mismatch" => Err(EINVAL),
            wait(c, with_node(c, 0, c.all_bits() - 1), OTHER, Time::None);
        "wake, no such node" => Err(EINVAL),
            c.wake(with_node(c, 0, c.all_bits() - 1), 1, 1, flags(c));
        "wait, aligned as a word, not as a pair" => Err(EINVAL),
            wait(c, c.word(0) + c.bytes(), OTHER, Time::None);
        "wake, aligned as a word, not as a pair" => Err(EINVAL),
            c.wake(c.word(0) + c.bytes(), 1, 1, flags(c));
        "wait, null" => Err(EFAULT), wait(c, 0, VALUE, PAST);
        "wake, null" => Err(EFAULT), c.wake(0, 1, 1, flags(c));
        "requeue replaces both" => Ok(0), {
            let [from, to] = [0, 1].map(|word| with_node(c, word, c.all_bits()));
            let answer = c.requeue(&[entry(c, from, VALUE), entry(c, to, 0)], 0, 1, 1);
            assert_ne!(node_of(c, 0), c.all_bits());
            assert_ne!(node_of(c, 1), c.all_bits());
            answer
        };
        "requeue, no such node for the second, before mismatch" => Err(EINVAL), {
            let from = with_node(c, 0, c.all_bits());
            let to = with_node(c, 1, c.all_bits() - 1);
            c.requeue(&[entry(c, from, OTHER), entry(c, to, 0)], 0, 1, 1)
        };
        "waitv" => Err(ETIMEDOUT), {
            let words = [0, 1].map(|word| entry(c, with_node(c, word, c.all_bits()), VALUE));
            c.waitv(&words, 2, 0, PAST, libc::CLOCK_MONOTONIC)
        };
        "waitv, no such node" => Err(EINVAL), {
            let good = entry(c, with_node(c, 0, c.all_bits()), VALUE);
            let bad = entry(c, with_node(c, 1, c.all_bits() - 1), VALUE);
            c.waitv(&[good, bad], 2, 0, PAST, libc::CLOCK_MONOTONIC)
        };
        "waitv, no such node before the mismatch of another" => Err(EINVAL), {
            let good = entry(c, with_node(c, 0, c.all_bits()), OTHER);
            let bad = entry(c, with_node(c, 1, c.all_bits() - 1), VALUE);
            c.waitv(&[good, bad], 2, 0, PAST, libc::CLOCK_MONOTONIC)
        };
    }
}
