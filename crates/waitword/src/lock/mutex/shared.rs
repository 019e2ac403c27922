//! Process-shared mutexes of every flavour but the priority-inheriting: the word is the kernel's futex.
//!
//! There is no queue of our own here, so what others did with it cannot be one step with a change of the word. The
//! bits are those of `word.rs`, of which three are used:
//!
//! | LOCKED | PARKED | HANDOFF | meaning |
//! |--------|--------|---------|---------|
//! | 0 | any | 0 | free |
//! | 1 | 0 | 0 | held |
//! | 1 | 1 | any | held, and somebody may sleep: the unlock wakes one |
//! | 1 | any | 1 | a sleeper has waited too long: the unlock reserves it |
//! | 0 | 1 | 1 | free, but for whoever has slept for it |
//!
//! A reservation may be for nobody: who asked for it has given up, or was killed. So a try takes a reserved lock, and who
//! has waited until it is void takes it whatever its deadline says. A real-time thread takes it at
//! once: those who have slept for it are awake, and may be of a lower priority. (The kernel's queue
//! is in the order of priorities.)
//!
//! Whoever has slept takes the lock with PARKED set, since others may sleep still (Drepper's mutex 2: one
//! wake call too many at the end, and none too few).
//!
//! # A process that dies
//!
//! A holder that is killed leaves the lock held for ever; a [robust mutex](crate::RobustMutex) is for that. A *waiter* that is
//! killed must do no harm. It may have been the one that an unlock woke. Without a reservation the lock is
//! free for whoever comes, and the sleepers behind it are woken by the next unlock, as PARKED
//! stays set only until then; so each woken thread that finds the lock taken sets it again. With a
//! reservation, nobody who sleeps for a reserved lock sleeps longer than [`RESERVED_FOR`]; then it has slept, and may take it.
//!
//! The one wake-up that a killed waiter can take with it is the one that it was just given: the unlock has cleared PARKED,
//! and nobody sets it again. Those who sleep then sleep until another thread comes to wait and sets it. (The same
//! holds of glibc's.)

use super::waiter::Moment;
use super::word::{HANDOFF, LOCKED, PARKED, State};
use super::{LockTimedOut, PosixFlavour, RawPosixMutex};
use crate::atomic::Ordering;
use crate::park::spin::{self, Spin};
use crate::sys::Errno;
use crate::sys::clock::Deadline;
use crate::sys::futex::{KernelWord, shared_wake, word_wait};
use crate::sys::sched;
use core::time::Duration;

/// After how many nanoseconds of waiting a sleeper has the lock reserved for those who sleep.
const IMPATIENT_AFTER: u64 = 1_000_000;
/// How long a reservation holds if nobody takes it.
const RESERVED_FOR: Duration = Duration::from_millis(10);

/// Whether a thread that has not slept for it, but could, may take it.
fn may_take(state: State) -> bool {
    state.0 & (LOCKED | HANDOFF) == 0
}

/// As taken by a thread that does not wait; `None` if it must.
pub(super) fn taken_at_once(state: State) -> Option<State> {
    (!state.is_locked()).then_some(State(state.0 & !HANDOFF | LOCKED))
}

/// Takes the lock, as a thread that has found it taken.
#[cold]
pub(super) fn lock(mutex: &RawPosixMutex, deadline: Option<&Deadline>) -> Result<(), LockTimedOut> {
    if mutex.flavour() != PosixFlavour::WaitWake && spin(mutex) {
        return Ok(());
    }
    lock_sleeping(mutex, deadline, false)
}

/// Takes the lock, as a thread that has slept on its word and was woken from there or moved to it.
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
    let began = Moment::now();
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
            && began.elapsed() > IMPATIENT_AFTER;
        let announced = State(state.0 | PARKED | if impatient { HANDOFF } else { 0 });
        if announced != state && mutex.change(state, announced, Ordering::Relaxed).is_err() {
            continue;
        }
        has_slept |= sleep(mutex, announced, deadline)?;
    }
}

/// Stays awake for a while, before anything else; whether the lock was had.
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
            // Others sleep already: more who are awake would only push each other aside.
            return false;
        }
        if !spin.again() {
            return false;
        }
    }
}

/// Sleeps while the word is as announced; whether it did.
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

/// Gives the lock back.
#[cold]
pub(super) fn unlock(mutex: &RawPosixMutex) {
    let mut state = mutex.state();
    loop {
        // With a sleeper that has waited too long, reserved; else free, and whoever is woken says that others sleep.
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
        // The memory may be gone by now: the kernel only looks the address up, and at worst wakes somebody who
        // looks again. An error says that there is nobody.
        let _ = shared_wake(KernelWord::address(&mutex.word), 1, u32::MAX);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::{Kind, PosixMutexOptions};
    use crate::{Clock, Scope};

    /// Private words have other bits, so these are what an unlock of a shared one leaves.
    const RESERVED: u32 = PARKED | HANDOFF;

    fn mutexes() -> impl Iterator<Item = RawPosixMutex> {
        let shared = PosixMutexOptions::new().scope(Scope::Shared);
        let flavours = [
            PosixFlavour::Adaptive,
            PosixFlavour::Throughput,
            PosixFlavour::WaitWake,
        ];
        let kinds = [Kind::Normal, Kind::Recursive, Kind::ErrorChecking];
        flavours.into_iter().flat_map(move |flavour| {
            kinds.map(|kind| shared.flavour(flavour).kind(kind).build_raw())
        })
    }

    fn set(mutex: &RawPosixMutex, bits: u32) {
        mutex.word.fetch_or(bits, Ordering::Relaxed);
    }

    fn unlock(mutex: &RawPosixMutex) {
        // SAFETY: every caller has locked it.
        unsafe { mutex.unlock() };
    }

    fn long_ago() -> Deadline {
        Deadline::at(Clock::Monotonic, Duration::ZERO)
    }

    /// Whoever asked for the reservation has given up, or was killed: a try found it busy for ever, and so did every wait
    /// that was shorter than the reservation.
    #[test]
    fn a_reservation_for_nobody_does_not_keep_others_out() {
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

    /// A private lock once kept its holder's CPU there. A try put it into the word of a shared one,
    /// where no unlock removed it: the lock was contended for ever, and could not be destroyed.
    #[test]
    fn a_try_leaves_no_cpu_in_the_word() {
        for mutex in mutexes() {
            let free = mutex.word.load(Ordering::Relaxed);
            // As after an unlock that a sleeper came in the middle of.
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

    /// How often the calling thread has gone to sleep.
    fn sleeps() -> i64 {
        // SAFETY: all zeros is such a structure, and the call writes one.
        unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
            usage.ru_nvcsw
        }
    }

    /// The thread that it is reserved for may be of a lower priority, and not get a CPU.
    #[test]
    fn a_real_time_thread_does_not_wait_for_a_reservation() {
        let test = || {
            let parameter = libc::sched_param { sched_priority: 1 };
            // SAFETY: a whole structure, which the call only reads; 0 is the calling thread.
            if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } != 0 {
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

    /// A deadline within the time of a reservation is kept.
    #[test]
    fn a_reservation_does_not_stretch_a_deadline() {
        for mutex in mutexes() {
            mutex.lock();
            set(&mutex, RESERVED);
            unlock(&mutex);
            // It comes before the reservation is void; then the lock is had, since it is free.
            let before = crate::sys::clock::now(Clock::Monotonic);
            let soon = Deadline::after(Duration::from_micros(100));
            assert_eq!(mutex.lock_until(soon), Ok(()));
            assert!(soon.has_passed() || before < crate::sys::clock::now(Clock::Monotonic));
            unlock(&mutex);
        }
    }
}
