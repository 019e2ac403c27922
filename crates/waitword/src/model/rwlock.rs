//! The reader/writer lock: both preferences, both scopes; hand-off, deadlines, anti-starvation
//! turns; upgrade and downgrade.

use super::*;
use crate::lock::let_timers_fire;
use crate::park::spin::let_others_be_busy;
use crate::{Preference, RawRwLock, RwLockError, Scope};

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

    pub(super) fn lock_shared(&self) {
        self.lock.read(0, None).unwrap();
    }

    pub(super) fn lock_exclusive(&self) {
        self.lock.write(0, None).unwrap();
    }

    pub(super) fn read(&self) -> usize {
        self.lock_shared();
        let found = self.look();
        self.unlock();
        found
    }

    pub(super) fn write(&self) {
        self.lock_exclusive();
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

pub(super) type Kind = (Preference, Scope);

pub(super) const KINDS: [Kind; 4] = [
    (Preference::Reader, Scope::Private),
    (Preference::Writer, Scope::Private),
    (Preference::Reader, Scope::Shared),
    (Preference::Writer, Scope::Shared),
];
pub(super) const PRIVATE: [Kind; 2] = [KINDS[0], KINDS[1]];
const READER_PREFERENCE: [Kind; 2] = [KINDS[0], KINDS[2]];
const WRITER_PREFERENCE: [Kind; 2] = [KINDS[1], KINDS[3]];

/// A thread that reads once.
pub(super) fn reader(guarded: &Arc<Guarded>) -> thread::JoinHandle<()> {
    spawn(guarded, |guarded| {
        guarded.read();
    })
}

/// A thread that writes once.
pub(super) fn writer(guarded: &Arc<Guarded>) -> thread::JoinHandle<()> {
    spawn(guarded, Guarded::write)
}

/// Explores a scene on a lock of each of these kinds. The scene returns the number of writes.
pub(super) fn on<S>(kinds: &[Kind], preemptions: usize, scene: S)
where
    S: Fn(&Arc<Guarded>) -> usize + Copy + Send + Sync + 'static,
{
    for &(preference, scope) in kinds {
        check(preemptions, move || {
            let guarded = Guarded::new(preference, scope);
            let writes = scene(&guarded);
            guarded.is_left_alone(writes);
        });
    }
}

/// Runs models in which each waiter's re-check timer fires once.
pub(super) fn with_timers(run: impl FnOnce()) {
    let_timers_fire(true);
    run();
    let_timers_fire(false);
}

#[test]
fn a_writer_is_alone() {
    on(&KINDS, 3, |guarded| {
        let reader = reader(guarded);
        guarded.write();
        join([reader]);
        1
    });
}

#[test]
fn two_writers_and_a_reader_get_their_turn() {
    on(&KINDS, 1, |guarded| {
        let writer = writer(guarded);
        let reader = reader(guarded);
        guarded.write();
        join([writer, reader]);
        2
    });
}

fn two_writers_enter_after_one_release(guarded: &Arc<Guarded>) -> usize {
    guarded.lock_exclusive();
    let writers = [(); 2].map(|()| writer(guarded));
    guarded.change();
    guarded.unlock();
    join(writers);
    3
}

#[test]
fn one_release_is_enough_for_two_writers() {
    on(&KINDS, 1, two_writers_enter_after_one_release);
}

/// When other processes compete for the CPUs, one release wakes both.
#[test]
fn a_herd_of_writers_is_woken() {
    on(&KINDS[..1], 1, |guarded| {
        let_others_be_busy();
        two_writers_enter_after_one_release(guarded)
    });
}

#[test]
fn one_release_is_enough_for_a_writer_and_a_reader() {
    on(&KINDS, 1, |guarded| {
        guarded.lock_exclusive();
        let writer = writer(guarded);
        let reader = reader(guarded);
        guarded.change();
        guarded.unlock();
        join([writer, reader]);
        2
    });
}

/// A thread that waits to write no longer than until a deadline. It may come late.
fn impatient_writer(guarded: &Arc<Guarded>) -> thread::JoinHandle<()> {
    spawn(guarded, |guarded| {
        if guarded.lock.write(0, Some(&passed())).is_ok() {
            guarded.unlock();
        }
    })
}

#[test]
fn a_writer_that_gives_up_lets_in_the_waiters_behind_it() {
    on(&KINDS, 1, |guarded| {
        guarded.lock_shared();
        let impatient = impatient_writer(guarded);
        // Under writer preference the reader waits behind the writer, and no other thread
        // leaves before it.
        join([reader(guarded)]);
        guarded.unlock();
        join([impatient]);
        0
    });
}

#[test]
fn a_writer_that_gives_up_does_not_take_another_s_bit_with_it() {
    on(&KINDS, 1, |guarded| {
        guarded.lock_shared();
        let impatient = impatient_writer(guarded);
        let patient = writer(guarded);
        guarded.unlock();
        join([patient, impatient]);
        1
    });
}

#[test]
fn a_turn_is_taken_and_used() {
    let scene = |guarded: &Arc<Guarded>| {
        guarded.lock_shared();
        let writer = writer(guarded);
        let reader = reader(guarded);
        guarded.unlock();
        join([writer, reader]);
        1
    };
    with_timers(|| on(&KINDS, 1, scene));
}

#[test]
fn a_reader_can_read_again_whatever_waits() {
    let scene = |guarded: &Arc<Guarded>| {
        guarded.lock_shared();
        let writer = writer(guarded);
        guarded.lock_shared();
        guarded.look();
        guarded.unlock();
        guarded.unlock();
        join([writer]);
        1
    };
    with_timers(|| on(&READER_PREFERENCE, 2, scene));
}

#[test]
fn a_recursive_read_enters_under_writer_preference() {
    on(&WRITER_PREFERENCE, 2, |guarded| {
        guarded.lock_shared();
        let writer = writer(guarded);
        guarded.lock.read_recursive(0, None).unwrap();
        guarded.look();
        guarded.unlock();
        guarded.unlock();
        join([writer]);
        1
    });
}

#[test]
fn an_upgrade_waits_for_the_readers() {
    on(&KINDS, 1, |guarded| {
        let reader = reader(guarded);
        upgrade(guarded);
        join([reader]);
        1
    });
}

#[test]
fn no_writer_comes_before_an_upgrade() {
    on(&KINDS, 2, |guarded| {
        let writer = writer(guarded);
        upgrade(guarded);
        join([writer]);
        2
    });
}

pub(super) fn upgrade(guarded: &Guarded) {
    assert!(guarded.lock.read_upgradably_of_model());
    let found = guarded.look();
    guarded.lock.upgrade_of_model(None).unwrap();
    // No thread has written in between.
    assert_eq!(guarded.look(), found);
    guarded.change();
    guarded.unlock();
}

#[test]
fn an_upgrade_that_gives_up_lets_in_the_waiters_behind_it() {
    on(&KINDS, 1, |guarded| {
        guarded.lock_shared();
        let upgrader = spawn(guarded, |guarded| {
            assert!(guarded.lock.read_upgradably_of_model());
            assert_eq!(guarded.lock.upgrade_of_model(Some(&passed())), Err(RwLockError::TimedOut));
            guarded.unlock();
        });
        let reader = reader(guarded);
        join([reader, upgrader]);
        guarded.unlock();
        0
    });
}

#[test]
fn a_downgrade_lets_readers_in() {
    on(&KINDS, 3, |guarded| {
        guarded.lock_exclusive();
        let reader = spawn(guarded, |guarded| assert_eq!(guarded.read(), 1));
        guarded.change();
        guarded.lock.become_reader();
        // While this thread still reads.
        join([reader]);
        guarded.unlock();
        1
    });
}

#[test]
fn a_released_upgradable_lock_goes_to_the_next() {
    on(&KINDS, 2, |guarded| {
        guarded.lock_shared();
        assert!(guarded.lock.read_upgradably_of_model());
        let next = spawn(guarded, |guarded| {
            assert!(guarded.lock.read_upgradably_of_model());
            guarded.look();
            guarded.unlock_upgradable();
        });
        guarded.unlock_upgradable();
        // The next holder of the upgradable lock coexists with a reader that stays.
        join([next]);
        guarded.unlock();
        0
    });
}

/// Regression: under writer preference each waiter for the upgradable lock took the other's
/// announcement for a writer's, and both slept forever.
#[test]
fn two_upgradable_readers_follow_each_other() {
    on(&KINDS, 1, |guarded| {
        assert!(guarded.lock.read_upgradably_of_model());
        let readers = [(); 2].map(|()| {
            spawn(guarded, |guarded| {
                assert!(guarded.lock.read_upgradably_of_model());
                guarded.look();
                guarded.unlock_upgradable();
            })
        });
        guarded.unlock_upgradable();
        join(readers);
        0
    });
}

impl Guarded {
    pub(super) fn unlock_upgradable(&self) {
        self.lock.release_upgradable_of_model();
    }
}
