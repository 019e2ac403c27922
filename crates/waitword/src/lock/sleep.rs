//! Where the waiters of the smaller primitives sleep: in the waiter table or on the kernel's futex.
//! A bit in the primitive's own word selects which.
//!
//! 32 bits decide whether a thread sleeps: the word, or the low half of a 64-bit one, since the
//! kernel compares no more. So a primitive keeps what its waiters wait for there. The high half
//! holds what they need not be woken for.
//!
//! # Waking after the last touch
//!
//! ```text
//!   waker                                    waiter
//!   ─────                                    ──────
//!   changes the word  (its last touch)
//!                                            sees the change, returns, frees the memory
//!   wakes by address
//! ```
//!
//! A [`Spot`] is only an address; the memory behind it is not read. If that memory is in use for
//! something else by then, its waiters get a spurious wake-up. If it is no longer mapped, the
//! kernel returns an error, which is ignored.
//!
//! # Processes that are killed
//!
//! A process can be killed between changing a word and waking, or between being woken for something
//! that only one thread can have and taking it. In both cases the word permits progress, but the
//! sleepers have not been woken. So a thread that sleeps on a shared word looks again by itself
//! every second (`LOOK_AGAIN`). Such a death delays the other threads by a second at most, where
//! the usual implementations let them sleep forever.

use super::key::key_at;
use super::key_of;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::futex::{Error, Scope, private};
use crate::park::Until;
use crate::private::{Awaited, Key, is_inside, waiter_table};
use crate::sys::clock::Deadline;
use crate::sys::futex::KernelWord;

/// What to do when a signal handler has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signals {
    /// Look again, and go on sleeping.
    Ignored,
    /// Report it, as in signal(7): not if the handler was installed with `SA_RESTART` and there is
    /// no deadline.
    Reported,
}

/// As a sleeper's class: every wake finds it. As a wake's class: it finds every sleeper.
const ANY: u64 = u64::MAX;

/// A word to sleep on.
pub(super) trait SleepWord: KernelWord {
    /// The 32 bits that decide whether to sleep.
    fn deciding(&self) -> u32;
}

impl SleepWord for AtomicU32 {
    fn deciding(&self) -> u32 {
        // Relaxed: ordered by the fence of the waiter count (`private/bucket.rs`).
        self.load(Ordering::Relaxed)
    }
}

impl SleepWord for AtomicU64 {
    fn deciding(&self) -> u32 {
        // Relaxed: as above.
        self.load(Ordering::Relaxed) as u32
    }
}

#[inline(always)]
fn in_kernel<W: KernelWord>(word: *const W, scope: Scope) -> Option<*mut u32> {
    match scope {
        Scope::Private => None,
        Scope::Shared => Some(W::address(word)),
    }
}

/// Where to find the waiters of a word, without the word itself.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    key: Key,
    /// `None`: in the table.
    in_kernel: Option<*mut u32>,
}

impl Spot {
    /// The spot of `word`. Does not touch the word.
    #[inline(always)]
    pub(super) fn of<W: SleepWord>(word: &W, scope: Scope) -> Self {
        Self { key: key_of(word), in_kernel: in_kernel(word, scope) }
    }

    /// The spot of a word at this address. The word may no longer exist.
    pub(super) fn at(word: *const AtomicU64, scope: Scope) -> Self {
        Self { key: key_at(word.addr()), in_kernel: in_kernel(word, scope) }
    }

    /// Wakes up to `count` sleepers. Async-signal-safe.
    #[inline]
    pub(super) fn wake(self, count: usize) {
        self.wake_class(ANY, count);
    }

    /// Wakes up to `count` sleepers of this class.
    #[inline]
    pub(super) fn wake_class(self, class: u64, count: usize) {
        if let Some(address) = self.in_kernel {
            let count = count.min(i32::MAX as usize) as u32;
            // An error means that the memory is gone, so its waiters were already awake.
            let _ = crate::sys::futex::shared_wake(address, count, class as u32);
            return;
        }
        private::wake(waiter_table(), self.key, count, class);
    }
}

/// Sleeps while the deciding bits of `word` are `expected`. `Ok` means: look again, for whatever
/// reason.
///
/// # Errors
/// [`Error::TimedOut`]; [`Error::Interrupted`] if that is to be reported.
#[inline]
pub(super) fn wait<'u, W: SleepWord>(
    awaited: Awaited,
    word: &W,
    scope: Scope,
    expected: u32,
    until: impl Into<Until<'u>>,
    signals: Signals,
) -> Result<(), Error> {
    wait_as(ANY, awaited, word, scope, expected, until, signals)
}

/// [`wait`] as a sleeper of a class: a set of the lower 32 bits, or [`ANY`]. Wakes of classes that
/// share no bit with it do not wake it. (On a process-shared word with [`Signals::Reported`] they
/// may wake it nevertheless.)
///
/// # Errors
/// As [`wait`].
pub(super) fn wait_as<'u, W: SleepWord>(
    class: u64,
    awaited: Awaited,
    word: &W,
    scope: Scope,
    expected: u32,
    until: impl Into<Until<'u>>,
    signals: Signals,
) -> Result<(), Error> {
    let until = until.into();
    let deadline = until.deadline;
    if scope == Scope::Shared {
        // Only a signal interrupts a sleep in the kernel.
        return in_kernel::wait(class as u32, word, expected, deadline, signals);
    }
    let as_expected = || word.deciding() == expected;
    let key = key_of(word);
    match private::wait(waiter_table(), key, awaited, as_expected, class, until) {
        Err(Error::TimedOut) => Err(Error::TimedOut),
        Err(Error::Interrupted) if signals == Signals::Reported => Err(Error::Interrupted),
        Err(Error::Interrupted) if is_inside() => out_of_a_handler(deadline),
        _ => Ok(()),
    }
}

/// A signal handler that has interrupted its own thread inside a bucket cannot queue. It sleeps
/// briefly, and then looks again.
#[cold]
fn out_of_a_handler(deadline: Option<&Deadline>) -> Result<(), Error> {
    if deadline.is_some_and(Deadline::has_passed) {
        return Err(Error::TimedOut);
    }
    crate::sys::sched::sleep_nanoseconds(NAP);
    Ok(())
}

/// The time between looks where a thread cannot sleep until woken.
const NAP: i64 = 100_000;

mod in_kernel {
    use super::{NAP, Signals};
    use crate::error::Error;
    use crate::sys;
    use crate::sys::Errno;
    use crate::sys::clock::{Deadline, now};
    use crate::sys::futex::{KernelWord, word_wait, word_waitv};
    use core::time::Duration;

    /// How long a thread sleeps on a shared word before it looks again by itself.
    const LOOK_AGAIN: Duration = Duration::from_secs(1);

    pub(super) fn wait<W: KernelWord>(
        class: u32,
        word: &W,
        expected: u32,
        deadline: Option<&Deadline>,
        signals: Signals,
    ) -> Result<(), Error> {
        let until = match deadline {
            Some(deadline) if is_soon(deadline) => Some(*deadline),
            // In a model no process is killed, and every deadline has passed.
            _ if cfg!(loom) => None,
            _ => Some(Deadline::after(LOOK_AGAIN)),
        };
        let waited = match (signals, &until) {
            (Signals::Reported, Some(until)) => {
                wait_restartably(class, word, expected, until, deadline)
            }
            _ => word_wait(word, expected, class, until.as_ref()),
        };
        match waited {
            Ok(()) | Err(Errno::AGAIN) => Ok(()),
            Err(Errno::INTR) if signals == Signals::Reported => Err(Error::Interrupted),
            Err(Errno::INTR) => Ok(()),
            Err(_) if deadline.is_some_and(Deadline::has_passed) => Err(Error::TimedOut),
            Err(Errno::TIMEDOUT) => Ok(()),
            // The kernel refuses the call (in a sandbox, for example). Go on without its help.
            Err(_) => {
                sys::sched::sleep_nanoseconds(NAP);
                Ok(())
            }
        }
    }

    fn is_soon(deadline: &Deadline) -> bool {
        let then = Deadline::at(deadline.clock, now(deadline.clock) + LOOK_AGAIN);
        (deadline.seconds, deadline.nanoseconds) <= (then.seconds, then.nanoseconds)
    }

    /// With a timeout, as here to look again, `futex_waitv` still restarts by itself after a
    /// handler with `SA_RESTART`; FUTEX_WAIT does not. Before Linux 5.16 there is only FUTEX_WAIT:
    /// the waiter then does not look again, and everything else works as it should. `futex_waitv`
    /// has no classes.
    fn wait_restartably<W: KernelWord>(
        class: u32,
        word: &W,
        expected: u32,
        until: &Deadline,
        deadline: Option<&Deadline>,
    ) -> Result<(), Errno> {
        match word_waitv(word, expected, until) {
            // EPERM comes from a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => word_wait(word, expected, class, deadline),
            waited => waited,
        }
    }
}
