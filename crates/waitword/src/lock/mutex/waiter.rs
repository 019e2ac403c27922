//! What a parked waiter tells the threads that may wake it: the `kind` that it parks with.
//!
//! | bits  | meaning |
//! |-------|---------|
//! | 0     | always set |
//! | 1     | IMPATIENT: it has waited so long that the lock is to be handed to it |
//! | 2-8   | its real-time priority (`real_time.rs`); 0 for all other threads |
//! | 9-24  | one more than the CPU that it last ran on; 0 if unknown |
//! | 25-30 | the condvar that it came from ([`FromCondvar`]); 0 if it came to the mutex itself |
//! | 31-63 | when it began to wait, in microseconds, modulo 2^33 |

use crate::futex::parking::{Entry, Token};
use crate::private::Awaited;
use crate::sys::clock::nanoseconds as now;
use crate::sys::cpu;
use crate::sys::sched;

/// The woken waiter is the successor. (These tokens are sent with a wake-up; 0, from `parking`,
/// means "look again".)
pub(in crate::lock) const SUCCESSOR: Token = 1;
/// The woken waiter holds the lock.
pub(in crate::lock) const HOLDER: Token = 2;
/// The waiter was woken in a batch, beside a successor (`policy/wakes.rs`).
pub(in crate::lock) const EXTRA: Token = 3;

const WAITER: u64 = 1;
const IMPATIENT: u64 = 1 << 1;
const PRIORITY_SHIFT: u32 = 2;
const PRIORITY: u64 = 0x7f << PRIORITY_SHIFT;
const CPU_SHIFT: u32 = 9;
const CPU: u64 = 0xffff << CPU_SHIFT;
const CONDVAR_SHIFT: u32 = 25;
const CONDVAR: u64 = 0x3f << CONDVAR_SHIFT;
const TIME_SHIFT: u32 = 31;

/// How long ago that was, in nanoseconds.
#[inline]
pub(in crate::lock) fn elapsed(since: u64) -> u64 {
    // Saturating: another CPU's clock may be a little ahead.
    now().saturating_sub(since)
}

/// The condvar that a waiter came from, as its bits of a [`Waiter`]: a hash of the address. If two
/// condvars collide, the cost is a wake-up that could have been spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lock) struct FromCondvar(u64);

impl FromCondvar {
    /// A condvar whose waiters are not moved to the mutex's queue.
    pub(in crate::lock) const ELSEWHERE: Self = Self(0);

    /// The condvar at this address.
    #[inline]
    pub(in crate::lock) fn at(address: usize) -> Self {
        // Fibonacci hashing: condvars at adjacent addresses get different values.
        let hash = (address as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        Self(hash.max(1) << CONDVAR_SHIFT)
    }
}

/// A parked waiter's `kind`: see the module docs.
#[derive(Clone, Copy)]
pub(in crate::lock) struct Waiter(pub(in crate::lock) u64);

const _: () = assert!(sched::HIGHEST_PRIORITY as u64 <= PRIORITY >> PRIORITY_SHIFT);

impl Waiter {
    /// The calling thread, which began to wait at this time, in nanoseconds.
    #[inline]
    pub(in crate::lock) fn since(began: u64) -> Self {
        let priority = u64::from(sched::priority()) << PRIORITY_SHIFT;
        Self(WAITER | priority | here() | (began / 1000) << TIME_SHIFT)
    }

    /// The queue entry to park with.
    #[inline]
    pub(in crate::lock) fn entry(self) -> Entry {
        Entry { awaited: Awaited::Mutex, kind: self.0, place: self.priority() }
    }

    /// Its real-time priority; 0 if it has none.
    #[inline]
    pub(in crate::lock) fn priority(self) -> u8 {
        ((self.0 & PRIORITY) >> PRIORITY_SHIFT) as u8
    }

    #[inline]
    pub(in crate::lock) fn is_real_time(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// The calling thread, which begins to wait for this condvar.
    #[inline]
    pub(in crate::lock) fn at_condvar(condvar: FromCondvar) -> Self {
        Self(Self::since(now()).0 | condvar.0)
    }

    /// Whether it waited for a signal. Most often such a thread gives the lock back soon.
    #[inline]
    pub(super) fn is_from_condvar(self) -> bool {
        self.0 & CONDVAR != 0
    }

    #[inline]
    pub(super) fn is_from(self, condvar: FromCondvar) -> bool {
        self.is_from_condvar() && self.0 & CONDVAR == condvar.0
    }

    #[inline]
    pub(super) fn impatient(self, impatient: bool) -> Self {
        Self(if impatient { self.0 | IMPATIENT } else { self.0 })
    }

    #[inline]
    pub(super) fn is_impatient(self) -> bool {
        self.0 & IMPATIENT != 0
    }

    /// Whether it last ran on the CPU that the calling thread is on.
    #[inline]
    pub(super) fn ran_here(self) -> bool {
        self.0 & CPU != 0 && self.0 & CPU == here()
    }

    /// How many microseconds it has waited until `now`.
    #[inline]
    pub(super) fn waited_until(self, now: u64) -> u64 {
        (now / 1000).wrapping_sub(self.0 >> TIME_SHIFT) & (u64::MAX >> TIME_SHIFT)
    }
}

#[inline]
fn here() -> u64 {
    cpu::current_cpu().map_or(0, |cpu| u64::from((cpu + 1).min(1 << 16)) << CPU_SHIFT & CPU)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_says_how_long_it_has_waited() {
        let began = 5_000_000_000;
        let waiter = Waiter::since(began);
        assert_eq!(waiter.waited_until(5_000_250_000), 250);
        assert!(!waiter.is_impatient() && waiter.impatient(true).is_impatient());
        assert_eq!(waiter.impatient(true).waited_until(began), 0);
        // The count wraps 2^33 microseconds after boot, which is somewhat more than two hours.
        let late = ((1 << 33) - 1) * 1000;
        assert_eq!(Waiter::since(late).waited_until(late + 7000), 7);
    }
}
