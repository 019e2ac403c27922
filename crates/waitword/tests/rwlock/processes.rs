//! Several processes, some of which are killed while they wait; and forked children.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use waitword::lock_api::RawRwLock as _;
use waitword::{Deadline, Preference, RawRwLock, Scope};
use waitword_testkit::{Child, Mapping, Way, fork, in_child, watch};

const PREFERENCES: [Preference; 2] = [Preference::Reader, Preference::Writer];

/// A lock in memory that children share, and a number that only its writers change.
struct Shared(Mapping);

impl Shared {
    fn new(preference: Preference) -> Self {
        let mapping = Mapping::anonymous(4096);
        // SAFETY: inside the mapping, aligned, and used as this only.
        unsafe {
            mapping.at::<RawRwLock>(0).write(RawRwLock::with(preference, Scope::Shared));
        }
        Self(mapping)
    }

    fn lock(&self) -> &RawRwLock {
        // SAFETY: written by `new`.
        unsafe { &*self.0.at::<RawRwLock>(0) }
    }

    fn number(&self) -> &AtomicU64 {
        // SAFETY: zeros are a valid atomic, and it is used only as that.
        unsafe { self.0.get(64) }
    }

    fn read(&self) -> u64 {
        self.lock().lock_shared();
        let found = self.number().load(SeqCst);
        self.unlock();
        found
    }

    fn write(&self) {
        self.lock().lock_exclusive();
        // Not one step: two writers at once would be detected.
        let found = self.number().load(SeqCst);
        std::hint::spin_loop();
        self.number().store(found + 1, SeqCst);
        self.unlock();
    }

    fn unlock(&self) {
        // SAFETY: the caller holds it.
        unsafe { self.lock().unlock() }.expect("held");
    }
}

#[test]
fn processes_exclude_each_other() {
    let watchdog = watch();
    const WRITES: u64 = 2000;
    for preference in PREFERENCES {
        let shared = Shared::new(preference);
        let children = [(); 3].map(|()| {
            fork(|| {
                for step in 0..4 * WRITES {
                    if step % 4 == 0 {
                        shared.write();
                    } else {
                        shared.read();
                    }
                }
            })
        });
        for child in children {
            child.succeeds();
        }
        assert_eq!(shared.read(), 3 * WRITES);
        watchdog.pat();
    }
}

/// The bits that a killed process has set stop no other process.
#[test]
fn a_killed_waiter_leaves_no_trace_that_matters() {
    let watchdog = watch();
    for preference in PREFERENCES {
        for killed_writes in [true, false] {
            for held_for_writing in [true, false] {
                if !killed_writes && !held_for_writing {
                    // It has nothing to wait for.
                    continue;
                }
                let shared = Shared::new(preference);
                if held_for_writing {
                    shared.lock().lock_exclusive();
                } else {
                    shared.lock().lock_shared();
                }
                let [killed, other] = [(); 2].map(|()| {
                    fork(|| {
                        if killed_writes {
                            shared.write();
                        } else {
                            shared.read();
                        }
                    })
                });
                killed.until_asleep();
                other.until_asleep();
                drop(killed);
                if !held_for_writing {
                    drop(other);
                    // A reader comes in while another reads: there is no waiting writer any more.
                    let reader = fork(|| {
                        shared.read();
                    });
                    reader.succeeds();
                    shared.unlock();
                    shared.write();
                } else {
                    shared.unlock();
                    other.succeeds();
                }
                shared.read();
                shared.write();
                watchdog.pat();
            }
        }
    }
}

/// A storm: children wait in all ways, and are killed at random moments, except while they hold the
/// lock. It is held most of the time, so most of them are killed while they wait.
#[test]
fn a_storm_of_kills_stops_no_process() {
    let watchdog = watch();
    for preference in PREFERENCES {
        let shared = Shared::new(preference);
        for round in 0..40u64 {
            shared.lock().lock_exclusive();
            let victims: [Child; 3] = std::array::from_fn(|index| {
                let shared = &shared;
                fork(move || -> i32 {
                    let deadline = (index == 2).then(|| Deadline::after(Duration::from_millis(2)));
                    let _ = match index {
                        0 => shared.lock().read(0, None),
                        1 => shared.lock().write(0, None),
                        _ => shared.lock().write(0, deadline.as_ref()),
                    };
                    // They are killed before they release the lock.
                    loop {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                })
            });
            std::thread::sleep(Duration::from_micros(300 * (round % 13)));
            drop(victims);
            shared.unlock();
            shared.read();
            shared.write();
            watchdog.pat();
        }
    }
}

/// A child has a copy of the lock, with the bits of threads that do not exist in it.
#[test]
fn a_forked_child_goes_on_with_its_copy() {
    let watchdog = watch();
    for preference in PREFERENCES {
        let lock: &RawRwLock = Box::leak(Box::new(RawRwLock::with(preference, Scope::Private)));
        lock.lock_exclusive();
        let waiters = [true, false].map(|writes| {
            std::thread::spawn(move || {
                match writes {
                    true => lock.lock_exclusive(),
                    false => lock.lock_shared(),
                }
                // SAFETY: taken just now.
                unsafe { lock.unlock() }.expect("held");
            })
        });
        waitword_testkit::until_waiting(lock, 2);
        // This thread holds it, and so does the child's only thread.
        in_child(Way::RawClone, || {
            // SAFETY: taken above.
            unsafe { lock.unlock() }.expect("held");
            for _ in 0..3 {
                lock.lock_shared();
                lock.lock_shared();
                // SAFETY: taken just now.
                unsafe {
                    lock.unlock_shared();
                    lock.unlock_shared();
                }
                lock.lock_exclusive();
                // SAFETY: taken just now.
                unsafe { lock.unlock_exclusive() };
            }
            lock.is_idle()
        });
        // SAFETY: taken above.
        unsafe { lock.unlock_exclusive() };
        for waiter in waiters {
            waiter.join().expect("a waiter");
        }
        watchdog.pat();
    }
}
