//! Requeue, cmp_requeue and wake_op from one process on waiters of others.

use crate::{SharedFile, answer_of, cannot_wait, waited};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use waitword::{Cmp, Error, Futex, Op, WakeOp};
use waitword_testkit::{Atomic, Child, for_every_width, watch};

const FIRST: usize = 64;
const SECOND: usize = 128;

/// A process that waits for the word there, whatever it holds.
fn waiter<A: Atomic>(shared: &SharedFile, offset: usize) -> Child {
    let child = shared.other_process(|there| {
        let word = there.word::<A>(offset);
        waited(Futex::shared(word).wait(A::value(word.get())))
    });
    child.until_asleep();
    child
}

#[test]
fn waiters_of_whole_words_are_moved() {
    let _watchdog = watch();
    moved::<AtomicU64, AtomicU64>();
    moved::<AtomicU64, AtomicU32>();
    moved::<AtomicU32, AtomicU64>();
    moved::<AtomicU32, AtomicU32>();
}

fn moved<A: Atomic, B: Atomic>() {
    if cannot_wait::<A>() || cannot_wait::<B>() {
        return;
    }
    let shared = SharedFile::new();
    let from = Futex::shared(shared.word::<A>(FIRST));
    let to = Futex::shared(shared.word::<B>(SECOND));
    let [woken, first, second, left] = [(); 4].map(|()| waiter::<A>(&shared, FIRST));
    assert_eq!(from.requeue(to, 1, 2), Ok(3));
    assert_eq!(answer_of(woken), Ok(0));
    assert_eq!(to.wake(1), Ok(1));
    assert_eq!(answer_of(first), Ok(0));
    assert_eq!(from.wake(usize::MAX), Ok(1));
    assert_eq!(answer_of(left), Ok(0));
    assert_eq!(to.wake(usize::MAX), Ok(1));
    assert_eq!(answer_of(second), Ok(0));
}

#[test]
fn a_moved_waiter_does_not_hear_its_old_word() {
    let _watchdog = watch();
    if cannot_wait::<AtomicU64>() {
        return;
    }
    let shared = SharedFile::new();
    let from = shared.word::<AtomicU64>(FIRST);
    let to = Futex::shared(shared.word::<AtomicU64>(SECOND));
    let child = waiter::<AtomicU64>(&shared, FIRST);
    assert_eq!(Futex::shared(from).requeue(to, 0, 1), Ok(1));
    // Of its old word, the entry on the high half is left.
    from.add(1 << 32);
    assert_eq!(Futex::shared(from).wake(usize::MAX), Ok(0));
    assert_eq!(to.wake(usize::MAX), Ok(1));
    assert_eq!(answer_of(child), Ok(0));
}

#[test]
fn requeue_compares_the_whole_word() {
    let _watchdog = watch();
    for_every_width!(requeue_compares_at());
}

fn requeue_compares_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let word = shared.word::<A>(FIRST);
    word.set(A::TOP_BIT | 1);
    let (from, to) = (Futex::shared(word), Futex::shared(shared.word::<A>(SECOND)));
    let child = waiter::<A>(&shared, FIRST);
    for wrong in [1, A::TOP_BIT, 0, A::ALL_BITS] {
        let answer = from.cmp_requeue(A::value(wrong), to, 1, 1);
        assert_eq!(answer, Err(Error::Mismatch), "{wrong:#x}, {} bits", A::BITS);
    }
    let right = A::value(A::TOP_BIT | 1);
    assert_eq!(from.cmp_requeue(right, to, 0, 0), Ok(0));
    assert_eq!(from.cmp_requeue(right, to, 1, 1), Ok(1));
    assert_eq!(answer_of(child), Ok(0));
}

#[test]
fn waiters_of_narrow_words_are_woken_instead() {
    let _watchdog = watch();
    woken_instead::<AtomicU8, AtomicU8>();
    woken_instead::<AtomicU16, AtomicU16>();
    woken_instead::<AtomicU8, AtomicU64>();
    woken_instead::<AtomicU32, AtomicU16>();
    woken_instead::<AtomicU64, AtomicU8>();
}

/// Where the kernel would move neighbours too, the waiters that should be moved are woken, and
/// counted as before.
fn woken_instead<A: Atomic, B: Atomic>() {
    if cannot_wait::<A>() || cannot_wait::<B>() {
        return;
    }
    let shared = SharedFile::new();
    let from = Futex::shared(shared.word::<A>(FIRST));
    let to = Futex::shared(shared.word::<B>(SECOND));
    let neighbour = waiter::<A>(&shared, FIRST + size_of::<A>());
    let [woken, moved, left] = [(); 3].map(|()| waiter::<A>(&shared, FIRST));
    assert_eq!(from.requeue(to, 1, 1), Ok(2));
    assert_eq!(answer_of(woken), Ok(0));
    assert_eq!(answer_of(moved), Ok(0));
    assert_eq!(to.wake(usize::MAX), Ok(0));
    assert_eq!(from.cmp_requeue(A::value(0), to, 0, usize::MAX), Ok(1));
    assert_eq!(answer_of(left), Ok(0));
    let beside = Futex::shared(shared.word::<A>(FIRST + size_of::<A>()));
    assert_eq!(beside.wake(usize::MAX), Ok(1));
    assert_eq!(answer_of(neighbour), Ok(0));
}

#[test]
fn wake_op_at_every_pair_of_widths() {
    let _watchdog = watch();
    for_every_width!(wake_op_from());
}

fn wake_op_from<A: Atomic>() {
    wake_op::<A, AtomicU8>();
    wake_op::<A, AtomicU16>();
    wake_op::<A, AtomicU32>();
    wake_op::<A, AtomicU64>();
}

fn wake_op<A: Atomic, B: Atomic>() {
    if cannot_wait::<A>() || cannot_wait::<B>() {
        return;
    }
    let shared = SharedFile::new();
    let first = Futex::shared(shared.word::<A>(FIRST));
    let word = shared.word::<B>(SECOND);
    let second = Futex::shared(word);
    let at_first = [(); 2].map(|()| waiter::<A>(&shared, FIRST));
    let at_second = [(); 3].map(|()| waiter::<B>(&shared, SECOND));
    let top = B::value(B::TOP_BIT);

    // The comparison is false: only the first word's waiters are woken, and for a count of 0 not
    // even those.
    let unless_zero = WakeOp::new(Op::Add, B::value(1)).when(Cmp::Ne, B::value(0));
    assert_eq!(first.wake_op(0, second, usize::MAX, unless_zero), Ok(0));
    assert_eq!(word.get(), 1);
    // True now, but counts of 0 wake no waiter.
    assert_eq!(first.wake_op(0, second, 0, unless_zero), Ok(0));
    assert_eq!(word.get(), 2);
    let [one, another] = at_first;
    assert_eq!(first.wake_op(1, second, 0, unless_zero), Ok(1));
    assert_eq!(answer_of(one), Ok(0));
    assert_eq!(word.get(), 3);

    // A constant that does not fit into 12 bits (but does as a shift), and one more waiter on each
    // side.
    let set_top = WakeOp::new(Op::Set, top).when(Cmp::Eq, B::value(3));
    assert_eq!(first.wake_op(1, second, 1, set_top), Ok(2));
    assert_eq!(word.get(), B::TOP_BIT);
    assert_eq!(answer_of(another), Ok(0));
    let [one, another, last] = at_second;
    assert_eq!(answer_of(one), Ok(0));

    // A constant and a comparand that fit into neither; 8 bits have none.
    let wide = B::ALL_BITS / 2 - 5;
    let negative = WakeOp::new(Op::Xor, B::value(wide)).when(Cmp::Le, B::value(wide));
    assert_eq!(first.wake_op(usize::MAX, second, 1, negative), Ok(1));
    assert_eq!(word.get(), B::TOP_BIT ^ wide);
    assert_eq!(answer_of(another), Ok(0));
    let negative = WakeOp::new(Op::AndNot, top).when(Cmp::Gt, B::value(wide));
    assert_eq!(first.wake_op(usize::MAX, second, usize::MAX, negative), Ok(0));
    assert_eq!(word.get(), wide);

    // Without a condition.
    let always = WakeOp::new(Op::Or, B::value(1));
    assert_eq!(first.wake_op(usize::MAX, second, usize::MAX, always), Ok(1));
    assert_eq!(answer_of(last), Ok(0));
}

#[test]
fn wake_op_on_one_word_twice() {
    let _watchdog = watch();
    for_every_width!(wake_op_on_one_word_at());
}

fn wake_op_on_one_word_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let futex = Futex::shared(shared.word::<A>(FIRST));
    let waiters = [(); 3].map(|()| waiter::<A>(&shared, FIRST));
    assert_eq!(futex.wake_op(1, futex, 1, WakeOp::new(Op::Set, A::value(9))), Ok(2));
    let [first, second, third] = waiters;
    assert_eq!(answer_of(first), Ok(0));
    assert_eq!(answer_of(second), Ok(0));
    assert_eq!(futex.wake(usize::MAX), Ok(1));
    assert_eq!(answer_of(third), Ok(0));
}
