//! Process-shared mutexes and condvars between processes, some of which are killed while they wait.

use super::*;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;
use waitword_testkit::{Child, Mapping, fork};

/// In memory of all processes. All zeros, except for mutex and condvar.
#[repr(C)]
struct Shared {
    pair: std::mem::MaybeUninit<Pair>,
    /// Changed with the mutex held, one half after the other.
    halves: [AtomicU64; 2],
    stop: AtomicU32,
    complaints: AtomicU32,
    progress: AtomicU64,
}

struct Memory {
    mapping: Mapping,
}

impl Memory {
    fn new(pairing: Pairing) -> Self {
        let mapping = Mapping::anonymous(4096);
        // SAFETY: a fresh mapping, not yet known to any other process.
        unsafe { (*mapping.at::<Shared>(0)).pair.write(pairing.make()) };
        Self { mapping }
    }

    fn shared(&self) -> &Shared {
        // SAFETY: zeros, except for what was written, and atomics only.
        unsafe { &*self.mapping.at::<Shared>(0) }
    }

    fn pair(&self) -> &Pair {
        // SAFETY: written when this was made.
        unsafe { self.shared().pair.assume_init_ref() }
    }

    /// With the mutex held.
    fn change(&self, pause: u32) {
        let [first, second] = &self.shared().halves;
        let before = first.load(SeqCst);
        first.store(before + 1, SeqCst);
        (0..pause).for_each(|_| std::hint::spin_loop());
        if second.load(SeqCst) != before {
            self.shared().complaints.fetch_add(1, SeqCst);
        }
        second.store(before + 1, SeqCst);
        self.shared().progress.fetch_add(1, SeqCst);
    }

    fn stopped(&self) -> bool {
        self.shared().stop.load(SeqCst) != 0
    }

    fn progress(&self) -> u64 {
        self.shared().progress.load(SeqCst)
    }

    /// Blocks until this much more was done.
    fn until_more(&self, more: u64) {
        let before = self.progress();
        while self.progress() < before + more {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

fn shared_sorts() -> impl Iterator<Item = Sort> {
    every_sort().filter(|sort| sort.scope == Scope::Shared)
}

fn shared(mutex: Sort) -> Pairing {
    Pairing { mutex, condvar: Scope::Shared }
}

#[test]
fn two_processes_exclude_each_other() {
    with_every(shared_sorts(), |sort| {
        const TURNS: u64 = 2_000;
        let memory = Memory::new(shared(sort));
        let turns = || {
            for turn in 0..TURNS {
                let mutex = &memory.pair().mutex;
                let had = match turn % 4 {
                    0 => mutex.lock_until(Deadline::after(Duration::from_secs(100))).is_ok(),
                    1 => mutex.try_lock(),
                    _ => false,
                };
                if !had {
                    mutex.lock();
                }
                memory.change((turn % 128) as u32);
                unlock(mutex);
            }
        };
        let children = [(); 2].map(|()| fork(turns));
        turns();
        assert_eq!(children.map(Child::join), [0; 2]);
        assert_eq!(memory.shared().complaints.load(SeqCst), 0);
        assert_eq!(memory.progress(), 3 * TURNS);
        assert_eq!(memory.pair().mutex.destroy(), Ok(()));
    });
}

/// It is killed while it sleeps, while it is woken, or after it has asked for the next turn; never
/// while it holds the mutex, because it gives up before it gets it.
#[test]
fn a_killed_waiter_keeps_no_thread_out() {
    let plain = shared_sorts().filter(|sort| !sort.is_pi() && sort.kind == Kind::Normal);
    with_every(plain, |sort| {
        const KILLS: usize = 12;
        let memory = Memory::new(shared(sort));
        let workers = [(); 2].map(|()| {
            fork(|| {
                while !memory.stopped() {
                    // A wake-up just given to a victim dies with it, so this does not wait forever.
                    let ample = Deadline::after(Duration::from_millis(30));
                    let mutex = &memory.pair().mutex;
                    if mutex.lock_until(ample).is_ok() {
                        memory.change(3_000);
                        unlock(mutex);
                    }
                }
            })
        });
        for kill in 0..KILLS {
            let victims = [(); 2].map(|()| {
                fork(|| {
                    // Because the worker holds the mutex most of the time, such a short wait hardly
                    // ever succeeds. If it does, the mutex is released at once.
                    while !memory.stopped() {
                        let soon = Deadline::after(Duration::from_micros(1_500));
                        if memory.pair().mutex.lock_until(soon).is_ok() {
                            unlock(&memory.pair().mutex);
                            memory.until_more(1);
                        }
                    }
                })
            });
            memory.until_more(20);
            std::thread::sleep(Duration::from_micros(kill as u64 * 137));
            // A process that is killed while it holds the mutex leaves it locked: robust mutexes
            // are for that.
            for victim in victims {
                memory.pair().mutex.lock();
                victim.kill();
                unlock(&memory.pair().mutex);
            }
            memory.until_more(20);
        }
        memory.shared().stop.store(1, SeqCst);
        assert_eq!(workers.map(Child::join), [0; 2]);
        assert_eq!(memory.shared().complaints.load(SeqCst), 0);
        // Whatever the dead had asked for.
        assert!(memory.pair().mutex.try_lock());
        unlock(&memory.pair().mutex);
        assert_eq!(memory.pair().mutex.destroy(), Ok(()));
    });
}

#[test]
fn tokens_pass_between_processes() {
    with_every(shared_sorts(), |sort| {
        const TOKENS: usize = 300;
        const TAKERS: usize = 3;
        let memory = Memory::new(shared(sort));
        let takers = [(); TAKERS].map(|()| {
            fork(|| {
                (0..TOKENS).for_each(|_| memory.pair().take());
            })
        });
        let pair = memory.pair();
        let mut added = 0;
        while added < TAKERS * TOKENS {
            let more = (added % 5 + 1).min(TAKERS * TOKENS - added);
            if added % 2 == 0 {
                pair.add(more);
                pair.condvar.notify_all();
            } else {
                for _ in 0..more {
                    pair.mutex.lock();
                    pair.ready.fetch_add(1, SeqCst);
                    pair.condvar.notify_one();
                    unlock(&pair.mutex);
                }
            }
            added += more;
        }
        assert_eq!(takers.map(Child::join), [0; TAKERS]);
        assert_eq!(pair.ready.load(SeqCst), 0);
        assert_eq!(pair.condvar.destroy(), Ok(()));
        assert_eq!(pair.mutex.destroy(), Ok(()));
    });
}

/// Waiters that were moved behind a killed one are found by the next signal, at the latest.
#[test]
fn a_killed_waiter_does_not_stop_the_signals() {
    let plain = shared_sorts().filter(|sort| !sort.is_pi() && sort.kind == Kind::Normal);
    with_every(plain, |sort| {
        let memory = Memory::new(shared(sort));
        for kill in 0..8 {
            let pair = memory.pair();
            pair.mutex.lock();
            pair.ready.store(0, SeqCst);
            pair.waiting.store(0, SeqCst);
            unlock(&pair.mutex);
            let waiter = || {
                memory.pair().take();
            };
            let victim = fork(waiter);
            pair.until_waiting(1);
            victim.until_asleep();
            let others = [(); 2].map(|()| fork(waiter));
            pair.until_waiting(3);
            others.iter().for_each(Child::until_asleep);
            // With the mutex held, the first of the three is woken and waits for it, and the others
            // were moved.
            pair.mutex.lock();
            if kill % 2 == 0 {
                assert!(pair.condvar.notify_all() > 0);
            }
            victim.kill();
            pair.ready.store(2, SeqCst);
            unlock(&pair.mutex);
            while pair.ready.load(SeqCst) > 0 {
                pair.condvar.notify_all();
                std::thread::sleep(Duration::from_micros(200));
            }
            assert_eq!(others.map(Child::join), [0; 2]);
        }
    });
}
