//! Some threads do everything that a lock offers, at random. Which threads are inside is checked
//! under the lock.

use super::KINDS;
use fastrand::Rng;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use waitword::lock_api::{
    RawRwLock as _, RawRwLockDowngrade as _, RawRwLockFair as _, RawRwLockRecursive as _,
    RawRwLockTimed as _, RawRwLockUpgrade as _, RawRwLockUpgradeDowngrade as _,
    RawRwLockUpgradeTimed as _,
};
use waitword::{Preference, RawRwLock, Scope};
use waitword_testkit::watch;

fn moment(dice: &mut Rng) -> Duration {
    Duration::from_micros(dice.u64(0..300))
}

const WRITER: i64 = -1;

/// A lock, and what is inside: a number of readers, or a writer.
struct Room {
    lock: RawRwLock,
    inside: AtomicI64,
    may_read_again: bool,
}

impl Room {
    fn reader_comes(&self) {
        assert!(self.inside.fetch_add(1, SeqCst) >= 0, "beside a writer");
    }

    fn reader_goes(&self) {
        assert!(self.inside.fetch_sub(1, SeqCst) > 0);
    }

    fn becomes(&self, from: i64, to: i64) {
        assert_eq!(self.inside.swap(to, SeqCst), from, "not alone");
    }

    fn read(&self, dice: &mut Rng) {
        let lock = &self.lock;
        let holds = match dice.u64(0..10) {
            0 => lock.try_lock_shared(),
            1 => lock.try_lock_shared_for(moment(dice)),
            2 => {
                lock.lock_shared_recursive();
                true
            }
            _ => {
                lock.lock_shared();
                true
            }
        };
        if !holds {
            return;
        }
        self.reader_comes();
        stay(dice);
        if self.may_read_again && dice.u64(0..8) == 0 {
            lock.lock_shared();
            stay(dice);
            // SAFETY: taken just now.
            unsafe { lock.unlock_shared() };
        }
        self.reader_goes();
        // SAFETY: taken above.
        unsafe {
            match dice.u64(0..32) {
                0 => lock.unlock_shared_fair(),
                _ => lock.unlock_shared(),
            }
        }
    }

    fn write(&self, dice: &mut Rng) {
        let lock = &self.lock;
        let holds = match dice.u64(0..5) {
            0 => lock.try_lock_exclusive(),
            1 => lock.try_lock_exclusive_for(moment(dice)),
            _ => {
                lock.lock_exclusive();
                true
            }
        };
        if !holds {
            return;
        }
        self.becomes(0, WRITER);
        stay(dice);
        // SAFETY: each branch releases what is held, or changes it into another hold.
        unsafe {
            match dice.u64(0..8) {
                0 => {
                    self.becomes(WRITER, 1);
                    lock.downgrade();
                    stay(dice);
                    self.reader_goes();
                    lock.unlock_shared();
                }
                1 => {
                    self.becomes(WRITER, 1);
                    lock.downgrade_to_upgradable();
                    stay(dice);
                    lock.upgrade();
                    self.becomes(1, WRITER);
                    self.becomes(WRITER, 0);
                    lock.unlock_exclusive_fair();
                }
                _ => {
                    self.becomes(WRITER, 0);
                    lock.unlock_exclusive();
                }
            }
        }
    }

    fn read_upgradably(&self, dice: &mut Rng) {
        let lock = &self.lock;
        let holds = match dice.u64(0..3) {
            0 => lock.try_lock_upgradable(),
            1 => lock.try_lock_upgradable_for(moment(dice)),
            _ => {
                lock.lock_upgradable();
                true
            }
        };
        if !holds {
            return;
        }
        self.reader_comes();
        stay(dice);
        // SAFETY: each branch releases what is held, or changes it into another hold.
        unsafe {
            let upgraded = match dice.u64(0..4) {
                0 => lock.try_upgrade(),
                1 => lock.try_upgrade_for(moment(dice)),
                2 => {
                    lock.downgrade_upgradable();
                    self.reader_goes();
                    return lock.unlock_shared();
                }
                _ => false,
            };
            if upgraded {
                self.becomes(1, WRITER);
                stay(dice);
                self.becomes(WRITER, 0);
                lock.unlock_exclusive();
            } else {
                self.reader_goes();
                lock.unlock_upgradable();
            }
        }
    }
}

/// Most sections are short. Some are not, and some lose their CPU.
fn stay(dice: &mut Rng) {
    match dice.u64(0..1000) {
        0..800 => {}
        800..990 => (0..dice.u64(0..200)).for_each(|_| std::hint::spin_loop()),
        990..999 => std::thread::yield_now(),
        _ => std::thread::sleep(moment(dice)),
    }
}

/// Out of 1000 operations, `writes` are writes, and as many are upgradable reads.
fn crowd(preference: Preference, scope: Scope, writes: u64, seed: u64) {
    const THREADS: u64 = 6;
    let room = Room {
        lock: RawRwLock::with(preference, scope),
        inside: AtomicI64::new(0),
        may_read_again: preference == Preference::Reader,
    };
    let end = Instant::now() + Duration::from_millis(150);
    std::thread::scope(|threads| {
        for thread in 1..=THREADS {
            let room = &room;
            threads.spawn(move || {
                let mut dice = Rng::with_seed(seed * THREADS + thread);
                while Instant::now() < end {
                    for _ in 0..20 {
                        match dice.u64(0..1000) {
                            roll if roll < writes => room.write(&mut dice),
                            roll if roll < 2 * writes => room.read_upgradably(&mut dice),
                            _ => room.read(&mut dice),
                        }
                    }
                }
            });
        }
    });
    // In the kernel's queue, the bits of waiters that gave up remain until the next release.
    room.write(&mut Rng::with_seed(7));
    room.lock.lock_exclusive();
    // SAFETY: taken just now.
    unsafe { room.lock.unlock_exclusive() };
    assert!(room.lock.is_idle(), "{:?}", room.lock);
}

#[test]
fn a_writer_is_alone_in_every_crowd() {
    let watchdog = watch();
    for (preference, scope) in KINDS {
        for (seed, writes) in [2, 50, 400].into_iter().enumerate() {
            crowd(preference, scope, writes, seed as u64);
            watchdog.pat();
        }
    }
}
