//! Something that is done once, by the first thread that calls, while other callers wait for it.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0-1 | NEW, RUNNING, DONE, POISONED |
//! | 2 | not DONE, and a thread may sleep |
//! | 3-31 | RUNNING: the fork generation of the run |
//!
//! DONE has no other bits set, so one comparison detects it.
//!
//! ```text
//!   NEW ──first──► RUNNING ──returned──► DONE
//!    ▲                │  └──unwound──► POISONED (call_once) or NEW (execute, produce)
//!    └────────────────┘ forked: in the child no thread is running it any longer
//! ```
//!
//! # Invariants
//!
//! 1. Only the thread that made the word RUNNING ends that state, in one step that also tells
//!    whether there are threads to wake. After that step it does not touch the word.
//! 2. A thread that sleeps has set bit 2 in the same word that it found. The bit stays until the
//!    end of a run, which wakes all sleepers, even one that came before the run (`wait`).
//! 3. A word that is RUNNING in another fork generation belongs to a thread that exists only in the
//!    parent. It counts as NEW. (If the running thread itself forked, it goes on in the child too,
//!    and does not touch what another thread has begun there in the meantime.)
//!
//! # Orderings
//!
//! Ending a run is Release, and finding the end is Acquire. Beginning is Acquire: the next attempt
//! sees everything that an earlier one left behind.

use super::const_fn::const_fn;
use super::sleep::{self, Signals, Spot};
use crate::atomic::{AtomicU32, Ordering};
use crate::futex::{Error, Scope};
use crate::private::Awaited;
use crate::record::{self, Object};
use crate::sys::clock::Deadline;
use core::fmt;

const STATE: u32 = 3;
const NEW: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const POISONED: u32 = 3;

const SLEEPERS: u32 = 4;
const GENERATION_SHIFT: u32 = 3;

/// The state of a [`Once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnceState {
    /// No call has begun.
    New,
    /// A call has begun and panicked.
    Poisoned,
    /// A call is in progress.
    InProgress,
    /// A call has completed.
    Done,
}

impl OnceState {
    /// Returns whether this is [`Poisoned`](Self::Poisoned).
    pub fn poisoned(self) -> bool {
        self == OnceState::Poisoned
    }

    /// Returns whether this is [`Done`](Self::Done).
    pub fn done(self) -> bool {
        self == OnceState::Done
    }
}

/// Runs a function once, in the first thread that calls. Threads that call in the meantime wait
/// until it has completed.
///
/// ```
/// use waitword::Once;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static SETTINGS: Once = Once::new();
/// static TIMES: AtomicU32 = AtomicU32::new(0);
///
/// let threads = [(); 4].map(|()| {
///     std::thread::spawn(|| {
///         SETTINGS.call_once(|| {
///             TIMES.fetch_add(1, Ordering::Relaxed);
///         });
///         assert_eq!(TIMES.load(Ordering::Relaxed), 1);
///     })
/// });
/// for thread in threads {
///     thread.join().unwrap();
/// }
/// assert!(SETTINGS.state().done());
/// ```
///
/// 4 bytes; all zeros is a new one. Private to the process, as POSIX's `pthread_once_t`. Once it is
/// done, a call is one load.
///
/// * **Memory.** What the function did is visible to all threads whose call has returned.
/// * **Recursion**: if the function calls the same `Once`, that call waits for itself forever.
/// * **Signal handlers** must not call it while it may be running in the thread that they
///   interrupt.
/// * **fork**: if another thread of the parent was running the function, the child's next call runs
///   it again. (It may have been half done: its changes to memory are in the child.) If the
///   function itself forks, it goes on in the child too, and its end is the end of the call there.
///   Until then, another thread of the child does not wait for it but runs a function of its own.
///   Two functions then run at once, and each call returns after its own.
///   ([`OnceLock`](crate::OnceLock) still stores one value.)
///
/// Source: `parking_lot::Once`, whose methods have the same names and meaning;
/// [`execute`](Self::execute): POSIX `pthread_once`.
#[repr(C)]
pub struct Once {
    word: AtomicU32,
}

const _: () = assert!(cfg!(loom) || size_of::<Once>() == 4);

impl Once {
    const_fn! {
        /// Creates a new one.
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(NEW),
            }
        }
    }

    /// Waits until another thread has completed a call.
    ///
    /// Blocks. (`std::sync::Once` has this method; `parking_lot::Once` does not.)
    ///
    /// # Panics
    /// If it is poisoned, or becomes poisoned.
    #[inline]
    pub fn wait(&self) {
        if !self.is_done() {
            self.wait_for_others(Unwound::Poisons { force: false });
        }
    }

    /// [`wait`](Self::wait), but goes on waiting if it is poisoned.
    ///
    /// Blocks.
    #[inline]
    pub fn wait_force(&self) {
        if !self.is_done() {
            self.wait_for_others(Unwound::Poisons { force: true });
        }
    }

    /// Returns the current state. If it is done, what the function did is visible.
    #[inline]
    pub fn state(&self) -> OnceState {
        let word = self.word.load(Ordering::Acquire);
        match word & STATE {
            NEW => OnceState::New,
            DONE => OnceState::Done,
            POISONED => OnceState::Poisoned,
            _ if !is_running_here(word) => OnceState::New,
            _ => OnceState::InProgress,
        }
    }

    /// Runs `f` if no call has completed yet, or waits for a call in progress.
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If `f` panics, or an earlier `f` has panicked. The `Once` is then poisoned, until
    /// [`call_once_force`](Self::call_once_force) succeeds.
    #[inline]
    pub fn call_once(&self, f: impl FnOnce()) {
        if !self.is_done() {
            let mut f = Some(f);
            let run = &mut |_| run_once(&mut f)();
            self.call(Unwound::Poisons { force: false }, run);
        }
    }

    /// [`call_once`](Self::call_once), but tries again if it is poisoned. `f` gets the state
    /// before: [`New`](OnceState::New) or [`Poisoned`](OnceState::Poisoned).
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If `f` panics.
    #[inline]
    pub fn call_once_force(&self, f: impl FnOnce(OnceState)) {
        if !self.is_done() {
            let mut f = Some(f);
            let run = &mut |found| run_once(&mut f)(found);
            self.call(Unwound::Poisons { force: true }, run);
        }
    }

    /// Runs `f` if no call has completed yet, as POSIX's `pthread_once` does. If `f` is left by
    /// unwinding (a panic, an exception, the end of the thread), the call counts as not begun, and
    /// one of the waiting threads runs its own function.
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If `f` panics.
    #[inline]
    pub fn execute(&self, f: impl FnOnce()) {
        if !self.is_done() {
            let mut f = Some(f);
            self.call(Unwound::StartsAnew, &mut |_| run_once(&mut f)());
        }
    }

    /// [`execute`](Self::execute) in two steps. In a forked child, `make` may run while another
    /// thread runs its own, and is called again if that thread's call fails. `keep` runs at most
    /// once and alone: it stores what readers will borrow.
    #[cold]
    pub(super) fn produce(&self, make: &mut dyn FnMut(), keep: &mut dyn FnMut()) {
        while let Ok(Some((mut run, _))) = self.begin(Unwound::StartsAnew, None) {
            make();
            // If another thread has begun again, the loop waits for it to end, or finds that it
            // has.
            if run.goes_on() {
                keep();
                return run.end();
            }
        }
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.word.load(Ordering::Acquire) == DONE
    }

    #[cold]
    fn wait_for_others(&self, unwound: Unwound) {
        let mut now = self.word.load(Ordering::Acquire);
        while now & STATE != DONE {
            unwound.allow(now);
            // Without a deadline, this does not time out.
            let _ = self.sleep(now, None);
            now = self.word.load(Ordering::Acquire);
        }
    }

    #[cold]
    fn call(&self, unwound: Unwound, f: &mut dyn FnMut(OnceState)) {
        if let Ok(Some((run, found))) = self.begin(unwound, None) {
            f(found);
            run.end();
        }
    }

    /// [`execute`](Self::execute) in two steps, for a caller whose function may be left in ways
    /// that run no destructors. Begins a run, or waits until the deadline for the thread that has
    /// begun. Returns `None` if a call has completed.
    ///
    /// Blocks.
    ///
    /// # Errors
    /// [`Error::TimedOut`].
    #[cold]
    pub(crate) fn begin_executing(
        &self,
        deadline: Option<&Deadline>,
    ) -> Result<Option<OnceRun<'_>>, Error> {
        let begun = self.begin(Unwound::StartsAnew, deadline)?;
        Ok(begun.map(|(run, _)| run))
    }

    // Inlined: the result would otherwise be returned through memory.
    #[inline(always)]
    fn begin(
        &self,
        unwound: Unwound,
        deadline: Option<&Deadline>,
    ) -> Result<Option<(OnceRun<'_>, OnceState)>, Error> {
        let mut now = self.word.load(Ordering::Acquire);
        loop {
            unwound.allow(now);
            let found = match now & STATE {
                DONE => return Ok(None),
                POISONED => OnceState::Poisoned,
                RUNNING if is_running_here(now) => {
                    self.sleep(now, deadline)?;
                    now = self.word.load(Ordering::Acquire);
                    continue;
                }
                _ => OnceState::New,
            };
            let running = RUNNING | generation();
            // A failure is handled like the first load.
            match self.word.compare_exchange(
                now,
                running | now & SLEEPERS,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    // Its end comes to `releasing`.
                    record::took(self.address(), || true);
                    let run = OnceRun { once: self, running, left: Some(unwound) };
                    return Ok(Some((run, found)));
                }
                Err(changed) => now = changed,
            }
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Sleeps until a run has ended. Returns at once if the word is no longer `found`. The caller
    /// then looks at the word again.
    ///
    /// # Errors
    /// [`Error::TimedOut`].
    fn sleep(&self, found: u32, deadline: Option<&Deadline>) -> Result<(), Error> {
        let announced = found | SLEEPERS;
        let is_announced = found == announced
            || self
                .word
                .compare_exchange(found, announced, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_announced {
            record::waiting(Object::Once, self.address(), deadline.is_some(), || {
                sleep::wait(
                    Awaited::Once,
                    &self.word,
                    Scope::Private,
                    announced,
                    deadline,
                    Signals::Ignored,
                )
            })?;
        }
        Ok(())
    }
}

/// The effect of a function that does not return.
#[derive(Clone, Copy, Debug)]
enum Unwound {
    Poisons {
        /// Whether to ignore earlier poison.
        force: bool,
    },
    StartsAnew,
}

impl Unwound {
    /// Panics if the word is poisoned and this call refuses that.
    #[inline]
    fn allow(self, now: u32) {
        if now & STATE == POISONED && matches!(self, Unwound::Poisons { force: false }) {
            panic!("Once: an earlier call has panicked");
        }
    }

    fn state(self) -> u32 {
        match self {
            Unwound::Poisons { .. } => POISONED,
            Unwound::StartsAnew => NEW,
        }
    }
}

/// Takes the function out, to be called once.
fn run_once<F>(f: &mut Option<F>) -> F {
    f.take().expect("begun once")
}

/// A run of the function. The call ends with it: by [`end`](Self::end) after the function has
/// returned, or by the destructor if it was left by unwinding.
#[derive(Debug)]
pub struct OnceRun<'a> {
    once: &'a Once,
    /// The word that this run has stored.
    running: u32,
    /// The effect of leaving the function; `None` once it has returned.
    left: Option<Unwound>,
}

impl OnceRun<'_> {
    /// Ends the run: the function has returned.
    pub fn end(mut self) {
        self.left = None;
    }

    /// Whether this is still the only run. In a forked child, another thread may have begun again.
    /// If this returns true, no other thread can begin from here on.
    fn goes_on(&mut self) -> bool {
        let running = RUNNING | generation();
        // Relaxed: what the run read and wrote before the fork is this thread's own.
        let is_only = running == self.running
            || self
                .once
                .word
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                    (now & !SLEEPERS == self.running).then_some(running | now & SLEEPERS)
                })
                .is_ok();
        if is_only {
            self.running = running;
        }
        is_only
    }
}

impl Drop for OnceRun<'_> {
    fn drop(&mut self) {
        let end = self.left.map_or(DONE, Unwound::state);
        let has_sleepers = || self.once.word.load(Ordering::Relaxed) & SLEEPERS != 0;
        record::releasing(self.once.address(), has_sleepers, || false);
        let ended = self.once.word.fetch_update(Ordering::Release, Ordering::Relaxed, |now| {
            (now & !SLEEPERS == self.running).then_some(end)
        });
        // An error means that we have forked and another thread of the child has begun again.
        if ended.is_ok_and(|now| now & SLEEPERS != 0) {
            Spot::of(&self.once.word, Scope::Private).wake(usize::MAX);
        }
    }
}

/// Whether a RUNNING word belongs to this process.
fn is_running_here(word: u32) -> bool {
    word >> GENERATION_SHIFT << GENERATION_SHIFT == generation()
}

/// The fork generation, shifted to its place in the word.
fn generation() -> u32 {
    #[cfg(not(loom))]
    return crate::sys::generation::generation() << GENERATION_SHIFT;
    #[cfg(loom)]
    return 1 << GENERATION_SHIFT;
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn done_has_no_other_bits() {
        let once = Once::new();
        once.call_once(|| {
            let running = once.word.load(Ordering::Relaxed);
            assert_eq!(running & STATE, RUNNING);
            assert!(is_running_here(running) && is_running_here(running | SLEEPERS));
            // As if another thread waited.
            once.word.store(running | SLEEPERS, Ordering::Relaxed);
        });
        assert_eq!(once.word.load(Ordering::Relaxed), DONE);
    }

    /// A run that began in the parent of this process, by the word's fork generation.
    #[test]
    fn begun_in_another_generation_is_new() {
        let other_generation = generation() ^ 1 << GENERATION_SHIFT;
        let once = Once { word: AtomicU32::new(RUNNING | SLEEPERS | other_generation) };
        assert_eq!(once.state(), OnceState::New);
        let mut ran = false;
        once.call_once(|| ran = true);
        assert!(ran && once.state().done());
    }
}
