//! Something that is done once, by whoever comes first, while the others wait for it.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0-1 | NEW, RUNNING, DONE, POISONED |
//! | 2 | not DONE, and a thread may sleep |
//! | 3-31 | RUNNING: in which generation of forks |
//!
//! DONE has no other bits, so one comparison finds it.
//!
//! ```text
//!   NEW ──first──► RUNNING ──returned──► DONE
//!    ▲                │  └──unwound──► POISONED (call_once) or NEW (execute, produce)
//!    └────────────────┘ forked: in the child nobody is running it any more
//! ```
//!
//! # Invariants
//!
//! 1. Only who has made the word RUNNING ends that, in one step that also says whether anybody is to be woken. After
//!    that step it does not touch the word.
//! 2. A thread that sleeps has set bit 2 in the very word that it found. The bit stays until the
//!    end of a run, which wakes all: also if the sleeper came first (`wait`).
//! 3. A word that is RUNNING in another generation is that of a thread that stayed behind in the parent: as good as
//!    NEW. (If the running thread itself forked, it goes on in the child too, and does not touch what another has
//!    begun there meanwhile.)
//!
//! # Orderings
//!
//! Ending is Release, finding the end Acquire. To begin is Acquire: of what an earlier attempt left, the next one
//! sees everything.

use super::const_fn::const_fn;
use super::sleep::{self, Signals, Spot};
use crate::atomic::{AtomicU32, Ordering};
use crate::futex::{Error, Scope};
use crate::sys::clock::Deadline;
use core::fmt;

const STATE: u32 = 3;
const NEW: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const POISONED: u32 = 3;

const SLEEPERS: u32 = 4;
const GENERATION_SHIFT: u32 = 3;

/// What a [`Once`] is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnceState {
    /// Nobody has begun.
    New,
    /// Whoever began has panicked.
    Poisoned,
    /// Somebody is at it.
    InProgress,
    /// It has been done.
    Done,
}

impl OnceState {
    /// Whether it is [`Poisoned`](Self::Poisoned).
    pub fn poisoned(self) -> bool {
        self == OnceState::Poisoned
    }

    /// Whether it is [`Done`](Self::Done).
    pub fn done(self) -> bool {
        self == OnceState::Done
    }
}

/// Has something done once, whoever calls first; whoever calls meanwhile waits until it has been done.
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
/// 4 bytes; all zeros is one that is new. Private to the process, as POSIX's `pthread_once_t` is. When it has been
/// done a call is one load.
///
/// * **Memory.** What was done is visible to all whose call has returned.
/// * **Recursion**: a call of the same `Once` from the function that it runs waits for itself for ever.
/// * **Signal handlers** must not call it while it may be running in the thread that they interrupt.
/// * **fork**: if another thread of the parent was at it, the child's next call does it anew. (It may have been half
///   done: what it changed in memory is in the child.) If the function itself forks, it goes on in
///   the child too, and its end is the end of the call there. Until then another thread of the
///   child does not wait for it, but runs a function of its own: two then run at once, and each
///   call returns after its own. ([`OnceLock`](crate::OnceLock) still stores one value.)
///
/// Source: `parking_lot::Once`, whose methods have the same names and meaning; [`execute`](Self::execute): POSIX
/// `pthread_once`.
#[repr(C)]
pub struct Once {
    word: AtomicU32,
}

const _: () = assert!(cfg!(loom) || size_of::<Once>() == 4);

impl Once {
    const_fn! {
        /// One that is new.
        pub const fn new() -> Self {
            Self {
                word: AtomicU32::new(NEW),
            }
        }
    }

    /// Waits until it has been done, by another thread.
    ///
    /// Blocks. (Rust's `std::sync::Once` has it; `parking_lot::Once` does not.)
    ///
    /// # Panics
    /// If it is poisoned, or becomes so.
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

    /// What it is at this moment. If it is done, what was done is visible.
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

    /// Runs `f` if nobody has before, or waits for whoever is at it.
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If `f` does, or if an earlier `f` has: then the `Once` is poisoned, and stays so but for
    /// [`call_once_force`](Self::call_once_force).
    #[inline]
    pub fn call_once(&self, f: impl FnOnce()) {
        if !self.is_done() {
            let mut f = Some(f);
            let run = &mut |_| run_once(&mut f)();
            self.call(Unwound::Poisons { force: false }, run);
        }
    }

    /// [`call_once`](Self::call_once), but tries again if it is poisoned. `f` is told which: [`New`](OnceState::New)
    /// or [`Poisoned`](OnceState::Poisoned).
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If `f` does.
    #[inline]
    pub fn call_once_force(&self, f: impl FnOnce(OnceState)) {
        if !self.is_done() {
            let mut f = Some(f);
            let run = &mut |found| run_once(&mut f)(found);
            self.call(Unwound::Poisons { force: true }, run);
        }
    }

    /// Runs `f` if nobody has before, as POSIX's `pthread_once` does: if it is left by unwinding (a panic, an
    /// exception, the end of the thread) it counts as not begun, and one of those who wait runs its own.
    ///
    /// Blocks.
    ///
    /// # Panics
    /// If `f` does.
    #[inline]
    pub fn execute(&self, f: impl FnOnce()) {
        if !self.is_done() {
            let mut f = Some(f);
            self.call(Unwound::StartsAnew, &mut |_| run_once(&mut f)());
        }
    }

    /// [`execute`](Self::execute) in two steps. `make` may find that another thread does the same
    /// in a forked child, and is then called again if that one fails. `keep` runs at most once, and
    /// alone: for what readers will borrow.
    #[cold]
    pub(super) fn produce(&self, make: &mut dyn FnMut(), keep: &mut dyn FnMut()) {
        while let Ok(Some((mut run, _))) = self.begin(Unwound::StartsAnew, None) {
            make();
            // If another thread has begun anew, that one, or its end, is waited for.
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
            // Without a deadline it does not give up.
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
    /// that run no destructors: begins, or waits for the thread that has begun, until the deadline.
    /// `None` if it has been done.
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

    // Inlined: what it returns would pass through memory.
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
            // A failure is looked at as the first load was.
            match self.word.compare_exchange(
                now,
                running | now & SLEEPERS,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let run = OnceRun {
                        once: self,
                        running,
                        left: Some(unwound),
                    };
                    return Ok(Some((run, found)));
                }
                Err(changed) => now = changed,
            }
        }
    }

    /// Sleeps until a run has ended, unless the word is not as it was found: look at it again.
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
            sleep::wait(
                &self.word,
                Scope::Private,
                announced,
                deadline,
                Signals::Ignored,
            )?;
        }
        Ok(())
    }
}

/// What it means that a function did not return.
#[derive(Clone, Copy, Debug)]
enum Unwound {
    Poisons {
        /// Whether poison from before is ignored.
        force: bool,
    },
    StartsAnew,
}

impl Unwound {
    /// Panics if this call refuses a word that is poisoned.
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

/// The function, which is called once.
fn run_once<F>(f: &mut Option<F>) -> F {
    f.take().expect("begun once")
}

/// A call of the function. Its end is that of the call: [`end`](Self::end) after the return, its
/// destructor if the call was left by unwinding.
#[derive(Debug)]
pub struct OnceRun<'a> {
    once: &'a Once,
    /// The word that it has made.
    running: u32,
    /// What it means that the function is left; `None` once it has returned.
    left: Option<Unwound>,
}

impl OnceRun<'_> {
    /// The function has returned.
    pub fn end(mut self) {
        self.left = None;
    }

    /// Whether this is still the only run. If it has forked and this is the child, another thread
    /// may have begun anew; from here on none can.
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
        let ended = self
            .once
            .word
            .fetch_update(Ordering::Release, Ordering::Relaxed, |now| {
                (now & !SLEEPERS == self.running).then_some(end)
            });
        // An error: we have forked, and another thread of the child has begun anew.
        if ended.is_ok_and(|now| now & SLEEPERS != 0) {
            Spot::of(&self.once.word, Scope::Private).wake(usize::MAX);
        }
    }
}

/// Whether a word that is RUNNING is so in this process.
fn is_running_here(word: u32) -> bool {
    word >> GENERATION_SHIFT << GENERATION_SHIFT == generation()
}

/// The generation of forks, in its place in the word.
fn generation() -> u32 {
    #[cfg(not(loom))]
    return crate::sys::generation::generation() << GENERATION_SHIFT;
    #[cfg(loom)]
    return 1 << GENERATION_SHIFT;
}

#[cfg(not(loom))]
impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once")
            .field("state", &self.state())
            .finish()
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
            // As if another waited.
            once.word.store(running | SLEEPERS, Ordering::Relaxed);
        });
        assert_eq!(once.word.load(Ordering::Relaxed), DONE);
    }

    /// One that was begun in a process whose copy this is.
    #[test]
    fn begun_in_another_generation_is_new() {
        let other_generation = generation() ^ 1 << GENERATION_SHIFT;
        let once = Once {
            word: AtomicU32::new(RUNNING | SLEEPERS | other_generation),
        };
        assert_eq!(once.state(), OnceState::New);
        let mut ran = false;
        once.call_once(|| ran = true);
        assert!(ran && once.state().done());
    }
}
