//! Process-shared mutexes of every flavour except the priority-inheriting one: the word is the
//! kernel's futex.
//!
//! The queue is the kernel's, so it cannot change in one step with the word. The bits are those of
//! `word.rs`, of which three are used:
//!
//! | LOCKED | PARKED | HANDOFF | meaning |
//! |--------|--------|---------|---------|
//! | 0 | any | 0 | free |
//! | 1 | 0 | 0 | held |
//! | 1 | 1 | any | held, and threads may be asleep: the unlock wakes one |
//! | 1 | any | 1 | held, and a sleeper has waited too long: the unlock reserves the lock |
//! | 0 | 1 | 1 | free, but reserved for threads that have slept for it |
//!
//! A reservation may be for no thread: the one that asked for it has given up, or was killed. So a
//! try takes a reserved lock, and a thread that has waited until the reservation is void takes the
//! lock whatever its deadline is. A real-time thread takes a reserved lock at once: the threads
//! that have slept for it are awake, and may have a lower priority. (The kernel's queue is in the
//! order of priorities.)
//!
//! A thread that has slept takes the lock with PARKED set, since other threads may still be asleep.
//! (Drepper's mutex 2: one wake call too many at the end, and none too few.)
//!
//! # A process that dies
//!
//! A holder that is killed leaves the lock held forever; use a [robust mutex](crate::RobustMutex)
//! against that. A *waiter* that is killed must do no harm. It may have been the one that an unlock
//! woke. Without a reservation, any thread may take the lock. The sleepers behind the killed waiter
//! are woken by the next unlock if PARKED is set. PARKED stays set only until an unlock, so each
//! woken thread that finds the lock taken sets it again. With a reservation, no thread sleeps for
//! longer than [`RESERVED_FOR`] for the reserved lock; after that it has slept, and may take it.
//!
//! A killed waiter can take one wake-up with it, the one that it was just given: the unlock has
//! cleared PARKED, and no thread sets it again. The other sleepers then sleep until another thread
//! comes to wait and sets it. (The same is true of glibc's mutex.)

use super::waiter::elapsed;
use super::word::{HANDOFF, LOCKED, PARKED, State};
use super::{LockTimedOut, PosixFlavour, RawPosixMutex};
use crate::atomic::Ordering;
use crate::park::spin::{self, Spin};
use crate::sys::Errno;
use crate::sys::clock::{Deadline, nanoseconds as now};
use crate::sys::futex::{KernelWord, shared_wake, word_wait};
use crate::sys::sched;
use core::time::Duration;

/// After how many nanoseconds of waiting a sleeper asks for a reservation for the sleepers.
const IMPATIENT_AFTER: u64 = 1_000_000;
/// How long a reservation lasts if no thread takes the lock.
const RESERVED_FOR: Duration = Duration::from_millis(10);

/// Whether a thread that has not slept, but could, may take the lock.
fn may_take(state: State) -> bool {
    state.0 & (LOCKED | HANDOFF) == 0
}

/// The state as taken by a thread that does not wait; `None` if it must.
pub(super) fn taken_at_once(state: State) -> Option<State> {
    (!state.is_locked()).then_some(State(state.0 & !HANDOFF | LOCKED))
}

/// Takes the lock, for a thread that has found it taken.
#[cold]
pub(super) fn lock(mutex: &RawPosixMutex, deadline: Option<&Deadline>) -> Result<(), LockTimedOut> {
    if mutex.flavour() != PosixFlavour::WaitWake && spin(mutex) {
        return Ok(());
    }
    lock_sleeping(mutex, deadline, false)
}

/// Takes the lock, for a thread that has slept on its word and was woken there, or was moved to it.
#[cold]
pub(super) fn lock_after_sleep(mutex: &RawPosixMutex) {
    let without_deadline = lock_sleeping(mutex, None, true);
    debug_assert!(without_deadline.is_ok());
}

fn lock_sleeping(
    mutex: &RawPosixMutex,
    deadline: Option<&Deadline>,
    mut has_slept: bool,
) -> Result<(), LockTimedOut> {
    let began = now();
    loop {
        let state = mutex.state();
        if !state.is_locked() && (has_slept || may_take(state) || sched::priority() != 0) {
            let parked = if has_slept { PARKED } else { 0 };
            let taken = State(state.0 & !HANDOFF | LOCKED | parked);
            if mutex.change(state, taken, Ordering::Acquire).is_ok() {
                return Ok(());
            }
            continue;
        }
        let impatient = has_slept
            && mutex.flavour() != PosixFlavour::WaitWake
            && elapsed(began) > IMPATIENT_AFTER;
        let announced = State(state.0 | PARKED | if impatient { HANDOFF } else { 0 });
        if announced != state && mutex.change(state, announced, Ordering::Relaxed).is_err() {
            continue;
        }
        has_slept |= sleep(mutex, announced, deadline)?;
    }
}

/// Stays awake for a while before anything else. Returns whether the lock was taken.
fn spin(mutex: &RawPosixMutex) -> bool {
    if !spin::is_allowed() {
        return false;
    }
    let mut spin = Spin::at(core::ptr::from_ref(mutex).addr());
    loop {
        let state = mutex.state();
        if may_take(state) {
            let taken = State(state.0 | LOCKED);
            if mutex.change(state, taken, Ordering::Acquire).is_ok() {
                spin.won();
                return true;
            }
        } else if state.0 & (PARKED | HANDOFF) != 0 {
            // Other threads sleep already. With more threads awake, they would only push each other
            // aside.
            return false;
        }
        if !spin.again() {
            return false;
        }
    }
}

/// Sleeps while the word is as announced. Returns whether it slept.
fn sleep(
    mutex: &RawPosixMutex,
    announced: State,
    deadline: Option<&Deadline>,
) -> Result<bool, LockTimedOut> {
    let reserved = !announced.is_locked();
    let until = match (reserved, deadline) {
        (false, deadline) => deadline.copied(),
        (true, Some(deadline)) if deadline.time_left() < RESERVED_FOR => Some(*deadline),
        (true, _) => Some(Deadline::after(RESERVED_FOR)),
    };
    match word_wait(&mutex.word, announced.0, u32::MAX, until.as_ref()) {
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(Errno::TIMEDOUT) if !reserved => Err(LockTimedOut),
        _ => Ok(true),
    }
}

/// Releases the lock.
#[cold]
pub(super) fn unlock(mutex: &RawPosixMutex) {
    let mut state = mutex.state();
    loop {
        // Reserved if a sleeper has waited too long. Otherwise free: the woken thread sets PARKED
        // again for the threads that still sleep.
        let next = if state.0 & (PARKED | HANDOFF) == PARKED | HANDOFF {
            state.0 & !LOCKED
        } else {
            state.0 & !(LOCKED | PARKED | HANDOFF)
        };
        match mutex.change(state, State(next), Ordering::Release) {
            Ok(()) => break,
            Err(now) => state = now,
        }
    }
    if state.has_parked() {
        // The memory may be gone by now. The kernel only looks the address up, and at worst wakes
        // an unrelated thread, which then checks its own word again. An error means that there is
        // no such thread.
        let _ = shared_wake(KernelWord::address(&mutex.word), 1, u32::MAX);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::{Kind, PosixMutexOptions};
    use crate::{Clock, Scope};

    /// What an unlock of a shared mutex leaves. Private words use other bits.
    const RESERVED: u32 = PARKED | HANDOFF;

    fn mutexes() -> impl Iterator<Item = RawPosixMutex> {
        let shared = PosixMutexOptions::new().scope(Scope::Shared);
        let flavours = [PosixFlavour::Adaptive, PosixFlavour::Throughput, PosixFlavour::WaitWake];
        let kinds = [Kind::Normal, Kind::Recursive, Kind::ErrorChecking];
        flavours.into_iter().flat_map(move |flavour| {
            kinds.map(|kind| shared.flavour(flavour).kind(kind).build_raw())
        })
    }

    fn set(mutex: &RawPosixMutex, bits: u32) {
        mutex.word.fetch_or(bits, Ordering::Relaxed);
    }

    fn unlock(mutex: &RawPosixMutex) {
        // SAFETY: every caller has locked the mutex.
        unsafe { mutex.unlock() };
    }

    fn long_ago() -> Deadline {
        Deadline::at(Clock::Monotonic, Duration::ZERO)
    }

    /// The thread that asked for the reservation has given up, or was killed. In an earlier version
    /// a try then found the lock busy forever, and so did every wait shorter than the reservation.
    #[test]
    fn a_void_reservation_keeps_no_thread_out() {
        for mutex in mutexes() {
            let free = mutex.word.load(Ordering::Relaxed);
            for how in 0..3 {
                mutex.lock();
                set(&mutex, RESERVED);
                unlock(&mutex);
                assert_eq!(mutex.word.load(Ordering::Relaxed), free | RESERVED);
                assert!(!mutex.is_locked());
                match how {
                    0 => assert!(mutex.try_lock()),
                    1 => assert_eq!(mutex.lock_until(long_ago()), Ok(())),
                    _ => mutex.lock(),
                }
                unlock(&mutex);
                assert_eq!(mutex.word.load(Ordering::Relaxed), free);
            }
            set(&mutex, RESERVED);
            assert_eq!(mutex.destroy(), Ok(()));
        }
    }

    /// A private lock once kept its holder's CPU in the word. A try put the CPU into the word of a
    /// shared lock, where no unlock removed it: the lock was contended forever and could not be
    /// destroyed.
    #[test]
    fn a_try_leaves_no_cpu_in_the_word() {
        for mutex in mutexes() {
            let free = mutex.word.load(Ordering::Relaxed);
            // As after an unlock during which a sleeper came.
            set(&mutex, PARKED);
            assert!(mutex.try_lock());
            assert_eq!(mutex.word.load(Ordering::Relaxed), free | PARKED | LOCKED);
            unlock(&mutex);
            assert_eq!(mutex.word.load(Ordering::Relaxed), free);
            set(&mutex, PARKED);
            mutex.lock_after_wait(0);
            assert_eq!(mutex.word.load(Ordering::Relaxed), free | PARKED | LOCKED);
            unlock(&mutex);
            assert_eq!(mutex.destroy(), Ok(()));
        }
    }

    /// How many times the calling thread has gone to sleep.
    fn sleeps() -> i64 {
        // SAFETY: all zeros is a valid `rusage`, and the call writes one.
        unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
            usage.ru_nvcsw
        }
    }

    /// The thread that the lock is reserved for may have a lower priority, and get no CPU.
    #[test]
    fn a_real_time_thread_does_not_wait_for_a_reservation() {
        let test = || {
            if !waitword_testkit::thread::set_policy(libc::SCHED_FIFO, 1) {
                eprintln!("SKIPPED: SCHED_FIFO is not permitted here");
                return;
            }
            for mutex in mutexes() {
                set(&mutex, RESERVED);
                let before = sleeps();
                mutex.lock();
                assert_eq!(sleeps(), before, "it has slept");
                unlock(&mutex);
                assert_eq!(mutex.destroy(), Ok(()));
            }
        };
        std::thread::spawn(test).join().unwrap();
    }

    /// A deadline that ends before the reservation does is observed.
    #[test]
    fn a_reservation_does_not_stretch_a_deadline() {
        for mutex in mutexes() {
            mutex.lock();
            set(&mutex, RESERVED);
            unlock(&mutex);
            // The deadline passes before the reservation is void. The lock is then taken, since it
            // is free.
            let before = crate::sys::clock::now(Clock::Monotonic);
            let soon = Deadline::after(Duration::from_micros(100));
            assert_eq!(mutex.lock_until(soon), Ok(()));
            assert!(soon.has_passed() || before < crate::sys::clock::now(Clock::Monotonic));
            unlock(&mutex);
        }
    }
}
