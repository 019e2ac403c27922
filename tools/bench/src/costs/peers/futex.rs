//! The futex itself: calls that find nothing to do, a wait, wake and requeue. The kernel's futex,
//! and ours at each width.

use super::rows::{Lock, Row};
use crate::costs::scene::{Apart, asleep, long_ago, on_stage, once_asleep, put};
use crate::ops::{BenchWord, Called, Futexes, Kernel, Ours};

/// Futexes without state.
pub(super) trait Fixed: Futexes {
    /// The only value.
    const THEY: Self;
}

impl Fixed for Called<Kernel<true>> {
    const THEY: Self = Called(Kernel);
}

impl<W: BenchWord> Fixed for Called<Ours<W, true>>
where
    W::Value: waitword::Word,
{
    const THEY: Self = Called(Ours::new());
}

/// The operations of a futex.
pub(super) fn futex<F: Fixed>() -> Lock {
    #[rustfmt::skip]
    let rows: [Row; 8] = [
        ("wait, the value differs", || _ = F::THEY.wait(&words::<F>().0, 1), new_words::<F>),
        ("wait, sleeps", sleep::<F>, || {
            new_words::<F>();
            once_asleep(wake_one::<F>);
            sleep::<F>();
            long_ago();
            once_asleep(wake_one::<F>);
        }),
        ("wake, no waiters", wake_one::<F>, new_words::<F>),
        ("wake, 1 sleeps", wake_one::<F>, sleeping::<F, 1>),
        ("wake, 64 sleep", || _ = F::THEY.wake(&words::<F>().0, 64), sleeping::<F, 64>),
        ("requeue, no waiters", move_all::<F>, new_words::<F>),
        ("requeue, 64 sleep, all but one are moved", move_all::<F>, sleeping::<F, 64>),
        ("wake_op, no waiters", || {
            F::THEY.wake_op(&words::<F>().0, &words::<F>().1);
        }, new_words::<F>),
    ];
    Lock { name: F::THEY.name(), rows: rows.into() }
}

/// Two words.
type Words<F> = (Apart<<F as Futexes>::Word>, Apart<<F as Futexes>::Word>);

fn new_words<F: Fixed>() {
    put::<Words<F>>(Default::default());
    wake_one::<F>();
}

#[inline(always)]
fn words<F: Fixed>() -> &'static Words<F> {
    // SAFETY: every row of a futex puts them there first.
    unsafe { on_stage::<Words<F>>() }
}

#[inline(always)]
fn wake_one<F: Fixed>() {
    F::THEY.wake(&words::<F>().0, 1);
}

#[inline(always)]
fn move_all<F: Fixed>() {
    F::THEY.requeue(&words::<F>().0, &words::<F>().1, 1, 63);
}

#[inline(always)]
fn sleep<F: Fixed>() {
    F::THEY.wait(&words::<F>().0, 0);
}

fn sleeping<F: Fixed, const SLEEPERS: usize>() {
    new_words::<F>();
    asleep(SLEEPERS, sleep::<F>);
}
