//! Ending another thread's sleep: the request always arrives, and consumes no signal.

use super::mutex::{SUCCESSOR, Time};
use super::*;
use crate::checker::cell::UnsafeCell;
use crate::lock::condvar::Wakeup;
use crate::park::interrupt::Interrupts;
use crate::park::{Notice, Pool, Until};
use crate::private::waiter_table as process_waiter_table;
use crate::{PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex};

/// A thread and what ends its wait: a notice, or an interruption.
struct Sleeper {
    pool: Pool,
    notice: Notice,
    interrupts: Interrupts,
}

impl Sleeper {
    fn start() -> (Arc<Self>, thread::JoinHandle<bool>) {
        let sleeper = Arc::new(Self {
            pool: Pool::new(|| ()),
            notice: Notice::new(),
            interrupts: Interrupts::new(),
        });
        let handle = {
            let sleeper = sleeper.clone();
            thread::spawn(move || {
                let parker = sleeper.pool.take(|_| {});
                let until = Until { deadline: None, by: Some(&sleeper.interrupts), at_once: false };
                parker.park(&sleeper.notice, until).is_ok()
            })
        };
        (sleeper, handle)
    }
}

#[test]
fn a_request_ends_a_sleep() {
    check(4, || {
        let (sleeper, handle) = Sleeper::start();
        sleeper.interrupts.request(&sleeper.pool);
        assert!(!handle.join().unwrap());
    });
}

#[test]
fn a_request_that_was_made_before_ends_it_too() {
    check(4, || {
        let (sleeper, handle) = Sleeper::start();
        let other = {
            let sleeper = sleeper.clone();
            thread::spawn(move || sleeper.interrupts.request(&sleeper.pool))
        };
        sleeper.interrupts.request(&sleeper.pool);
        assert!(!handle.join().unwrap());
        other.join().unwrap();
    });
}

/// Two waiters, one signal, and the first waiter is interrupted: a waiter that was not signalled
/// does not take the token.
#[test]
fn no_signal_is_spent_on_a_waiter_that_was_interrupted() {
    for flavour in [PosixFlavour::WaitWake, SUCCESSOR] {
        check(1, move || {
            let store = Store::new(flavour);
            let interrupted = {
                let store = store.clone();
                thread::spawn(move || store.take_if_signalled())
            };
            let patient = {
                let store = store.clone();
                thread::spawn(move || store.take())
            };
            store.interrupts.request(&process_waiter_table().parkers);
            store.put();
            if interrupted.join().unwrap() {
                store.put();
            }
            patient.join().unwrap();
        });
    }
}

pub(super) struct Store {
    mutex: RawPosixMutex,
    condvar: RawCondvar,
    tokens: UnsafeCell<u32>,
    pub(super) interrupts: Interrupts,
}

impl Store {
    pub(super) fn new(flavour: PosixFlavour) -> Arc<Self> {
        Arc::new(Self {
            mutex: PosixMutexOptions::new().flavour(flavour).build_model(),
            condvar: RawCondvar::new(),
            tokens: UnsafeCell::new(0),
            interrupts: Interrupts::new(),
        })
    }

    /// With the mutex held: applies `change` and returns the old value.
    fn change(&self, change: impl FnOnce(&mut u32)) -> u32 {
        // SAFETY: the mutex is held; loom complains if another thread could change it now.
        self.tokens.with_mut(|tokens| unsafe {
            let before = *tokens;
            change(&mut *tokens);
            before
        })
    }

    fn unlock(&self) {
        // SAFETY: every caller has locked the mutex.
        unsafe { self.mutex.unlock() };
    }

    pub(super) fn put(&self) {
        self.mutex.lock();
        self.change(|tokens| *tokens += 1);
        self.condvar.notify_one();
        self.unlock();
    }

    pub(super) fn take(&self) {
        self.mutex.lock();
        while self.change(|_| {}) == 0 {
            // SAFETY: the mutex is held, and it is the only one used with this condvar.
            unsafe { self.condvar.wait(&self.mutex, None) }.unwrap();
        }
        self.change(|tokens| *tokens -= 1);
        self.unlock();
    }

    /// One wait that may be interrupted. A token is taken only by a waiter that was signalled;
    /// returns whether it took one.
    pub(super) fn take_if_signalled(&self) -> bool {
        self.mutex.lock();
        let until = Until { deadline: None, by: Some(&self.interrupts), at_once: false };
        // SAFETY: the mutex is held, and it is the only one used with this condvar.
        let wakeup = unsafe { self.condvar.wait_until(&self.mutex, until) }.unwrap();
        let takes = wakeup == Wakeup::Signalled && self.change(|_| {}) > 0;
        if takes {
            self.change(|tokens| *tokens -= 1);
        }
        self.unlock();
        takes
    }
}
