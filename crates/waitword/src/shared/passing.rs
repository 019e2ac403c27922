//! Passing on: what a waiter of many words does who may have taken a neighbour's wake.
//!
//! `futex_waitv` has no bitset. Who waits by it for an 8 or 16-bit word stands in the kernel's queue of the 32 bits around with all
//! bits set, a **bystander** to the other lanes (`narrow.rs`), and may be given a wake that was meant for one of them. It cannot know.
//! So that none is lost it *passes on*: it wakes all who wait on these 32 bits.
//!
//! Among those are bystanders too. They cannot know either that what woke them was passed on, and if each passed that on again at once,
//! waiters in loops would wake each other as fast as they can: sixteen of them some 400,000 times a second, after one wake. Nor
//! can anybody tell them, since they may be in any process that maps the word, and its four bytes are the program's. So they do it **at a
//! pace**:
//!
//! - Where something speaks for it, a change of the 32 bits or another word that was woken, a bystander passes on at once.
//! - Else not sooner after the last pass of its process than [`PER_WOKEN`] for each waiter whom that has woken, [`LONGEST`] at most. If it
//!   is too soon, it **puts off** the pass: sleeps on where it stood until it is due, or until something speaks for it.
//! - One in a process is enough for that. Who is woken while another puts off a pass leaves its own to that one, and ends its wait.
//!
//! ```text
//!   a bystander                              the one that puts off
//!                                            stands at the place
//!   takes a wake                             sleeps
//!   somebody at the place?                   due: leaves the place
//!   yes: ends its wait                       wakes all
//! ```
//!
//! What holds:
//!
//! 1. Every wake that a bystander takes is followed by a pass that begins after it: its own, or that of somebody whom it saw at
//!    the place, who leaves that before it wakes. If that one had left and woken already when the bystander was woken, it would have
//!    been seen to be gone: the kernel's lock of the queue lies between its wake and that one, or, where it found
//!    nobody to wake and took no lock, the full barriers between a waker's store and its look for waiters, and between a waiter's
//!    queueing and whatever it does behind it.
//! 2. A pass wakes all lanes, its own too: who left theirs to it may stand in others.
//! 3. Who is seen at a place is of this process and awake or sure to wake: the place says for which address it stands there, and in
//!    which generation of forks (a child has a copy of the place, but not the thread).
//!
//! `models/passing.pml` is this protocol.

use super::narrow::Lane;
use crate::sys::clock::{self, Clock, Deadline};
use crate::sys::futex;
use crate::sys::generation::generation;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use core::time::Duration;

/// So that what it takes to wake one and to have it wait again, some tens of microseconds, comes to a few hundredths of a CPU.
const PER_WOKEN: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);

/// By the address of the 32 bits.
static PLACES: [Place; 1 << PLACES_BITS] = [const { Place::new() }; 1 << PLACES_BITS];
const PLACES_BITS: u32 = 8;

struct Place {
    /// Who puts off a pass: [`Bystander::mark`]. 0: nobody.
    taken: AtomicU64,
    /// When the next pass for which nothing speaks may be: nanoseconds of the monotonic clock. Of all words that have this place.
    due: AtomicU64,
}

impl Place {
    const fn new() -> Self {
        Self {
            taken: AtomicU64::new(0),
            due: AtomicU64::new(0),
        }
    }
}

/// Somebody who waits by `futex_waitv` in the queue of the 32 bits around a narrow word. What it puts off, it does when it goes at the
/// latest.
#[derive(Debug)]
pub(crate) struct Bystander {
    lane: Lane,
    /// The 32 bits as it saw them before it queued.
    around: u32,
    /// Until when it puts off a pass, if it does.
    puts_off: Option<Deadline>,
}

impl Bystander {
    pub(crate) fn new(lane: Lane) -> Self {
        Self {
            lane,
            around: 0,
            puts_off: None,
        }
    }

    /// To be called before it queues: the 32 bits, and the word's own part of them.
    ///
    /// # Safety
    /// The 32 bits are mapped.
    pub(crate) unsafe fn look(&mut self) -> (u32, u64) {
        // SAFETY: the 32 bits are mapped, by this function's contract.
        self.around = unsafe { self.lane.load_around() };
        (self.around, self.lane.value(self.around))
    }

    /// Where it queues.
    pub(crate) fn address(&self) -> u64 {
        self.lane.around.expose_provenance() as u64
    }

    /// Whether the 32 bits have changed since.
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

    /// The address, of which no more than 57 bits are in use, and the low byte of the generation, which is never zero.
    fn mark(&self) -> u64 {
        ((self.address() / 4) << 8) | u64::from(generation() as u8)
    }

    /// When the next pass may be for which nothing speaks.
    fn due(&self) -> Deadline {
        // Relaxed: a time, and nothing else hangs on it.
        let due = Duration::from_nanos(self.place().due.load(Relaxed));
        Deadline::at(Clock::Monotonic, due)
    }

    /// Until when it puts off a pass, if it does.
    pub(crate) fn puts_off(&self) -> Option<Deadline> {
        self.puts_off
    }

    /// After a wake for which nothing speaks: passes it on, leaves that to another, or puts it off.
    pub(crate) fn pass_on_at_a_pace(&mut self) {
        if self.puts_off.is_some() {
            return;
        }
        let due = self.due();
        if due.has_passed() {
            return self.pass_on();
        }
        let (place, mark) = (self.place(), self.mark());
        // Nobody's, or an ancestor's.
        let is_free = |taken: u64| taken as u8 != mark as u8;
        let take = |taken| is_free(taken).then_some(mark);
        // Acquire where it is not ours: what holds, 1. Who finds us there needs nothing of us but that we leave.
        match place.taken.fetch_update(Relaxed, Acquire, take) {
            Ok(_) => self.puts_off = Some(due),
            Err(taken) if taken == mark => {}
            // Somebody of this process, but at another address.
            Err(_) => self.pass_on(),
        }
    }

    /// Wakes all who wait on these 32 bits.
    pub(crate) fn pass_on(&mut self) {
        let place = self.place();
        if self.puts_off.take().is_some() {
            // SeqCst: before the wake, of which the kernel's barrier makes sure; what holds, 1.
            place.taken.store(0, SeqCst);
        }
        // The kernel has just found the address good.
        let woken = futex::shared_wake(self.lane.around, i32::MAX as u32, u32::MAX).unwrap_or(0);
        let pause = PER_WOKEN.saturating_mul(woken as u32).min(LONGEST);
        let due = clock::now(Clock::Monotonic) + pause;
        // Relaxed: as above.
        place.due.store(due.as_nanos() as u64, Relaxed);
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        if self.puts_off.is_some() {
            self.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::{Size, WordPtr};

    /// A bystander at the place of the word, where the last pass was just now.
    fn bystander(word: &u32) -> Bystander {
        let word = WordPtr {
            address: (&raw const *word).cast_mut().cast(),
            size: Size::U8,
        };
        let bystander = Bystander::new(Lane::of(word));
        let due = clock::now(Clock::Monotonic) + Duration::from_secs(60);
        let place = bystander.place();
        place.due.store(due.as_nanos() as u64, Relaxed);
        bystander
    }

    fn is_passed_on(bystander: &Bystander) -> bool {
        bystander.due().has_passed()
    }

    #[test]
    fn one_puts_off_what_the_others_leave_to_it() {
        let word = Box::new(0);
        let [mut first, mut second, mut third] = [(); 3].map(|()| bystander(&word));
        first.pass_on_at_a_pace();
        second.pass_on_at_a_pace();
        assert!(first.puts_off().is_some() && second.puts_off().is_none());
        assert!(!is_passed_on(&first));
        first.pass_on();
        assert!(first.puts_off().is_none() && is_passed_on(&first));
        // It has left, so that nobody relies on it.
        let _ = bystander(&word);
        third.pass_on_at_a_pace();
        assert!(third.puts_off().is_some());
        drop(third);
        assert!(is_passed_on(&second));
    }

    #[test]
    fn what_is_due_is_passed_on_at_once() {
        let word = Box::new(0);
        let mut bystander = bystander(&word);
        bystander.place().due.store(0, Relaxed);
        bystander.pass_on_at_a_pace();
        assert!(bystander.puts_off().is_none());
        assert_ne!(bystander.place().due.load(Relaxed), 0);
    }

    #[test]
    fn nobody_relies_on_who_stands_there_for_another_word_or_stood_there_before_a_fork() {
        let word = Box::new(0);
        let mut here = bystander(&word);
        let place = here.place();
        for (other, puts_off) in [(here.mark() + (1 << 8), false), (here.mark() ^ 1, true)] {
            place.taken.store(other, Relaxed);
            here.pass_on_at_a_pace();
            assert_eq!(here.puts_off().is_some(), puts_off);
            assert_eq!(is_passed_on(&here), !puts_off);
            here = bystander(&word);
        }
    }
}
