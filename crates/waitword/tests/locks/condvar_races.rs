//! Condvars under load: signals meet deadlines, broadcasts meet unlocks, and memory is freed as
//! soon as allowed.

use super::*;
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};
use waitword_testkit::Mapping;

/// Waiters with deadlines that pass as they are signalled, on either clock. Exactly those on which
/// a signal was spent report it; where the kernel keeps the queue, at least those.
#[test]
fn a_wait_returns_whether_it_used_a_signal() {
    with_every(every_normal_pairing(), |pairing| {
        const WAITERS: usize = 3;
        const WAITS: usize = 300;
        let pair = pairing.make();
        let left = AtomicUsize::new(WAITERS);
        let (signalled, found) = std::thread::scope(|scope| {
            let waiters: Vec<_> = (1..=WAITERS)
                .map(|waiter| {
                    let (pair, left) = (&pair, &left);
                    scope.spawn(move || {
                        let mut dice = Rng::with_seed(waiter as u64);
                        let mut signalled = 0;
                        for _ in 0..WAITS {
                            let soon = Duration::from_nanos(dice.u64(0..60_000));
                            let deadline = match dice.u64(0..4) {
                                0 => Deadline::at_system_time(SystemTime::now() + soon),
                                _ => Deadline::after(soon),
                            };
                            match pair.wait_once(Some(deadline)) {
                                Ok(()) => signalled += 1,
                                Err(LockError::TimedOut) => assert!(deadline.has_passed()),
                                Err(error) => panic!("{error}"),
                            }
                        }
                        left.fetch_sub(1, SeqCst);
                        signalled
                    })
                })
                .collect();
            let mut dice = Rng::with_seed(99);
            let mut found = 0;
            while left.load(SeqCst) > 0 {
                let with_mutex = dice.bool();
                if with_mutex {
                    pair.mutex.lock();
                }
                found += match dice.u64(0..4) {
                    0 => pair.condvar.notify_all(),
                    _ => usize::from(pair.condvar.notify_one()),
                };
                if with_mutex {
                    // Now and then later than all deadlines.
                    if dice.u64(0..8) == 0 {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    unlock(&pair.mutex);
                }
                (0..dice.u64(0..2_000)).for_each(|_| std::hint::spin_loop());
            }
            let signalled = waiters.into_iter().map(|waiter| waiter.join().unwrap());
            (signalled.sum::<usize>(), found)
        });
        if pairing.is_in_table() {
            assert_eq!(signalled, found);
        } else {
            assert!(signalled >= found, "{signalled} < {found}");
        }
        assert_eq!(pair.condvar.destroy(), Ok(()));
        assert_eq!(pair.mutex.destroy(), Ok(()), "{:?}", pair.mutex);
    });
}

/// Takers wait without a deadline: a lost token hangs.
fn pass_tokens(
    pairing: Pairing,
    takers: usize,
    tokens: usize,
    add: impl Fn(&Pair, &mut Rng) + Sync,
) {
    let pair = pairing.make();
    std::thread::scope(|scope| {
        for _ in 0..takers {
            scope.spawn(|| (0..tokens).for_each(|_| pair.take()));
        }
        let mut dice = Rng::with_seed(5);
        for _ in 0..takers * tokens {
            add(&pair, &mut dice);
            (0..dice.u64(0..500)).for_each(|_| std::hint::spin_loop());
        }
    });
    assert_eq!(pair.ready.load(SeqCst), 0);
    assert_eq!(pair.condvar.destroy(), Ok(()));
    assert_eq!(pair.mutex.destroy(), Ok(()), "{:?}", pair.mutex);
}

#[test]
fn no_signal_is_lost() {
    with_every(every_pairing(), |pairing| {
        let tokens = if pairing.mutex.kind == Kind::Normal { 200 } else { 50 };
        pass_tokens(pairing, 4, tokens, |pair, dice| {
            match dice.u64(0..4) {
                0 => {
                    pair.add(1);
                    pair.condvar.notify_one();
                }
                1 => {
                    pair.add(1);
                    pair.condvar.notify_all();
                }
                how => {
                    pair.mutex.lock();
                    pair.ready.fetch_add(1, SeqCst);
                    match how {
                        2 => _ = pair.condvar.notify_one(),
                        _ => _ = pair.condvar.notify_all(),
                    }
                    // SAFETY: locked above.
                    unsafe {
                        match dice.u64(0..4) {
                            0 => pair.mutex.unlock_fair(),
                            _ => pair.mutex.unlock(),
                        }
                    }
                }
            };
        });
    });
}

/// Other threads lock and unlock the mutex all the while, with and without deadlines.
#[test]
fn no_signal_is_lost_at_a_contended_mutex() {
    with_every(every_normal_pairing(), |pairing| {
        const WAITERS: usize = 4;
        let pair = pairing.make();
        let over = AtomicBool::new(false);
        let last_round = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 1..3 {
                let (pair, over) = (&pair, &over);
                scope.spawn(move || {
                    let mut dice = Rng::with_seed(seed);
                    while !over.load(SeqCst) {
                        let soon = Duration::from_nanos(dice.u64(0..50_000));
                        if pair.mutex.lock_until(Deadline::after(soon)).is_ok() {
                            (0..dice.u64(0..500)).for_each(|_| std::hint::spin_loop());
                            unlock(&pair.mutex);
                        }
                    }
                });
            }
            let takers = [(); WAITERS].map(|()| {
                let (pair, last_round) = (&pair, &last_round);
                scope.spawn(move || {
                    while !last_round.load(SeqCst) {
                        pair.take();
                    }
                })
            });
            for round in 0..60 {
                if round % 2 == 0 {
                    pair.until_waiting(WAITERS);
                    pair.add(WAITERS);
                    pair.condvar.notify_all();
                } else {
                    for _ in 0..WAITERS {
                        pair.add(1);
                        pair.condvar.notify_one();
                    }
                }
                // The next round begins with all threads at the start.
                while pair.ready.load(SeqCst) > 0 {
                    std::thread::yield_now();
                }
            }
            pair.until_waiting(WAITERS);
            last_round.store(true, SeqCst);
            pair.add(WAITERS);
            pair.condvar.notify_all();
            for taker in takers {
                taker.join().unwrap();
            }
            over.store(true, SeqCst);
        });
        assert_eq!(pair.ready.load(SeqCst), 0);
        assert_eq!(pair.mutex.destroy(), Ok(()));
    });
}

/// The page of a private condvar is unmapped as soon as all were signalled; that of a
/// process-shared one once it is destroyed. A late access is a crash.
#[test]
fn the_broadcaster_unmaps_it() {
    with_every(every_pairing(), |pairing| {
        const WAITERS: usize = 3;
        let rounds = if pairing.mutex.kind == Kind::Normal { 60 } else { 15 };
        for round in 0..rounds {
            let mutex = pairing.mutex.make();
            let mapping = Mapping::anonymous(4096);
            let condvar = mapping.at::<RawCondvar>(0);
            // SAFETY: a fresh page.
            unsafe { condvar.write(RawCondvar::with_scope(pairing.condvar)) };
            // SAFETY: mapped until all its users were signalled.
            let condvar: &'static RawCondvar = unsafe { &*condvar };
            let waiting = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for waiter in 0..WAITERS {
                    let (mutex, waiting) = (&mutex, &waiting);
                    scope.spawn(move || {
                        let ample = Deadline::after(Duration::from_secs(100));
                        mutex.lock();
                        waiting.fetch_add(1, SeqCst);
                        // Waits only once: after a spurious return, it could be gone.
                        // SAFETY: the mutex is held.
                        let waited =
                            unsafe { condvar.wait(mutex, (waiter % 2 == 0).then_some(&ample)) };
                        unlock(mutex);
                        assert_eq!(waited, Ok(()));
                    });
                }
                loop {
                    mutex.lock();
                    if waiting.load(SeqCst) == WAITERS {
                        break;
                    }
                    unlock(&mutex);
                    std::thread::yield_now();
                }
                let one_by_one = round % 3 == 0;
                let with_mutex = round % 2 == 0;
                if !with_mutex {
                    unlock(&mutex);
                }
                if one_by_one {
                    (0..WAITERS).for_each(|_| _ = condvar.notify_one());
                } else {
                    condvar.notify_all();
                }
                if pairing.condvar == Scope::Shared {
                    if with_mutex {
                        unlock(&mutex);
                    }
                    assert_eq!(condvar.destroy(), Ok(()));
                    drop(mapping);
                } else {
                    drop(mapping);
                    if with_mutex {
                        unlock(&mutex);
                    }
                }
            });
        }
    });
}

/// Two conditions of one mutex, in a ring of threads: each signals the next one.
#[test]
fn a_ring_of_signals_goes_round() {
    with_every(every_normal_pairing(), |pairing| {
        const THREADS: usize = 4;
        const ROUNDS: usize = 100;
        let mutex = pairing.mutex.make();
        let condvars = [(); THREADS].map(|()| RawCondvar::with_scope(pairing.condvar));
        let turn = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (mutex, condvars, turn) = (&mutex, &condvars, &turn);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mine = round * THREADS + thread;
                        mutex.lock();
                        while turn.load(SeqCst) != mine {
                            // SAFETY: the mutex is held, and there is no other.
                            unsafe { condvars[thread].wait(mutex, None) }.unwrap();
                        }
                        turn.store(mine + 1, SeqCst);
                        condvars[(thread + 1) % THREADS].notify_one();
                        unlock(mutex);
                    }
                });
            }
        });
        assert_eq!(turn.load(SeqCst), THREADS * ROUNDS);
    });
}

/// The last thread that returns frees the mutex: the signaller has unlocked it before.
#[test]
fn the_last_waiter_frees_the_mutex() {
    let until = Instant::now() + Duration::from_secs(3);
    with_every(every_normal_pairing(), |pairing| {
        for round in 0..60 {
            if Instant::now() > until && round > 5 {
                break;
            }
            let pair = Arc::new(pairing.make());
            let waiters: Vec<_> = (0..3)
                .map(|_| {
                    let pair = pair.clone();
                    std::thread::spawn(move || pair.take())
                })
                .collect();
            pair.until_waiting(3);
            pair.add(3);
            pair.condvar.notify_all();
            // Freed by whichever thread is last.
            drop(pair);
            for waiter in waiters {
                waiter.join().unwrap();
            }
        }
    });
}
