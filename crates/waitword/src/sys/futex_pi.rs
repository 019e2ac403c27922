//! The kernel's priority-inheriting futexes: the calls of futex(2) that store a thread's number in
//! a word, and lend the word's owner the highest priority among its waiters.
//!
//! As for all futexes, `private` means that only threads of this process use the word. Words are
//! the caller's; the kernel changes them atomically.

use super::Errno;
use super::clock::{Clock, Deadline, now};
use super::moving_time::Time;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use rustix::thread::futex as kernel;

fn flags(private: bool) -> kernel::Flags {
    if private { kernel::Flags::PRIVATE } else { kernel::Flags::empty() }
}

/// FUTEX_LOCK_PI, or FUTEX_LOCK_PI2 if the deadline is on the monotonic clock: takes the word, or
/// sleeps until it is handed off.
///
/// # Errors
/// `EDEADLK`, `ESRCH`, `ETIMEDOUT`, `EAGAIN`, `EPERM`, `EINVAL`, `ENOMEM`, `ENOSYS`: see
/// `lock/pi.rs`.
pub(crate) fn lock(
    word: &AtomicU32,
    private: bool,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let flags = flags(private);
    match deadline {
        // LOCK_PI's time is on the wall clock, whatever the flags.
        Some(deadline) if deadline.clock == Clock::Realtime => {
            kernel::lock_pi(word, flags, Some(&deadline.to_timespec())).map_err(Errno::of)
        }
        Some(deadline) => lock_monotonic(word, flags, deadline),
        None => kernel::lock_pi(word, flags, None).map_err(Errno::of),
    }
}

/// [`lock`] until `time`, which may be moved meanwhile: a call that a signal handler interrupts
/// restarts and reads the time again.
///
/// # Errors
/// As for [`lock`]. `ENOSYS`: the kernel knows only the wall clock.
pub(crate) fn lock_by_time(
    word: &AtomicU32,
    private: bool,
    time: &Time,
    clock: Clock,
) -> Result<(), Errno> {
    const LOCK_PI: usize = 6;
    const LOCK_PI2: usize = 13;
    const PRIVATE_FLAG: usize = 128;
    let operation = match clock {
        // "Never" is the same on every clock.
        Clock::Realtime => LOCK_PI,
        Clock::Monotonic if time.is_never() => LOCK_PI,
        Clock::Monotonic => LOCK_PI2,
    };
    // SAFETY: the word and the time are borrowed while the call lasts; the kernel changes the word
    // atomically and reads the time.
    let answer = unsafe {
        syscalls::syscall4(
            syscalls::Sysno::futex,
            core::ptr::from_ref(word).expose_provenance(),
            operation | if private { PRIVATE_FLAG } else { 0 },
            0,
            core::ptr::from_ref(time).expose_provenance(),
        )
    };
    super::from_raw(answer).map(drop)
}

fn lock_monotonic(
    word: &AtomicU32,
    flags: kernel::Flags,
    deadline: &Deadline,
) -> Result<(), Errno> {
    /// Before Linux 5.14, or in a sandbox. Relaxed: at worst a thread tries once more.
    static WITHOUT_LOCK_PI2: AtomicBool = AtomicBool::new(false);
    #[cfg(test)]
    if pretend::WITHOUT_LOCK_PI2.load(Ordering::Relaxed) {
        return lock_by_wall_clock(word, flags, deadline);
    }
    if !WITHOUT_LOCK_PI2.load(Ordering::Relaxed) {
        match kernel::lock_pi2(word, flags, Some(&deadline.to_timespec())).map_err(Errno::of) {
            Err(Errno::NOSYS) => WITHOUT_LOCK_PI2.store(true, Ordering::Relaxed),
            answer => return answer,
        }
    }
    lock_by_wall_clock(word, flags, deadline)
}

/// A monotonic deadline on a kernel that knows only the wall clock. If that is set back meanwhile,
/// the call lasts longer by as much; it never ends early.
fn lock_by_wall_clock(
    word: &AtomicU32,
    flags: kernel::Flags,
    deadline: &Deadline,
) -> Result<(), Errno> {
    let until = Duration::new(deadline.seconds as u64, deadline.nanoseconds);
    loop {
        let left = until.saturating_sub(now(Clock::Monotonic));
        let wall_clock = now(Clock::Realtime).saturating_add(left);
        let time = Deadline::at(Clock::Realtime, wall_clock).to_timespec();
        match kernel::lock_pi(word, flags, Some(&time)).map_err(Errno::of) {
            // The wall clock was set forward.
            Err(Errno::TIMEDOUT) if !deadline.has_passed() => {}
            answer => return answer,
        }
    }
}

/// FUTEX_TRYLOCK_PI: takes the word if that needs no waiting. For words whose owner is gone, which
/// only the kernel can take.
///
/// # Errors
/// `EAGAIN` if another thread holds it; otherwise as for [`lock`].
pub(crate) fn try_lock(word: &AtomicU32, private: bool) -> Result<(), Errno> {
    kernel::trylock_pi(word, flags(private)).map(drop).map_err(Errno::of)
}

/// FUTEX_UNLOCK_PI: hands the word off to the waiter with the highest priority, or frees it.
///
/// # Errors
/// `EPERM` if the caller is not the owner; `EAGAIN`, `EINVAL`.
pub(crate) fn unlock(word: &AtomicU32, private: bool) -> Result<(), Errno> {
    kernel::unlock_pi(word, flags(private)).map_err(Errno::of)
}

/// Simulates kernels other than the running one, for tests of their behaviour.
#[cfg(test)]
pub(crate) mod pretend {
    use core::sync::atomic::AtomicBool;

    /// Before Linux 5.14.
    pub(crate) static WITHOUT_LOCK_PI2: AtomicBool = AtomicBool::new(false);
}
