//! The kernel's futex for loom and shuttle: the sleepers of all words in one queue, behind one
//! mutex and one condition variable. They are distinguished by their words, and counted and moved
//! as in the kernel. There are no spurious wake-ups.

use super::clock::{Clock, Deadline};
use super::moving_time::Time;
use super::tid::tid;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::checker::sync::{Condvar, Mutex, MutexGuard};
use crate::sys::Errno;
use core::num::NonZeroU32;

pub(crate) const ANY_BIT: NonZeroU32 = NonZeroU32::MAX;

/// Sleeps while `word` holds `expected`. Every deadline has already passed.
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    bits: NonZeroU32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    word_wait(word, expected, bits.get(), deadline)
}

/// Wakes up to `count` threads that sleep on the word with one of `bits`.
pub(crate) fn wake(word: &AtomicU32, count: u32, bits: NonZeroU32) {
    let _ = shared_wake(KernelWord::address(word), count, bits.get());
}

/// Adds `change` to `second` and wakes all sleepers of both words.
pub(crate) fn wake_two(first: &AtomicU32, second: &AtomicU32, change: u32) -> bool {
    second.fetch_add(change, Ordering::SeqCst);
    wake(first, u32::MAX, ANY_BIT);
    wake(second, u32::MAX, ANY_BIT);
    true
}

/// A word of one of our own locks that threads sleep on in the kernel: 32 bits, or half of 64 (the
/// low one).
pub(crate) trait KernelWord {
    /// The address that identifies the word.
    fn address(word: *const Self) -> *mut u32;

    fn value(&self) -> u32;
}

impl KernelWord for AtomicU32 {
    fn address(word: *const Self) -> *mut u32 {
        word.cast_mut().cast()
    }

    fn value(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
}

impl KernelWord for AtomicU64 {
    fn address(word: *const Self) -> *mut u32 {
        word.cast_mut().cast()
    }

    fn value(&self) -> u32 {
        self.load(Ordering::Relaxed) as u32
    }
}

/// Sleepers on words of locks. They are distinguished, counted and moved as in the kernel.
struct Sleepers {
    queue: Vec<Sleeper>,
    next_ticket: usize,
}

#[derive(Clone, Copy)]
struct Sleeper {
    word: usize,
    bits: u32,
    ticket: usize,
}

impl Sleepers {
    /// Takes out, in order, up to `count` threads that sleep on `word` with one of `bits`.
    fn take(&mut self, word: *mut u32, count: u32, bits: u32) -> Vec<Sleeper> {
        let mut taken = Vec::new();
        self.queue.retain(|sleeper| {
            let meant = sleeper.word == word.addr() && sleeper.bits & bits != 0;
            let takes = meant && taken.len() < count as usize;
            if takes {
                taken.push(*sleeper);
            }
            !takes
        });
        taken
    }
}

crate::checker::lazy_static! {
    static ref SLEEPERS: (Mutex<Sleepers>, Condvar) = {
        let sleepers = Sleepers { queue: Vec::new(), next_ticket: 0 };
        (Mutex::new(sleepers), Condvar::new())
    };
}

/// Sleeps until another thread takes this one out of the queue, or until `is_interrupted`.
fn sleep(
    mut sleepers: MutexGuard<'_, Sleepers>,
    word: *mut u32,
    bits: u32,
    is_interrupted: impl Fn() -> bool,
) -> Result<(), Errno> {
    let ticket = sleepers.next_ticket;
    sleepers.next_ticket += 1;
    let word = word.addr();
    sleepers.queue.push(Sleeper { word, bits, ticket });
    loop {
        let mine = |sleeper: &Sleeper| sleeper.ticket == ticket;
        let Some(place) = sleepers.queue.iter().position(mine) else {
            return Ok(());
        };
        if is_interrupted() {
            sleepers.queue.remove(place);
            return Err(Errno::INTR);
        }
        sleepers = SLEEPERS.1.wait(sleepers).unwrap();
    }
}

/// Sleeps while `word` is `expected`. Every deadline has already passed.
pub(crate) fn word_wait<W: KernelWord>(
    word: &W,
    expected: u32,
    bits: u32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let sleepers = SLEEPERS.0.lock().unwrap();
    if word.value() != expected {
        return Err(Errno::AGAIN);
    }
    if deadline.is_some() {
        return Err(Errno::TIMEDOUT);
    }
    sleep(sleepers, W::address(word), bits, || false)
}

/// [`word_wait`] until a time, or until [`signal`] sends the thread a signal. The word exists.
pub(crate) fn wait_by_time(
    word: *const AtomicU32,
    expected: u32,
    (time, _): (&Time, Clock),
) -> Result<(), Errno> {
    let me = tid();
    // A handler that runs before the call does not end it.
    handles_signal(me);
    // Read before the thread is queued, as in the kernel.
    let is_never = time.is_never();
    let sleepers = SLEEPERS.0.lock().unwrap();
    // SAFETY: no model frees the word.
    if unsafe { &*word }.value() != expected {
        return Err(Errno::AGAIN);
    }
    if !is_never {
        return Err(Errno::TIMEDOUT);
    }
    sleep(sleepers, KernelWord::address(word), u32::MAX, || handles_signal(me))
}

/// Wakes up to `count` threads that sleep on the word; returns how many.
pub(crate) fn wake_by_address(word: *const AtomicU32, count: u32) -> usize {
    shared_wake(KernelWord::address(word), count, u32::MAX).unwrap_or(0)
}

crate::checker::lazy_static! {
    /// The thread that a signal has been sent to and that has not run the handler yet; 0: none.
    static ref SIGNALLED: Mutex<u32> = Mutex::new(0);
}

/// Sends a signal to a thread. Its handler ends only [`wait_by_time`].
pub(crate) fn signal(tid: u32) {
    let _sleepers = SLEEPERS.0.lock().unwrap();
    *SIGNALLED.lock().unwrap() = tid;
    SLEEPERS.1.notify_all();
}

/// Runs the handler if a signal has arrived; returns whether one had.
fn handles_signal(tid: u32) -> bool {
    let mut signalled = SIGNALLED.lock().unwrap();
    let is_for_me = *signalled == tid;
    if is_for_me {
        *signalled = 0;
    }
    is_for_me
}

pub(crate) fn word_waitv<W: KernelWord>(
    word: &W,
    expected: u32,
    deadline: &Deadline,
) -> Result<(), Errno> {
    word_wait(word, expected, u32::MAX, Some(deadline))
}

/// Wakes, in order, up to `count` threads that sleep on the word with one of `bits`; returns how
/// many.
pub(crate) fn shared_wake(word: *mut u32, count: u32, bits: u32) -> Result<usize, Errno> {
    let woken = SLEEPERS.0.lock().unwrap().take(word, count, bits).len();
    if woken > 0 {
        SLEEPERS.1.notify_all();
    }
    Ok(woken)
}

/// Wakes up to `wake` threads that sleep on `from`, and moves up to `moved` of the rest to `to`;
/// returns the sum of both.
pub(crate) fn word_requeue<W: KernelWord, V: KernelWord>(
    from: &W,
    to: &V,
    wake: u32,
    moved: u32,
    expected: Option<u32>,
) -> Result<usize, Errno> {
    let mut sleepers = SLEEPERS.0.lock().unwrap();
    if expected.is_some_and(|expected| from.value() != expected) {
        return Err(Errno::AGAIN);
    }
    let woken = sleepers.take(W::address(from), wake, u32::MAX).len();
    if W::address(from) == V::address(to) {
        // The kernel counts them, and leaves them in their places.
        let from = W::address(from).addr();
        let there = sleepers.queue.iter().filter(|sleeper| sleeper.word == from).count();
        if woken > 0 {
            SLEEPERS.1.notify_all();
        }
        return Ok(woken + there.min(moved as usize));
    }
    let mut on_their_way = sleepers.take(W::address(from), moved, u32::MAX);
    for sleeper in &mut on_their_way {
        sleeper.word = V::address(to).addr();
    }
    let moved = on_their_way.len();
    sleepers.queue.extend(on_their_way);
    if woken > 0 {
        SLEEPERS.1.notify_all();
    }
    Ok(woken + moved)
}

/// The kernel's `handle_futex_death`, for words without priority inheritance.
pub(crate) fn owner_dies(word: &AtomicU32, owner: u32, pending: bool) {
    const WAITERS: u32 = 0x8000_0000;
    const OWNER_DIED: u32 = 0x4000_0000;
    const TID_MASK: u32 = 0x3fff_ffff;
    let wake_one = || _ = shared_wake(KernelWord::address(word), 1, u32::MAX);
    loop {
        // A read-modify-write, to see the newest value.
        let seen = word.fetch_or(0, Ordering::AcqRel);
        if pending && seen & TID_MASK == 0 {
            return wake_one();
        }
        if seen & TID_MASK != owner {
            return;
        }
        let left = seen & WAITERS | OWNER_DIED;
        let changed = word.compare_exchange(seen, left, Ordering::AcqRel, Ordering::Relaxed);
        if changed.is_ok() {
            if seen & WAITERS != 0 {
                wake_one();
            }
            return;
        }
    }
}
