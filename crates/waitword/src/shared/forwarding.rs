//! Forwarding wake-ups that a waiter for many words may have taken from a neighbouring word.
//!
//! `futex_waitv` has no bitset. A thread that waits with it for an 8 or 16-bit word is queued in
//! the kernel on the 32 bits around the word, with all bits set. Such a **narrow waiter** may
//! receive a wake-up that was meant for another lane (`narrow.rs`), and it cannot know. So that no
//! wake-up is lost, it *forwards* the wake-up: it wakes all waiters on these 32 bits.
//!
//! Those may be narrow waiters too. They cannot know either that they were woken by a forwarded
//! wake-up. If each of them forwarded it again at once, waiters in loops would wake each other as
//! fast as they can: sixteen of them some 400,000 times a second, after one wake. Nor can the
//! wake-up be marked for them: they may be in any process that maps the word, and its four bytes
//! belong to the program. So forwarded wake-ups are **rate-limited**:
//!
//! - If the wake-up is *confirmed*, by a change of the 32 bits or by another word that was woken, a
//!   narrow waiter forwards it at once.
//! - Otherwise a narrow waiter forwards only after a pause since its process's last forward:
//!   [`PER_WOKEN`] for each waiter that it woke, [`LONGEST`] at most. If it is too soon, the narrow
//!   waiter **defers** the forward: it goes back to sleep in the same queue until the forward is
//!   due or the wake-up is confirmed.
//! - One deferring narrow waiter in a process is enough. A narrow waiter that is woken while
//!   another one defers leaves its forward to that one and ends its wait.
//!
//! A *place*, found by a hash of the address, records which narrow waiter defers:
//!
//! ```text
//!   a narrow waiter                          the one that defers
//!                                            occupies the place
//!   takes a wake-up                          sleeps
//!   is the place occupied?                   due: leaves the place
//!   yes: ends its wait                       wakes all
//! ```
//!
//! Invariants:
//!
//! 1. Every wake-up that a narrow waiter takes is followed by a forward that begins after it: its
//!    own, or that of another narrow waiter that it saw in the place. The latter leaves the place
//!    before it wakes. If its forward had come before the wake that woke the first narrow waiter,
//!    the first would have seen the place empty. For both calls take the kernel's queue lock, which
//!    orders the forward (and the store that left the place) before that wake (and what the woken
//!    narrow waiter reads). If the forward found no waiter and so took no lock, the kernel's full
//!    barriers do the same: one between a waker's store and its look for waiters, and one between a
//!    waiter's queueing and whatever it does after that.
//! 2. A forward wakes all lanes, including the forwarder's own: narrow waiters that left their
//!    forward to it may be queued for other lanes.
//! 3. A narrow waiter that is seen in a place belongs to this process, and is awake or sure to
//!    wake: the place records the address and the fork generation (a child has a copy of the place,
//!    but not the thread).
//!
//! `models/passing.pml` models this protocol.

use super::narrow::Lane;
use crate::sys::clock::{self, Clock, Deadline};
use crate::sys::futex;
use crate::sys::generation::generation;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use core::time::Duration;

/// To wake one waiter and have it wait again takes some tens of microseconds. At this rate, that
/// comes to a few hundredths of a CPU.
const PER_WOKEN: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);

/// Indexed by a hash of the address of the 32 bits.
static PLACES: [Place; 1 << PLACES_BITS] = [const { Place::new() }; 1 << PLACES_BITS];
const PLACES_BITS: u32 = 8;

struct Place {
    /// The [`NarrowWaiter::mark`] of the one that defers a forward. 0: none.
    taken: AtomicU64,
    /// The earliest time of the next unconfirmed forward, in nanoseconds of the monotonic clock.
    /// Shared by all words that map to this place.
    due: AtomicU64,
}

impl Place {
    const fn new() -> Self {
        Self { taken: AtomicU64::new(0), due: AtomicU64::new(0) }
    }
}

/// A thread that waits by `futex_waitv` in the queue of the 32 bits around a narrow word. If it
/// still defers a forward when it is dropped, it forwards then.
#[derive(Debug)]
pub(crate) struct NarrowWaiter {
    lane: Lane,
    /// The 32 bits as seen before the thread queued.
    around: u32,
    /// Until when it defers a forward, if it does.
    defers_until: Option<Deadline>,
}

impl NarrowWaiter {
    pub(crate) fn new(lane: Lane) -> Self {
        Self { lane, around: 0, defers_until: None }
    }

    /// Reads the 32 bits and extracts the word's own part of them. Call it before queueing.
    ///
    /// # Safety
    /// The 32 bits are mapped.
    pub(crate) unsafe fn look(&mut self) -> (u32, u64) {
        // SAFETY: the 32 bits are mapped, by this function's contract.
        self.around = unsafe { self.lane.load_around() };
        (self.around, self.lane.value(self.around))
    }

    /// The address that it queues on.
    pub(crate) fn address(&self) -> u64 {
        self.lane.around.expose_provenance() as u64
    }

    /// Whether the 32 bits have changed since [`look`](Self::look).
    ///
    /// # Safety
    /// They are mapped.
    pub(crate) unsafe fn has_changed(&self) -> bool {
        // SAFETY: the 32 bits are mapped, by this function's contract.
        self.around != unsafe { self.lane.load_around() }
    }

    fn place(&self) -> &'static Place {
        let hash = (self.address() / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &PLACES[(hash >> (u64::BITS - PLACES_BITS)) as usize]
    }

    /// The address, which uses at most 57 bits, and the low byte of the fork generation, which is
    /// never zero.
    fn mark(&self) -> u64 {
        ((self.address() / 4) << 8) | u64::from(generation() as u8)
    }

    /// The earliest time of the next unconfirmed forward.
    fn due(&self) -> Deadline {
        // Relaxed: only a time; nothing else depends on it.
        let due = Duration::from_nanos(self.place().due.load(Relaxed));
        Deadline::at(Clock::Monotonic, due)
    }

    /// Until when it defers a forward, if it does.
    pub(crate) fn defers_until(&self) -> Option<Deadline> {
        self.defers_until
    }

    /// After an unconfirmed wake-up: forwards it, leaves that to another narrow waiter, or defers
    /// it.
    pub(crate) fn forward_or_defer(&mut self) {
        if self.defers_until.is_some() {
            return;
        }
        let due = self.due();
        if due.has_passed() {
            return self.forward();
        }
        let (place, mark) = (self.place(), self.mark());
        // Free, or left from an ancestor process.
        let is_free = |taken: u64| taken as u8 != mark as u8;
        let take = |taken| is_free(taken).then_some(mark);
        // Acquire if the place is not ours: invariant 1. A narrow waiter that finds us in the place
        // relies only on our leaving it.
        match place.taken.fetch_update(Relaxed, Acquire, take) {
            Ok(_) => self.defers_until = Some(due),
            Err(taken) if taken == mark => {}
            // A narrow waiter of this process occupies the place, but for another address.
            Err(_) => self.forward(),
        }
    }

    /// Wakes all waiters on these 32 bits.
    pub(crate) fn forward(&mut self) {
        let place = self.place();
        if self.defers_until.take().is_some() {
            // SeqCst: ordered before the wake, together with the kernel's barrier; see invariant 1.
            place.taken.store(0, SeqCst);
        }
        // The kernel has just accepted this address.
        let woken = futex::shared_wake(self.lane.around, i32::MAX as u32, u32::MAX).unwrap_or(0);
        let pause = PER_WOKEN.saturating_mul(woken as u32).min(LONGEST);
        let due = clock::now(Clock::Monotonic) + pause;
        // Relaxed: as above.
        place.due.store(due.as_nanos() as u64, Relaxed);
    }
}

impl Drop for NarrowWaiter {
    fn drop(&mut self) {
        if self.defers_until.is_some() {
            self.forward();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::word::{Size, WordPtr};

    /// A narrow waiter at the word's place, right after a forward.
    fn waiter(word: &u32) -> NarrowWaiter {
        let word = WordPtr { address: (&raw const *word).cast_mut().cast(), size: Size::U8 };
        let waiter = NarrowWaiter::new(Lane::of(word));
        let due = clock::now(Clock::Monotonic) + Duration::from_secs(60);
        let place = waiter.place();
        place.due.store(due.as_nanos() as u64, Relaxed);
        waiter
    }

    fn has_forwarded(waiter: &NarrowWaiter) -> bool {
        waiter.due().has_passed()
    }

    #[test]
    fn one_waiter_defers_and_the_others_leave_their_forwards_to_it() {
        let word = Box::new(0);
        let [mut first, mut second, mut third] = [(); 3].map(|()| waiter(&word));
        first.forward_or_defer();
        second.forward_or_defer();
        assert!(first.defers_until().is_some() && second.defers_until().is_none());
        assert!(!has_forwarded(&first));
        first.forward();
        assert!(first.defers_until().is_none() && has_forwarded(&first));
        // It has left the place, so the others must not rely on it.
        let _ = waiter(&word);
        third.forward_or_defer();
        assert!(third.defers_until().is_some());
        drop(third);
        assert!(has_forwarded(&second));
    }

    #[test]
    fn a_forward_that_is_due_is_made_at_once() {
        let word = Box::new(0);
        let mut waiter = waiter(&word);
        waiter.place().due.store(0, Relaxed);
        waiter.forward_or_defer();
        assert!(waiter.defers_until().is_none());
        assert_ne!(waiter.place().due.load(Relaxed), 0);
    }

    #[test]
    fn a_waiter_for_another_word_or_from_before_a_fork_is_not_relied_on() {
        let word = Box::new(0);
        let mut here = waiter(&word);
        let place = here.place();
        for (other, defers_until) in [(here.mark() + (1 << 8), false), (here.mark() ^ 1, true)] {
            place.taken.store(other, Relaxed);
            here.forward_or_defer();
            assert_eq!(here.defers_until().is_some(), defers_until);
            assert_eq!(has_forwarded(&here), !defers_until);
            here = waiter(&word);
        }
    }
}
