//! The reader/writer lock: both preferences, both scopes; hand-off, deadlines, anti-starvation
//! turns; upgrade and downgrade.

use super::*;
use crate::park::spin::let_others_be_busy;
use crate::{Clock, Deadline, Preference, RawRwLock, RwLockError, Scope};
use core::cell::Cell;
use std::thread_local;

thread_local! {
    /// Whether a waiter's first re-check timer fires in the model that this OS thread runs. (All
    /// threads of a model run on it.)
    pub(crate) static ALARMS_RING: Cell<bool> = const { Cell::new(false) };
}

/// A lock and the data that it guards; loom reports a write that is not exclusive.
pub(super) struct Guarded {
    pub(super) lock: RawRwLock,
    data: crate::checker::cell::UnsafeCell<usize>,
}

impl Guarded {
    pub(super) fn new(preference: Preference, scope: Scope) -> Arc<Self> {
        Arc::new(Self {
            lock: RawRwLock::with(preference, scope),
            data: crate::checker::cell::UnsafeCell::new(0),
        })
    }

    /// What a reader finds. The caller holds the lock.
    pub(super) fn look(&self) -> usize {
        // SAFETY: no thread writes meanwhile; loom checks exactly that.
        self.data.with(|data| unsafe { *data })
    }

    /// The caller holds the lock for writing.
    pub(super) fn change(&self) {
        // SAFETY: no other thread has access; loom checks exactly that.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    pub(super) fn read(&self) -> usize {
        self.lock.read(0, None).unwrap();
        let found = self.look();
        self.unlock();
        found
    }

    pub(super) fn write(&self) {
        self.lock.write(0, None).unwrap();
        self.change();
        self.unlock();
    }

    pub(super) fn unlock(&self) {
        // SAFETY: the caller holds it.
        unsafe { self.lock.unlock() }.unwrap();
    }

    /// All threads have left: nothing is held or announced.
    pub(super) fn is_left_alone(&self, writes: usize) {
        assert_eq!(self.read(), writes);
        self.write();
        assert!(self.lock.is_idle(), "{:?}", self.lock);
    }
}

/// In a model every deadline has passed.
pub(super) fn passed() -> Deadline {
    Deadline::at(Clock::Monotonic, core::time::Duration::ZERO)
}

pub(super) const KINDS: [(Preference, Scope); 4] = [
    (Preference::Reader, Scope::Private),
    (Preference::Writer, Scope::Private),
    (Preference::Reader, Scope::Shared),
    (Preference::Writer, Scope::Shared),
];

pub(super) fn start(
    guarded: &Arc<Guarded>,
    work: impl FnOnce(&Guarded) + Send + 'static,
) -> thread::JoinHandle<()> {
    let guarded = guarded.clone();
    thread::spawn(move || work(&guarded))
}

pub(super) fn with_alarms(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    ALARMS_RING.set(true);
    check(preemptions, model);
    ALARMS_RING.set(false);
}

#[test]
fn a_writer_is_alone() {
    for (preference, scope) in KINDS {
        check(3, move || {
            let guarded = Guarded::new(preference, scope);
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            guarded.write();
            reader.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn two_writers_and_a_reader_get_their_turn() {
    for (preference, scope) in KINDS {
        check(1, move || {
            let guarded = Guarded::new(preference, scope);
            let writer = start(&guarded, Guarded::write);
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            guarded.write();
            writer.join().unwrap();
            reader.join().unwrap();
            guarded.is_left_alone(2);
        });
    }
}

fn two_writers_come_in_after_one_release(preference: Preference, scope: Scope) {
    let guarded = Guarded::new(preference, scope);
    guarded.lock.write(0, None).unwrap();
    let writers = [(); 2].map(|()| start(&guarded, Guarded::write));
    guarded.change();
    guarded.unlock();
    for thread in writers {
        thread.join().unwrap();
    }
    guarded.is_left_alone(3);
}

#[test]
fn one_release_is_enough_for_two_writers() {
    for (preference, scope) in KINDS {
        check(1, move || {
            two_writers_come_in_after_one_release(preference, scope)
        });
    }
}

/// When other processes compete for the CPUs, one release wakes both.
#[test]
fn a_herd_of_writers_is_woken() {
    check(1, move || {
        let_others_be_busy();
        two_writers_come_in_after_one_release(Preference::Reader, Scope::Private);
    });
}

#[test]
fn one_release_is_enough_for_a_writer_and_a_reader() {
    for (preference, scope) in KINDS {
        check(1, move || {
            let guarded = Guarded::new(preference, scope);
            guarded.lock.write(0, None).unwrap();
            let writer = start(&guarded, Guarded::write);
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            guarded.change();
            guarded.unlock();
            writer.join().unwrap();
            reader.join().unwrap();
            guarded.is_left_alone(2);
        });
    }
}

#[test]
fn a_writer_that_gives_up_lets_those_in_who_waited_for_it() {
    for (preference, scope) in KINDS {
        check(1, move || {
            let guarded = Guarded::new(preference, scope);
            guarded.lock.read(0, None).unwrap();
            let impatient = start(&guarded, |guarded| {
                // It may come late.
                if guarded.lock.write(0, Some(&passed())).is_ok() {
                    guarded.unlock();
                }
            });
            // Under writer preference the reader waits behind the writer, and no other thread
            // leaves before it.
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            reader.join().unwrap();
            guarded.unlock();
            impatient.join().unwrap();
            guarded.is_left_alone(0);
        });
    }
}

#[test]
fn a_writer_that_gives_up_does_not_take_another_s_bit_with_it() {
    for (preference, scope) in KINDS {
        check(1, move || {
            let guarded = Guarded::new(preference, scope);
            guarded.lock.read(0, None).unwrap();
            let impatient = start(&guarded, |guarded| {
                if guarded.lock.write(0, Some(&passed())).is_ok() {
                    guarded.unlock();
                }
            });
            let patient = start(&guarded, Guarded::write);
            guarded.unlock();
            patient.join().unwrap();
            impatient.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn a_turn_is_taken_and_used() {
    for (preference, scope) in KINDS {
        with_alarms(1, move || {
            let guarded = Guarded::new(preference, scope);
            guarded.lock.read(0, None).unwrap();
            let writer = start(&guarded, Guarded::write);
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            guarded.unlock();
            writer.join().unwrap();
            reader.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn who_reads_can_read_again_whoever_waits() {
    for scope in [Scope::Private, Scope::Shared] {
        with_alarms(2, move || {
            let guarded = Guarded::new(Preference::Reader, scope);
            guarded.lock.read(0, None).unwrap();
            let writer = start(&guarded, Guarded::write);
            guarded.lock.read(0, None).unwrap();
            guarded.look();
            guarded.unlock();
            guarded.unlock();
            writer.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn who_says_that_it_reads_can_read_again_under_writer_preference() {
    for scope in [Scope::Private, Scope::Shared] {
        check(2, move || {
            let guarded = Guarded::new(Preference::Writer, scope);
            guarded.lock.read(0, None).unwrap();
            let writer = start(&guarded, Guarded::write);
            guarded.lock.read_recursive(0, None).unwrap();
            guarded.look();
            guarded.unlock();
            guarded.unlock();
            writer.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn an_upgrade_waits_for_the_readers() {
    for (preference, scope) in KINDS {
        check(1, move || {
            let guarded = Guarded::new(preference, scope);
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            upgrade(&guarded);
            reader.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn no_writer_comes_before_an_upgrade() {
    for (preference, scope) in KINDS {
        check(2, move || {
            let guarded = Guarded::new(preference, scope);
            let writer = start(&guarded, Guarded::write);
            upgrade(&guarded);
            writer.join().unwrap();
            guarded.is_left_alone(2);
        });
    }
}

pub(super) fn upgrade(guarded: &Guarded) {
    assert!(guarded.lock.claim());
    let found = guarded.look();
    guarded.lock.upgrade_claim(None).unwrap();
    // No thread has written in between.
    assert_eq!(guarded.look(), found);
    guarded.change();
    guarded.unlock();
}

#[test]
fn an_upgrade_that_gives_up_lets_those_in_who_waited_for_it() {
    for (preference, scope) in KINDS {
        check(1, move || {
            let guarded = Guarded::new(preference, scope);
            guarded.lock.read(0, None).unwrap();
            let upgrader = start(&guarded, |guarded| {
                assert!(guarded.lock.claim());
                assert_eq!(
                    guarded.lock.upgrade_claim(Some(&passed())),
                    Err(RwLockError::TimedOut)
                );
                guarded.unlock();
            });
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            reader.join().unwrap();
            upgrader.join().unwrap();
            guarded.unlock();
            guarded.is_left_alone(0);
        });
    }
}

#[test]
fn a_downgrade_lets_readers_in() {
    for (preference, scope) in KINDS {
        check(3, move || {
            let guarded = Guarded::new(preference, scope);
            guarded.lock.write(0, None).unwrap();
            let reader = start(&guarded, |guarded| assert_eq!(guarded.read(), 1));
            guarded.change();
            guarded.lock.become_reader();
            // While this thread still reads.
            reader.join().unwrap();
            guarded.unlock();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn a_claim_that_is_given_back_goes_to_the_next() {
    for (preference, scope) in KINDS {
        check(2, move || {
            let guarded = Guarded::new(preference, scope);
            guarded.lock.read(0, None).unwrap();
            assert!(guarded.lock.claim());
            let next = start(&guarded, |guarded| {
                assert!(guarded.lock.claim());
                guarded.look();
                guarded.unlock_claim();
            });
            guarded.unlock_claim();
            // The next holder of the upgradable lock coexists with a reader that stays.
            next.join().unwrap();
            guarded.unlock();
            guarded.is_left_alone(0);
        });
    }
}

/// Regression: under writer preference each claimant took the other's announcement for a writer's,
/// and both slept forever.
#[test]
fn two_claims_follow_each_other() {
    for (preference, scope) in KINDS {
        check(1, move || {
            let guarded = Guarded::new(preference, scope);
            assert!(guarded.lock.claim());
            let claimants = [(); 2].map(|()| {
                start(&guarded, |guarded| {
                    assert!(guarded.lock.claim());
                    guarded.look();
                    guarded.unlock_claim();
                })
            });
            guarded.unlock_claim();
            for thread in claimants {
                thread.join().unwrap();
            }
            guarded.is_left_alone(0);
        });
    }
}

impl Guarded {
    pub(super) fn unlock_claim(&self) {
        self.lock.release_claim_of_model();
    }
}
