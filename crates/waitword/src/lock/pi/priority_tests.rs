//! Priority inheritance, observed: three real-time threads on one CPU. If the lowest did not
//! inherit, the middle one would starve it, and with it the highest.
//!
//! No time is measured. The tests assert an order of events, and the priority that the kernel shows
//! in `/proc`. Where real-time scheduling is not allowed, or there is only one CPU, they report
//! that they skip.

use super::*;
use crate::lock::{PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32 as Cell32};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use waitword_testkit::{in_fresh_process, sleeps, until, watch};

const LOW: i32 = 1;
const MIDDLE: i32 = 2;
const HIGH: i32 = 3;

/// One test at a time has the CPU.
static TURN: Mutex<()> = Mutex::new(());

/// The first CPU that the process may use. Only the real-time threads of a test run there.
static STAGE: OnceLock<usize> = OnceLock::new();

/// Runs a test in a process of its own, away from the CPU of its real-time threads. The kernel's
/// own locks do not inherit: a thread of this process that lost the CPU to the middle thread while
/// it held `mmap_lock` would keep the highest in a page fault.
fn on_stage(test: impl FnOnce()) {
    let cpus = affinity();
    if cpus.len() < 2 {
        eprintln!(
            "skipped: one CPU only, which a real-time thread would take from the test itself"
        );
        return;
    }
    let allowed = std::thread::spawn(|| set_priority(LOW)).join().unwrap();
    if !allowed {
        eprintln!("skipped: real-time scheduling is not allowed here (EPERM)");
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(|broken| broken.into_inner());
    in_fresh_process(|| {
        let _watchdog = watch();
        STAGE.set(cpus[0]).unwrap();
        run_on(&cpus[1..]);
        test();
    });
}

/// The CPUs that the calling thread may use.
fn affinity() -> Vec<usize> {
    // SAFETY: all zeros are an empty set, and the call fills a complete one.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set), 0);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// Moves the calling thread, and those that it creates, to these CPUs.
fn run_on(cpus: &[usize]) {
    // SAFETY: a complete set, for the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set), 0);
    }
}

/// Makes the calling thread a SCHED_FIFO thread.
fn set_priority(priority: i32) -> bool {
    waitword_testkit::thread::set_policy(libc::SCHED_FIFO, priority)
}

/// Moves the calling thread to the test's CPU. Call it after `set_priority`: a real-time thread may
/// occupy that CPU for as long as other threads wait for this one.
fn go_on_stage() {
    run_on(&[*STAGE.get().unwrap()]);
}

/// The real-time priority that the kernel currently gives to a thread, including what was lent to
/// it.
fn effective_priority(tid: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    // After the name come "state ppid ...", so the 18th field of the line is the 16th after the
    // name. -2 is FIFO priority 1.
    let shown: i32 = after_name.split_whitespace().nth(15).unwrap().parse().unwrap();
    -1 - shown
}

/// Occupies the CPU until the condition holds. Gives up after some seconds, so that a bug does not
/// cost the machine its CPU.
fn spin_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() && begin.elapsed() < Duration::from_secs(5) {
        std::hint::spin_loop();
    }
}

/// The interface of a lock in these tests.
trait Lock: Sync {
    fn lock(&self);
    fn unlock(&self);
}

impl Lock for AtomicU32 {
    fn lock(&self) {
        assert_eq!(lock(self, Scope::Private), Ok(Acquired::Clean));
    }

    fn unlock(&self) {
        assert_eq!(unlock(self, Scope::Private), Ok(()));
    }
}

/// A lock without inheritance, to show that the tests would notice.
struct Plain(AtomicU32);

impl Lock for Plain {
    fn lock(&self) {
        while self.0.swap(1, SeqCst) != 0 {
            let _ = crate::sys::futex::wait(&self.0, 1, crate::sys::futex::ANY_BIT, None);
        }
    }

    fn unlock(&self) {
        self.0.store(0, SeqCst);
        crate::sys::futex::wake(&self.0, 1, crate::sys::futex::ANY_BIT);
    }
}

/// A scenario.
struct Play<'a> {
    mutex: &'a dyn Lock,
    /// The highest waits with this before the lowest locks, and it returns holding the lock.
    /// `None`: the highest locks.
    waits: Option<&'a (dyn Fn() + Sync)>,
    /// What the lowest does while it holds the lock.
    signals: &'a (dyn Fn() + Sync),
    /// Whether the middle one is expected to run while the lowest holds the lock.
    middle_runs: bool,
}

/// The result of a scenario.
struct Outcome {
    /// Whether the highest had the lock before the middle one had done its work.
    highest_first: bool,
    /// The priority of the lowest while it held the lock and the highest waited.
    lowest_at: i32,
}

/// The lowest holds the lock, and the highest wants it. The middle one arrives and occupies the CPU
/// for a while. Only then would the lowest unlock.
fn play(play: Play<'_>) -> Outcome {
    let order = Cell32::new(0);
    let [locked, go, middle_runs] = [(); 3].map(|()| AtomicBool::new(false));
    let [low, high, middle] = [(); 3].map(|()| Cell32::new(0));
    let highest = || {
        assert!(set_priority(HIGH));
        go_on_stage();
        high.store(tid(), SeqCst);
        play.waits.unwrap_or(&|| play.mutex.lock())();
        let place = order.fetch_add(1, SeqCst);
        play.mutex.unlock();
        place
    };
    let lowest = || {
        assert!(set_priority(LOW));
        go_on_stage();
        low.store(tid(), SeqCst);
        play.mutex.lock();
        (play.signals)();
        locked.store(true, SeqCst);
        spin_until(|| go.load(SeqCst));
        play.mutex.unlock();
    };
    let middle_one = || {
        assert!(set_priority(MIDDLE));
        middle.store(tid(), SeqCst);
        go_on_stage();
        middle_runs.store(true, SeqCst);
        // The highest may still sleep in a page fault when it has the lock.
        let begin = Instant::now();
        spin_until(|| order.load(SeqCst) != 0 || begin.elapsed() > Duration::from_millis(500));
        order.fetch_add(1, SeqCst)
    };
    let is_asleep = |who: &Cell32| who.load(SeqCst) != 0 && sleeps(who.load(SeqCst));
    std::thread::scope(|threads| {
        let mut highest_thread = None;
        if play.waits.is_some() {
            highest_thread = Some(threads.spawn(highest));
            until(|| is_asleep(&high));
        }
        threads.spawn(lowest);
        until(|| locked.load(SeqCst));
        let highest_thread = highest_thread.unwrap_or_else(|| threads.spawn(highest));
        until(|| is_asleep(&high));
        let lowest_at = effective_priority(low.load(SeqCst));
        let middle_thread = threads.spawn(middle_one);
        if play.middle_runs {
            until(|| middle_runs.load(SeqCst));
        } else {
            // It cannot report that it has arrived: it must not run.
            until(|| middle.load(SeqCst) != 0);
            std::thread::sleep(Duration::from_millis(20));
        }
        go.store(true, SeqCst);
        let (highest, middle) = (highest_thread.join(), middle_thread.join());
        Outcome { highest_first: highest.unwrap() < middle.unwrap(), lowest_at }
    })
}

#[test]
fn the_owner_inherits_from_a_waiter_for_the_mutex() {
    on_stage(|| {
        let outcome = play(Play {
            mutex: &AtomicU32::new(FREE),
            waits: None,
            signals: &|| {},
            middle_runs: false,
        });
        assert_eq!(outcome.lowest_at, HIGH);
        assert!(outcome.highest_first);
    });
}

#[test]
fn without_inheritance_the_middle_one_is_first() {
    on_stage(|| {
        let outcome = play(Play {
            mutex: &Plain(AtomicU32::new(0)),
            waits: None,
            signals: &|| {},
            middle_runs: true,
        });
        assert_eq!(outcome.lowest_at, LOW);
        assert!(!outcome.highest_first, "the other tests show nothing");
    });
}

/// A condition with its mutex, as in a program.
struct Condition {
    mutex: RawPosixMutex,
    condvar: RawCondvar,
    changed: AtomicBool,
}

impl Condition {
    fn new() -> Self {
        let mutex = PosixMutexOptions::new().flavour(PosixFlavour::PriorityInheriting);
        Self {
            mutex: mutex.build_raw(),
            condvar: RawCondvar::new(),
            changed: AtomicBool::new(false),
        }
    }

    /// Returns holding the mutex.
    fn wait(&self) {
        self.mutex.lock();
        while !self.changed.load(SeqCst) {
            // SAFETY: locked above, or by the previous wait; it is the only mutex here.
            assert_eq!(unsafe { self.condvar.wait(&self.mutex, None) }, Ok(()));
        }
    }
}

impl Lock for RawPosixMutex {
    fn lock(&self) {
        RawPosixMutex::lock(self);
    }

    fn unlock(&self) {
        // SAFETY: the mutex records its owner, and reports an error if that is not the caller.
        assert_eq!(unsafe { self.unlock_checked() }, Ok(()));
    }
}

#[test]
fn the_owner_inherits_from_a_signalled_waiter() {
    on_stage(|| {
        let condition = Condition::new();
        let outcome = play(Play {
            mutex: &condition.mutex,
            waits: Some(&|| condition.wait()),
            signals: &|| {
                condition.changed.store(true, SeqCst);
                assert!(condition.condvar.notify_one());
            },
            middle_runs: false,
        });
        assert_eq!(outcome.lowest_at, HIGH);
        assert!(outcome.highest_first);
    });
}

/// All threads run on one CPU, and the signaller has the highest priority: all waiters have been
/// woken before the first of them runs.
#[test]
fn a_broadcast_serves_by_priority() {
    on_stage(|| {
        let condition = Condition::new();
        let served = Mutex::new(Vec::new());
        std::thread::scope(|threads| {
            let priorities = [2, 4, 1, 3];
            for priority in priorities {
                let waiter: &Cell32 = Box::leak(Box::new(Cell32::new(0)));
                let (condition, served) = (&condition, &served);
                threads.spawn(move || {
                    assert!(set_priority(priority));
                    go_on_stage();
                    waiter.store(tid(), SeqCst);
                    condition.wait();
                    // This lock is uncontended: the lock under test keeps other threads out.
                    served.lock().unwrap().push(priority);
                    Lock::unlock(&condition.mutex);
                });
                until(|| waiter.load(SeqCst) != 0 && sleeps(waiter.load(SeqCst)));
            }
            let all = threads.spawn(|| {
                assert!(set_priority(5));
                go_on_stage();
                condition.mutex.lock();
                condition.changed.store(true, SeqCst);
                let signalled = condition.condvar.notify_all();
                Lock::unlock(&condition.mutex);
                signalled
            });
            assert_eq!(all.join().unwrap(), priorities.len());
        });
        assert_eq!(*served.lock().unwrap(), [4, 3, 2, 1]);
    });
}

/// The signaller runs on the waiter's CPU with a higher priority, so the waiter has not run yet
/// when the signal returns. A mutex that was free before is still free, for any thread to take. It
/// is not held by a sleeping thread.
#[test]
fn a_signal_leaves_a_free_mutex_free() {
    on_stage(|| {
        let condition = Condition::new();
        let waiter = Cell32::new(0);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                assert!(set_priority(LOW));
                go_on_stage();
                waiter.store(tid(), SeqCst);
                condition.wait();
                Lock::unlock(&condition.mutex);
            });
            until(|| waiter.load(SeqCst) != 0 && sleeps(waiter.load(SeqCst)));
            let signaller = threads.spawn(|| {
                assert!(set_priority(HIGH));
                go_on_stage();
                condition.changed.store(true, SeqCst);
                assert!(condition.condvar.notify_one());
                let taken = condition.mutex.try_lock_checked();
                if taken.is_ok() {
                    Lock::unlock(&condition.mutex);
                }
                taken
            });
            assert_eq!(signaller.join().unwrap(), Ok(()));
        });
    });
}
