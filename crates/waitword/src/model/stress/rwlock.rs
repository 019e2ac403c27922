//! A reader/writer lock of each preference and scope, with four readers, two writers, and one
//! thread that upgrades.

use super::super::rwlock::{Guarded, KINDS, reader, upgrade, writer};
use super::*;
use crate::lock::let_timers_fire;
use crate::park::spin::let_others_be_busy;
use crate::{Preference, Scope};
use std::sync::atomic::AtomicUsize as Count;

/// A lock and the number of writes. (The count is not shuttle's: it is not part of the protocol.)
struct Scene {
    guarded: Arc<Guarded>,
    writes: Arc<Count>,
}

impl Scene {
    fn start(&self, work: impl Fn(&Guarded) -> usize + Send + 'static) -> thread::JoinHandle<()> {
        let writes = self.writes.clone();
        spawn(&self.guarded, move |guarded| {
            for _ in 0..2 {
                writes.fetch_add(work(guarded), Ordering::Relaxed);
            }
        })
    }
}

/// Returns the number of writes: none.
fn read(guarded: &Guarded) -> usize {
    match dice(4) {
        0 if guarded.lock.read(0, Some(&passed())).is_ok() => {
            guarded.look();
            guarded.unlock();
        }
        0 => {}
        1 => {
            guarded.lock_shared();
            guarded.lock.read_recursive(0, None).unwrap();
            guarded.look();
            guarded.unlock();
            guarded.unlock();
        }
        _ => drop(guarded.read()),
    }
    0
}

fn write(guarded: &Guarded) -> usize {
    match dice(4) {
        0 if guarded.lock.write(0, Some(&passed())).is_err() => return 0,
        1 if guarded.lock.try_write(0).is_err() => return 0,
        0 | 1 => {
            guarded.change();
            guarded.unlock();
        }
        2 => {
            guarded.lock_exclusive();
            guarded.change();
            guarded.lock.become_reader();
            guarded.look();
            guarded.unlock();
        }
        _ => guarded.write(),
    }
    1
}

fn read_upgradably(guarded: &Guarded) -> usize {
    if dice(2) == 0 {
        upgrade(guarded);
        return 1;
    }
    assert!(guarded.lock.read_upgradably_of_model());
    if guarded.lock.upgrade_of_model(Some(&passed())).is_err() {
        guarded.look();
        guarded.unlock_upgradable();
        return 0;
    }
    guarded.change();
    guarded.unlock();
    1
}

fn seven_share_it(preference: Preference, scope: Scope, biased: bool, timers: bool) {
    seven_share_it_beside(false, preference, scope, biased, timers);
}

/// `others`: other processes compete for the CPUs.
fn seven_share_it_beside(
    others: bool,
    preference: Preference,
    scope: Scope,
    biased: bool,
    timers: bool,
) {
    // Shown if the test fails.
    println!(
        "{preference:?}s first, {scope:?}, others: {others}, biased: {biased}, timers: {timers}"
    );
    let_timers_fire(timers);
    stress(move || {
        if others {
            let_others_be_busy();
        }
        let scene = Scene { guarded: Guarded::new(preference, scope), writes: Arc::default() };
        if biased {
            scene.guarded.lock.become_biased(1);
        }
        let mut threads: Vec<_> = (0..4).map(|_| scene.start(read)).collect();
        threads.extend((0..2).map(|_| scene.start(write)));
        threads.push(scene.start(read_upgradably));
        join(threads);
        let writes = scene.writes.load(Ordering::Relaxed);
        scene.guarded.is_left_alone(writes);
    });
    let_timers_fire(false);
}

#[test]
fn seven_share_it_of_each_kind() {
    for (preference, scope) in KINDS {
        seven_share_it(preference, scope, false, false);
    }
}

#[test]
fn seven_share_it_while_others_compete() {
    for timers in [false, true] {
        seven_share_it_beside(true, Preference::Reader, Scope::Private, false, timers);
    }
}

#[test]
fn seven_share_it_and_take_turns() {
    for (preference, scope) in KINDS {
        seven_share_it(preference, scope, false, true);
    }
}

#[test]
fn seven_share_a_biased_lock() {
    for preference in [Preference::Reader, Preference::Writer] {
        for timers in [false, true] {
            seven_share_it(preference, Scope::Private, true, timers);
        }
    }
}

/// Regression: while the leaving reader looked for a thread to wake, the other reader came in, so
/// that no thread was woken, and left again, relying on the first. The writer slept until its
/// re-check timer fired. (loom needs three context switches to find it, which takes too long.)
#[test]
fn a_reader_that_comes_and_goes_meanwhile_loses_no_wake_up() {
    stress(|| {
        let guarded = Guarded::new(Preference::Reader, Scope::Private);
        guarded.lock_shared();
        let writer = writer(&guarded);
        while !guarded.lock.keeps_a_writer_waiting() {
            thread::yield_now();
        }
        let reader = reader(&guarded);
        guarded.unlock();
        join([writer, reader]);
        guarded.is_left_alone(1);
    });
}
