//! Tests that every contender is a lock. They are the same for all, and would expose a shim that
//! calls the wrong function.

use super::*;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use waitword_testkit::watch;

const THREADS: usize = 4;
const ROUNDS: usize = 2000;

/// A number that only a lock's holder may access.
#[derive(Default)]
struct Guarded(UnsafeCell<usize>);

// SAFETY: the tests access it under a lock.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// Not atomic: without mutual exclusion, increments are lost.
    fn add_one(&self) {
        // SAFETY: the caller holds the lock for writing.
        unsafe {
            let value = self.0.get();
            let seen = value.read_volatile();
            core::hint::spin_loop();
            value.write_volatile(seen + 1);
        }
    }

    fn get(&self) -> usize {
        // SAFETY: the caller holds the lock.
        unsafe { self.0.get().read_volatile() }
    }
}

fn excludes<M: BenchMutex>() -> &'static str {
    let (lock, counter) = (M::new(), Guarded::default());
    let tried = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    if round % 4 == 0 {
                        if !lock.try_lock() {
                            continue;
                        }
                    } else {
                        lock.lock();
                    }
                    counter.add_one();
                    tried.fetch_add(1, SeqCst);
                    // SAFETY: locked above.
                    unsafe { lock.unlock() };
                }
            });
        }
    });
    assert_eq!(counter.get(), tried.load(SeqCst), "{}", M::NAME);
    assert!(lock.try_lock(), "{}", M::NAME);
    let other = thread::scope(|scope| scope.spawn(|| lock.try_lock()).join().unwrap());
    assert!(!other, "{}: locked twice", M::NAME);
    // SAFETY: locked above.
    unsafe { lock.unlock() };
    M::NAME
}

#[test]
fn every_mutex_excludes() {
    let _guard = watch();
    let names = every_mutex!(excludes());
    assert_eq!(names[0], "glibc", "the baseline comes first");
    unique(names);
}

fn unique(mut names: Vec<&str>) {
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

/// Hand-offs in both directions: `signal` to one side, `broadcast` to the other.
fn hands_over<C: BenchCondvar>() -> &'static str {
    let (condvars, mutex, turn) = ([C::new(), C::new()], C::Mutex::new(), Guarded::default());
    let play = |me: usize| {
        for _ in 0..ROUNDS / 4 {
            mutex.lock();
            while turn.get() % 2 != me {
                // SAFETY: locked above, and again each time this returns.
                unsafe { condvars[me].wait(&mutex) };
            }
            turn.add_one();
            // SAFETY: locked above.
            unsafe { mutex.unlock() };
            if me == 0 {
                condvars[1].signal();
            } else {
                condvars[0].broadcast();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| play(0));
        scope.spawn(|| play(1));
    });
    assert_eq!(turn.get(), ROUNDS / 2, "{}", C::NAME);
    C::NAME
}

#[test]
fn every_condvar_hands_over() {
    let _guard = watch();
    unique(every_condvar!(hands_over()));
}

fn wakes_all<C: BenchCondvar>() {
    let (condvar, mutex, arrived, go) =
        (C::new(), C::Mutex::new(), Guarded::default(), Guarded::default());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                mutex.lock();
                arrived.add_one();
                while go.get() == 0 {
                    // SAFETY: locked above, and again each time this returns.
                    unsafe { condvar.wait(&mutex) };
                }
                // SAFETY: locked above.
                unsafe { mutex.unlock() };
            });
        }
        let mut all = false;
        while !all {
            thread::sleep(Duration::from_millis(1));
            mutex.lock();
            all = arrived.get() == THREADS;
            if all {
                go.add_one();
                condvar.broadcast();
            }
            // SAFETY: locked above.
            unsafe { mutex.unlock() };
        }
    });
}

#[test]
fn every_condvar_wakes_all() {
    let _guard = watch();
    every_condvar!(wakes_all());
}

/// Threads wait for each other, round after round: one that a broadcast misses holds up all others.
fn passes_a_barrier<C: BenchCondvar>() {
    let (condvar, mutex) = (C::new(), C::Mutex::new());
    let (arrived, passed) = (Guarded::default(), Guarded::default());
    let pass = || {
        mutex.lock();
        let round = passed.get();
        arrived.add_one();
        if arrived.get() == (round + 1) * THREADS {
            passed.add_one();
            condvar.broadcast();
        }
        while passed.get() == round {
            // SAFETY: locked above, and again each time this returns.
            unsafe { condvar.wait(&mutex) };
        }
        // SAFETY: locked above.
        unsafe { mutex.unlock() };
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS / 4).for_each(|_| pass()));
        }
    });
    assert_eq!(passed.get(), ROUNDS / 4, "{}", C::NAME);
}

#[test]
fn every_condvar_passes_a_barrier() {
    let _guard = watch();
    every_condvar!(passes_a_barrier());
}

/// A queue with room for one item: producers and consumers signal each other, and several of each
/// wait at once.
fn feeds_a_queue<C: BenchCondvar>() {
    // The C library's can lose a wake-up when several threads wait (its bug 25847); the C++
    // library's is the same one.
    if C::NAME == "glibc" || C::NAME == "C++ std" {
        return;
    }
    let ([full, empty], mutex) = ([C::new(), C::new()], C::Mutex::new());
    let (put, taken) = (Guarded::default(), Guarded::default());
    let step = |producer: bool| {
        mutex.lock();
        let (wait_for, tell) = if producer { (&empty, &full) } else { (&full, &empty) };
        while (put.get() == taken.get()) != producer {
            // SAFETY: locked above, and again each time this returns.
            unsafe { wait_for.wait(&mutex) };
        }
        if producer {
            put.add_one();
        } else {
            taken.add_one();
        }
        // Half of the signals come with the mutex held, half without.
        let held = put.get() % 2 == 0;
        if held {
            tell.signal();
        }
        // SAFETY: locked above.
        unsafe { mutex.unlock() };
        if !held {
            tell.signal();
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let step = &step;
            scope.spawn(move || (0..ROUNDS / 4).for_each(|_| step(thread % 2 == 0)));
        }
    });
    let all = THREADS / 2 * (ROUNDS / 4);
    assert_eq!((put.get(), taken.get()), (all, all), "{}", C::NAME);
}

#[test]
fn every_condvar_feeds_a_queue() {
    let _guard = watch();
    every_condvar!(feeds_a_queue());
}

fn writers_exclude<L: BenchRwLock>() -> &'static str {
    let (lock, counter) = (L::new(), [Guarded::default(), Guarded::default()]);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, counter) = (&lock, &counter);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    if thread % 2 == 0 {
                        lock.write_lock();
                        counter[0].add_one();
                        counter[1].add_one();
                        // SAFETY: locked above.
                        unsafe { lock.write_unlock() };
                    } else {
                        lock.read_lock();
                        let seen = counter.each_ref().map(Guarded::get);
                        // SAFETY: locked above.
                        unsafe { lock.read_unlock() };
                        assert_eq!(seen[0], seen[1], "{}: a half-done write", L::NAME);
                    }
                }
            });
        }
    });
    assert_eq!(counter[0].get(), THREADS / 2 * ROUNDS, "{}", L::NAME);
    L::NAME
}

/// Both readers hold the lock at once, or the test hangs.
fn readers_share<L: BenchRwLock>() {
    let lock = Arc::new(L::new());
    let inside = Arc::new(AtomicU32::new(0));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (lock, inside) = (lock.clone(), inside.clone());
            thread::spawn(move || {
                lock.read_lock();
                inside.fetch_add(1, SeqCst);
                while inside.load(SeqCst) < 2 {
                    thread::yield_now();
                }
                // SAFETY: locked above.
                unsafe { lock.read_unlock() };
            })
        })
        .collect();
    for reader in readers {
        reader.join().unwrap();
    }
}

#[test]
fn every_rwlock_excludes_writers_and_lets_readers_share() {
    let _guard = watch();
    unique(every_rwlock!(writers_exclude()));
    every_rwlock!(readers_share());
}

#[test]
fn a_missing_peer_says_how_to_get_it() {
    let built = [cfg!(has_cpp), cfg!(has_tbb), cfg!(has_nsync), cfg!(has_absl)];
    let expected = built.iter().filter(|&&built| !built).count();
    assert_eq!(missing().len(), expected, "what was built can be loaded");
    assert!(missing().iter().all(|peer| peer.install.starts_with("apt-get install ")));
}
