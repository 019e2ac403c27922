//! Waits that another thread ends: the interrupted thread stops, wherever it was, and takes no
//! signal with it.

use super::*;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use waitword::abi_support::{
    CondvarHooks as _, Interrupter, OnceHooks as _, SemaphoreHooks as _, Wakeup,
};
use waitword::{Barrier, Once, Preference, RawRwLock, Semaphore};
use waitword_testkit::watch;

/// How often each test stops its threads.
const ROUNDS: u32 = 400;

/// A different moment each time: sometimes before the other thread waits, sometimes after.
fn some_time(round: u32) {
    match round % 4 {
        0 => {}
        1 => std::thread::yield_now(),
        2 => (0..round * 7 % 3000).for_each(|_| std::hint::spin_loop()),
        _ => std::thread::sleep(Duration::from_micros(u64::from(round % 90))),
    }
}

struct Stop {
    asked: AtomicBool,
    by: Interrupter,
}

impl Default for Stop {
    fn default() -> Self {
        Self { asked: AtomicBool::new(false), by: Interrupter::signalled() }
    }
}

impl Stop {
    fn ask(&self) {
        self.asked.store(true, SeqCst);
        self.by.interrupt_with(|tid| {
            extern "C" fn nothing(_: i32) {}
            let handler: extern "C" fn(i32) = nothing;
            // SAFETY: a handler that does nothing; a thread of this process, or one that has ended.
            unsafe {
                libc::signal(libc::SIGUSR1, handler as libc::sighandler_t);
                libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1);
            }
        });
    }

    /// Whether to continue, and wait.
    fn goes_on(&self) -> bool {
        self.by.clear();
        !self.asked.load(SeqCst)
    }
}

#[test]
fn a_condvar_wait_is_ended() {
    let watchdog = watch();
    for flavour in FLAVOURS {
        for round in 0..ROUNDS {
            let mutex = PosixMutexOptions::new().flavour(flavour).build_raw();
            let condvar = RawCondvar::new();
            let stops = [(); 3].map(|()| Stop::default());
            std::thread::scope(|scope| {
                for stop in &stops {
                    scope.spawn(|| {
                        mutex.lock();
                        while stop.goes_on() {
                            // SAFETY: locked above; they all wait with this one.
                            let waited =
                                unsafe { condvar.wait_interruptible(&mutex, None, &stop.by) };
                            waited.unwrap();
                        }
                        // SAFETY: locked above, or by the wait.
                        unsafe { mutex.unlock() };
                    });
                }
                some_time(round);
                for (index, stop) in stops.iter().enumerate() {
                    // Also while the thread that stops them holds the mutex.
                    let holds = index == 1;
                    if holds {
                        mutex.lock();
                    }
                    stop.ask();
                    if holds {
                        // SAFETY: locked above.
                        unsafe { mutex.unlock() };
                    }
                }
            });
            assert_eq!(condvar.destroy(), Ok(()));
            watchdog.pat();
        }
    }
}

/// It gets no signal, and with a priority-inheriting mutex it waits in the kernel: it checks by
/// itself.
#[test]
fn a_waiter_that_is_not_signalled_looks() {
    let _watchdog = watch();
    let far_away = Deadline::after(Duration::from_secs(1000));
    for (round, deadline) in [None, Some(&far_away), None].into_iter().enumerate() {
        let mutex = PosixMutexOptions::new().flavour(PosixFlavour::PriorityInheriting).build_raw();
        let (condvar, by) = (RawCondvar::new(), Interrupter::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                mutex.lock();
                // SAFETY: locked above; no other thread waits.
                let waited = unsafe { condvar.wait_interruptible(&mutex, deadline, &by) };
                assert_eq!(waited, Ok(Wakeup::Interrupted));
                // SAFETY: locked by the wait.
                unsafe { mutex.unlock() };
            });
            std::thread::sleep(Duration::from_millis(60 * round as u64));
            by.interrupt();
        });
    }
}

/// Its deadline holds all the same, whether it is before or after the next check.
#[test]
fn a_deadline_in_the_kernel_holds() {
    let _watchdog = watch();
    let mutex = PosixMutexOptions::new().flavour(PosixFlavour::PriorityInheriting).build_raw();
    let condvar = RawCondvar::new();
    for by in [Interrupter::new(), Interrupter::signalled()] {
        for milliseconds in [0, 20, 150] {
            let deadline = Deadline::after(Duration::from_millis(milliseconds));
            mutex.lock();
            // SAFETY: locked above; no other thread waits.
            let waited = unsafe { condvar.wait_interruptible(&mutex, Some(&deadline), &by) };
            assert_eq!(waited, Err(LockError::TimedOut));
            assert!(deadline.has_passed());
            // SAFETY: locked by the wait.
            unsafe { mutex.unlock() };
        }
    }
}

/// As many signals as tokens. A waiter that is interrupted at the same time gets none of them.
#[test]
fn no_signal_goes_to_an_interrupted_waiter() {
    let watchdog = watch();
    for flavour in FLAVOURS {
        // In the kernel a signal also wakes threads that are about to sleep, and does not count
        // them.
        let in_kernel = flavour == PosixFlavour::PriorityInheriting;
        for round in 0..ROUNDS {
            let mutex = PosixMutexOptions::new().flavour(flavour).build_raw();
            let condvar = RawCondvar::new();
            let waiting = AtomicUsize::new(0);
            let stops = [(); 3].map(|()| Stop::default());
            let signalled = std::thread::scope(|scope| {
                let waiters = stops.each_ref().map(|stop| {
                    let (mutex, condvar, waiting) = (&mutex, &condvar, &waiting);
                    scope.spawn(move || {
                        mutex.lock();
                        waiting.fetch_add(1, SeqCst);
                        // SAFETY: locked above; they all wait with this one.
                        let wakeup =
                            unsafe { condvar.wait_interruptible(mutex, None, &stop.by) }.unwrap();
                        // SAFETY: locked by the wait.
                        unsafe { mutex.unlock() };
                        wakeup
                    })
                });
                while waiting.load(SeqCst) < 3 {
                    std::thread::yield_now();
                }
                // A thread that holds the mutex now knows that the last of them has released it, so
                // it waits.
                mutex.lock();
                // SAFETY: locked just now.
                unsafe { mutex.unlock() };
                let first = scope.spawn(|| stops[0].ask());
                some_time(round);
                assert!(condvar.notify_one() || in_kernel);
                first.join().unwrap();
                for stop in &stops {
                    stop.ask();
                }
                let wakeups = waiters.map(|waiter| waiter.join().unwrap());
                wakeups.into_iter().filter(|&wakeup| wakeup == Wakeup::Signalled).count()
            });
            assert!(signalled == 1 || in_kernel && signalled > 1, "{flavour:?}: {signalled}");
            watchdog.pat();
        }
    }
}

#[test]
fn a_semaphore_wait_is_ended() {
    let watchdog = watch();
    for round in 0..ROUNDS {
        let semaphore = Semaphore::new(0);
        let stops = [(); 3].map(|()| Stop::default());
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for stop in &stops {
                scope.spawn(|| {
                    while stop.goes_on() {
                        let deadline = Deadline::after(Duration::from_secs(100));
                        if semaphore.wait_interruptible_by(Some(deadline), &stop.by).is_ok() {
                            taken.fetch_add(1, SeqCst);
                        }
                    }
                });
            }
            some_time(round);
            semaphore.post().unwrap();
            stops.iter().for_each(Stop::ask);
        });
        assert_eq!(semaphore.value() as usize + taken.load(SeqCst), 1);
        watchdog.pat();
    }
}

/// Until it is stopped, a thread waits for what it cannot get, with a deadline that never comes by
/// itself.
fn is_stopped(wait: impl Fn(Deadline) -> bool + Sync) {
    for round in 0..ROUNDS / 4 {
        let stop = Stop::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while stop.goes_on() {
                    // SAFETY: the wait is over before `stop` is gone, and is made by this thread.
                    let never = unsafe { stop.by.bring_forward(None, true) };
                    assert!(!wait(never));
                    assert!(stop.by.is_asked());
                }
            });
            some_time(round);
            stop.ask();
        });
    }
}

/// Bringing a deadline forward ends any call that can time out.
#[test]
fn a_wait_with_a_deadline_is_ended() {
    let watchdog = watch();
    for flavour in FLAVOURS {
        for kind in [Kind::Normal, Kind::Recursive, Kind::ErrorChecking] {
            let mutex = PosixMutexOptions::new().flavour(flavour).kind(kind);
            let mutex = mutex.build_raw();
            mutex.lock();
            is_stopped(|never| mutex.lock_until(never).is_ok());
            // SAFETY: locked above.
            unsafe { mutex.unlock() };
            watchdog.pat();
        }
    }
    for preference in [Preference::Reader, Preference::Writer] {
        let lock = RawRwLock::with(preference, Scope::Private);
        lock.write(0, None).unwrap();
        is_stopped(|never| lock.read(0, Some(&never)).is_ok());
        is_stopped(|never| lock.write(0, Some(&never)).is_ok());
        // SAFETY: locked above.
        unsafe { lock.unlock() }.unwrap();
        lock.read(0, None).unwrap();
        is_stopped(|never| lock.write(0, Some(&never)).is_ok());
        // SAFETY: locked above.
        unsafe { lock.unlock() }.unwrap();
        assert!(lock.try_write(0).is_ok(), "no thread has left anything behind");
        watchdog.pat();
    }
    let barrier = Barrier::new(2);
    is_stopped(|never| barrier.wait_until(never).is_some());
    assert!(barrier.destroy());
    let semaphore = Semaphore::new(0);
    is_stopped(|never| semaphore.wait_until(never));
    let once = Once::new();
    let run = once.begin_executing(None);
    is_stopped(|never| once.begin_executing(Some(&never)).is_ok());
    drop(run);
    assert!(once.begin_executing(None).is_ok());
}
