//! The number of signals wraps around at 2^32 while threads wait. Neither signals nor broadcasts
//! leave a waiter behind, in all kinds of condvar whose waiters sleep on that number.

use super::word::RawCondvar;
use crate::atomic::Ordering;
use crate::futex::Scope;
use crate::lock::{PosixFlavour, PosixMutexOptions, RawPosixMutex};
use crate::sys::clock::Deadline;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use core::time::Duration;

const WAITERS: u32 = 3;
/// The number of signals left before the wrap at the start: fewer than are sent while threads are
/// known to wait.
const BEFORE: u32 = 2;

/// The waiters' state, protected by the mutex.
struct Scene {
    mutex: RawPosixMutex,
    condvar: RawCondvar,
    waiting: AtomicU32,
    tokens: AtomicU32,
}

impl Scene {
    fn locked<R>(&self, section: impl FnOnce() -> R) -> R {
        self.mutex.lock();
        let result = section();
        // SAFETY: locked just above.
        unsafe { self.mutex.unlock() };
        result
    }

    /// Waits for a token and takes it.
    fn wait(&self) {
        let deadline = Deadline::after(Duration::from_secs(60));
        self.locked(|| {
            self.waiting.fetch_add(1, SeqCst);
            while self.tokens.load(SeqCst) == 0 {
                // SAFETY: the mutex is held, and it is the only one here.
                unsafe { self.condvar.wait(&self.mutex, Some(&deadline)) }
                    .expect("a waiter was left behind");
            }
            self.tokens.fetch_sub(1, SeqCst);
        });
    }

    /// Once all threads wait, leaves a token for each.
    fn signal(&self, all_at_once: bool) {
        while self.locked(|| self.waiting.load(SeqCst)) != WAITERS {
            std::thread::yield_now();
        }
        self.locked(|| self.waiting.store(0, SeqCst));
        if all_at_once {
            self.locked(|| self.tokens.store(WAITERS, SeqCst));
            self.condvar.notify_all();
            return;
        }
        for _ in 0..WAITERS {
            self.locked(|| self.tokens.fetch_add(1, SeqCst));
            self.condvar.notify_one();
        }
    }
}

fn passes_the_end(scope: Scope, mutex: RawPosixMutex) {
    let scene = Scene {
        mutex,
        condvar: RawCondvar::with_scope(scope),
        waiting: AtomicU32::new(0),
        tokens: AtomicU32::new(0),
    };
    let round = |all_at_once| {
        std::thread::scope(|threads| {
            for _ in 0..WAITERS {
                threads.spawn(|| scene.wait());
            }
            scene.signal(all_at_once);
        });
    };
    // The first wait with a mutex may change the number.
    round(true);
    let sequence = &scene.condvar.sequence;
    sequence.store(u32::MAX - BEFORE, Ordering::Relaxed);
    for all_at_once in [false, true, false, true] {
        round(all_at_once);
    }
    let now = sequence.load(Ordering::Relaxed);
    assert!(now < u32::MAX / 2, "{now}: has not passed the end");
}

#[test]
fn a_shared_condvar_s_signals_pass_their_end() {
    let mutex = PosixMutexOptions::new().scope(Scope::Shared).build_raw();
    passes_the_end(Scope::Shared, mutex);
}

#[test]
fn a_shared_condvar_s_signals_pass_their_end_with_a_private_mutex() {
    passes_the_end(Scope::Shared, RawPosixMutex::new());
}

#[test]
fn a_priority_condvar_s_signals_pass_their_end() {
    let mutex = PosixMutexOptions::new().flavour(PosixFlavour::PriorityInheriting);
    passes_the_end(Scope::Private, mutex.build_raw());
}
