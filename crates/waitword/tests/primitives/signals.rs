//! Signal handlers: what ends a wait and what does not, and posts from handlers, wherever they have
//! interrupted.

use crate::{SCOPES, answer, entries, far};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{AutoEvent, Barrier, Error, Event, Latch, Once, OnceState, Semaphore};
use waitword_testkit::{Crew, SleepProbe, inside, install, signal, thread_number, until, watch};

/// A handler does not end a wait, unless that is requested.
#[test]
fn handlers_end_no_wait() {
    let mut crew = Crew::new(6);
    for scope in SCOPES {
        let semaphore = Arc::new(Semaphore::with_scope(0, scope));
        let barrier = Arc::new(Barrier::with_scope(2, scope));
        let event = Arc::new(Event::with_scope(false, scope));
        let auto_event = Arc::new(AutoEvent::with_scope(false, scope));
        let latch = Arc::new(Latch::with_scope(1, scope));
        let once = Arc::new((Once::new(), Latch::new(1)));
        let its_runner = {
            let once = once.clone();
            std::thread::spawn(move || once.0.call_once(|| once.1.wait()))
        };
        until(|| once.0.state() == OnceState::InProgress);
        let (a, b, c) = (semaphore.clone(), barrier.clone(), event.clone());
        let (d, e, f) = (auto_event.clone(), latch.clone(), once.clone());
        crew.order(0, entries(scope), move || answer(a.wait_until(far())));
        crew.order(1, entries(scope), move || answer(b.wait().is_leader()));
        crew.order(2, entries(scope), move || {
            c.wait();
            Ok(2)
        });
        crew.order(3, entries(scope), move || answer(d.wait_until(far())));
        crew.order(4, entries(scope), move || {
            e.wait();
            Ok(4)
        });
        crew.order(5, 1, move || {
            f.0.call_once(|| unreachable!());
            Ok(5)
        });
        for _ in 0..20 {
            assert_eq!(crew.settle(), []);
            for worker in 0..6 {
                crew.interrupt(worker);
            }
        }
        assert_eq!(crew.settle(), []);
        semaphore.post().unwrap();
        assert!(barrier.wait().is_leader());
        event.set();
        auto_event.set();
        latch.count_down(1).unwrap();
        once.1.count_down(1).unwrap();
        let answers = [1, 0, 2, 1, 4, 5];
        let back: Vec<_> = answers.into_iter().map(Ok).enumerate().collect();
        its_runner.join().unwrap();
        assert_eq!(crew.settle_with(5), back);
    }
}

/// `sem_wait`: without SA_RESTART it ends with EINTR.
#[test]
fn an_interruptible_wait_is_interrupted() {
    let mut crew = Crew::new(2);
    for scope in SCOPES {
        let semaphore = Arc::new(Semaphore::with_scope(0, scope));
        for worker in 0..2 {
            let semaphore = semaphore.clone();
            let deadline = (worker == 1).then(far);
            crew.order(worker, entries(scope), move || {
                let result = semaphore.wait_interruptible(deadline);
                result.map(|()| 0).map_err(Error::raw_os_error)
            });
            assert_eq!(crew.settle(), []);
            crew.interrupt(worker);
            assert_eq!(crew.settle_with(worker), [(worker, Err(libc::EINTR))]);
        }
        assert!(format!("{semaphore:?}").contains("waiters: 0"));
        semaphore.post().unwrap();
        assert_eq!(semaphore.value(), 1);
    }
}

/// signal(7): with SA_RESTART `sem_wait` continues.
#[test]
fn sa_restart_goes_on() {
    let _watchdog = watch();
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_: i32) {
        HANDLED.fetch_add(1, SeqCst);
    }
    let number = libc::SIGRTMIN() + 3;
    install(number, handler, libc::SA_RESTART);
    for scope in SCOPES {
        let semaphore = Semaphore::with_scope(0, scope);
        let (thread, probe) = (AtomicI32::new(0), Mutex::new(None));
        std::thread::scope(|threads| {
            let waiter = threads.spawn(|| {
                *probe.lock().unwrap() = Some(SleepProbe::of_this_thread());
                thread.store(thread_number(), SeqCst);
                semaphore.wait_interruptible(None)
            });
            until(|| thread.load(SeqCst) != 0);
            let is_asleep = || {
                let probe = probe.lock().unwrap();
                probe.as_ref().is_some_and(SleepProbe::in_futex_call)
            };
            for _ in 0..10 {
                until(is_asleep);
                let before = HANDLED.load(SeqCst);
                signal(thread.load(SeqCst), number);
                until(|| HANDLED.load(SeqCst) > before);
            }
            until(is_asleep);
            assert!(!waiter.is_finished());
            semaphore.post().unwrap();
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
    }
}

static SEMAPHORE: Semaphore = Semaphore::new(0);
static EVENT: Event = Event::new();
static AUTO_EVENT: AutoEvent = AutoEvent::new();
static LATCH: Latch = Latch::new(1);

/// A handler that has interrupted its own thread inside a bucket posts. The waiters return
/// nevertheless.
#[test]
fn posts_from_a_handler_inside_a_bucket() {
    let mut crew = Crew::new(4);
    let waits: [fn() -> bool; 4] = [
        || SEMAPHORE.wait_until(far()),
        || EVENT.wait_until(far()),
        || AUTO_EVENT.wait_until(far()),
        || LATCH.wait_until(far()),
    ];
    for (worker, wait) in waits.into_iter().enumerate() {
        crew.order(worker, 1, move || answer(wait()));
    }
    assert_eq!(crew.settle(), []);
    inside::run(|| {
        SEMAPHORE.post().unwrap();
        EVENT.set();
        AUTO_EVENT.set();
        LATCH.count_down(1).unwrap();
        // Nor does a wait there queue, or last forever.
        assert!(!SEMAPHORE.wait_for(Duration::from_millis(1)) || SEMAPHORE.post().is_ok());
    });
    let back: Vec<_> = (0..4).map(|worker| (worker, Ok(1))).collect();
    assert_eq!(crew.settle(), back);
}

/// A timer's handler posts again and again while its own thread posts and waits.
#[test]
fn a_storm_of_posts_from_a_handler() {
    let _watchdog = watch();
    static TOKENS: Semaphore = Semaphore::new(0);
    static POSTED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_: i32) {
        TOKENS.post().unwrap();
        POSTED.fetch_add(1, SeqCst);
    }
    let number = libc::SIGRTMIN() + 4;
    install(number, handler, 0);
    let thread = AtomicI32::new(0);
    let over = AtomicUsize::new(0);
    let taken = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while over.load(SeqCst) < 2 {
                    let took = TOKENS.wait_for(Duration::from_micros(300));
                    taken.fetch_add(took.into(), SeqCst);
                }
            });
        }
        threads.spawn(|| {
            thread.store(thread_number(), SeqCst);
            while over.load(SeqCst) == 0 {
                TOKENS.post().unwrap();
                POSTED.fetch_add(1, SeqCst);
                // Other threads may have taken them all.
                let took = TOKENS.wait_for(Duration::from_micros(300));
                taken.fetch_add(took.into(), SeqCst);
            }
            over.store(2, SeqCst);
        });
        until(|| thread.load(SeqCst) != 0);
        for _ in 0..3000 {
            signal(thread.load(SeqCst), number);
        }
        over.store(1, SeqCst);
    });
    let left = TOKENS.value() as usize;
    assert_eq!(taken.load(SeqCst) + left, POSTED.load(SeqCst));
}
