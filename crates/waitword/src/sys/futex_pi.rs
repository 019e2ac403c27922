//! The kernel's priority-inheriting futexes: the calls of futex(2) that put a thread's number into a word and
//! lend its owner the priority of the highest of those who wait for it.
//!
//! The kernel knows two worlds here as everywhere: `private` says that only threads of this process use
//! the word. Words are the caller's; the kernel changes them atomically.

use super::clock::{Clock, Deadline, now};
use super::from_raw;
use super::moving_time::Time;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use rustix::io::Errno;
use rustix::thread::futex as kernel;
use syscalls::{Sysno, syscall6};

fn flags(private: bool) -> kernel::Flags {
    if private {
        kernel::Flags::PRIVATE
    } else {
        kernel::Flags::empty()
    }
}

const CLOCK_REALTIME: usize = 256;

fn private_bit(private: bool) -> usize {
    const PRIVATE: usize = 128;
    if private { PRIVATE } else { 0 }
}

/// FUTEX_LOCK_PI, or FUTEX_LOCK_PI2 where the deadline is on the monotonic clock: takes the word, or sleeps
/// until it is handed over.
///
/// # Errors
/// `EDEADLK`, `ESRCH`, `ETIMEDOUT`, `EAGAIN`, `EPERM`, `EINVAL`, `ENOMEM`, `ENOSYS`: see `lock/pi.rs`.
pub(crate) fn lock(
    word: &AtomicU32,
    private: bool,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let flags = flags(private);
    match deadline {
        // LOCK_PI's time is on the wall clock, whatever the flags.
        Some(deadline) if deadline.clock == Clock::Realtime => {
            kernel::lock_pi(word, flags, Some(&deadline.to_timespec()))
        }
        Some(deadline) => lock_monotonic(word, flags, deadline),
        None => kernel::lock_pi(word, flags, None),
    }
}

fn lock_monotonic(
    word: &AtomicU32,
    flags: kernel::Flags,
    deadline: &Deadline,
) -> Result<(), Errno> {
    /// Before Linux 5.14, or in a sandbox. Relaxed: at worst somebody asks once more.
    static WITHOUT_LOCK_PI2: AtomicBool = AtomicBool::new(false);
    #[cfg(test)]
    if pretend::WITHOUT_LOCK_PI2.load(Ordering::Relaxed) {
        return lock_by_wall_clock(word, flags, deadline);
    }
    if !WITHOUT_LOCK_PI2.load(Ordering::Relaxed) {
        match kernel::lock_pi2(word, flags, Some(&deadline.to_timespec())) {
            Err(Errno::NOSYS) => WITHOUT_LOCK_PI2.store(true, Ordering::Relaxed),
            answer => return answer,
        }
    }
    lock_by_wall_clock(word, flags, deadline)
}

/// A monotonic deadline on a kernel that knows the wall clock only. If that is set back meanwhile, the
/// call lasts longer by as much; never shorter.
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
        match kernel::lock_pi(word, flags, Some(&time)) {
            // The wall clock was set forward.
            Err(Errno::TIMEDOUT) if !deadline.has_passed() => {}
            answer => return answer,
        }
    }
}

/// FUTEX_TRYLOCK_PI: takes the word if that needs no waiting; for words whose owner is gone, which only the kernel
/// can take.
///
/// # Errors
/// `EAGAIN` if somebody holds it; as [`lock`].
pub(crate) fn try_lock(word: &AtomicU32, private: bool) -> Result<(), Errno> {
    kernel::trylock_pi(word, flags(private)).map(drop)
}

/// FUTEX_UNLOCK_PI: hands the word to the highest of its waiters, or frees it.
///
/// # Errors
/// `EPERM` if the caller is not the owner; `EAGAIN`, `EINVAL`.
pub(crate) fn unlock(word: &AtomicU32, private: bool) -> Result<(), Errno> {
    kernel::unlock_pi(word, flags(private))
}

/// FUTEX_WAIT_REQUEUE_PI: sleeps on `word` while that holds `expected`, until requeued to `mutex` and owner of
/// that, or until `time` on its clock.
///
/// # Errors
/// `EAGAIN`, `ETIMEDOUT`, `EDEADLK`, `EINVAL`, `ENOSYS`: see `lock/pi.rs`.
pub(crate) fn wait_requeue(
    word: &AtomicU32,
    expected: u32,
    (time, clock): (&Time, Clock),
    mutex: &AtomicU32,
    private: bool,
) -> Result<(), Errno> {
    const WAIT_REQUEUE_PI: usize = 11;
    let by_wall_clock = match clock {
        Clock::Realtime => CLOCK_REALTIME,
        Clock::Monotonic => 0,
    };
    let op = WAIT_REQUEUE_PI | private_bit(private) | by_wall_clock;
    // SAFETY: words, and a time which the kernel only reads.
    let answer = unsafe {
        syscall6(
            Sysno::futex,
            word.as_ptr().expose_provenance(),
            op,
            expected as usize,
            core::ptr::from_ref(time).expose_provenance(),
            mutex.as_ptr().expose_provenance(),
            0,
        )
    };
    from_raw(answer).map(drop)
}

/// FUTEX_CMP_REQUEUE_PI: if `word` holds `expected`, gives `mutex`, if it is free, to the first waiter, and
/// has that one (otherwise) and `others` more wait for `mutex`; how many that were in all.
///
/// # Errors
/// `EAGAIN` if `word` holds something else; `EDEADLK`, `ESRCH`, `EINVAL`, `EPERM`, `ENOMEM`, `ENOSYS`.
///
/// # Safety
/// If anybody waits on `word`, `mutex` exists. (Else it is but an address.)
pub(crate) unsafe fn requeue(
    word: &AtomicU32,
    expected: u32,
    mutex: *const AtomicU32,
    others: u32,
    private: bool,
) -> Result<usize, Errno> {
    const CMP_REQUEUE_PI: usize = 12;
    let op = CMP_REQUEUE_PI | private_bit(private);
    // SAFETY: the caller's promise. The number to wake is 1, as the kernel demands.
    from_raw(unsafe {
        syscall6(
            Sysno::futex,
            word.as_ptr().expose_provenance(),
            op,
            1,
            others as usize,
            mutex.expose_provenance(),
            expected as usize,
        )
    })
}

/// Kernels that this machine does not run, for tests of what happens there.
#[cfg(test)]
pub(crate) mod pretend {
    use core::sync::atomic::AtomicBool;

    /// Before Linux 5.14.
    pub(crate) static WITHOUT_LOCK_PI2: AtomicBool = AtomicBool::new(false);
}
