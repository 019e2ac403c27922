//! Biased readers: publishing against revocation, leaving against a writer that sleeps until they
//! have left; and the need for each fence.

use super::rwlock::{Guarded, Kind, PRIVATE, on, reader, with_timers, writer};
use super::*;
use crate::RwLockError;
use crate::checker::sync::atomic::fence;

/// Explores a scene on a biased lock of each of these kinds.
fn on_biased<S>(kinds: &[Kind], preemptions: usize, scene: S)
where
    S: Fn(&Arc<Guarded>) -> usize + Copy + Send + Sync + 'static,
{
    on(kinds, preemptions, move |guarded| {
        guarded.lock.become_biased(1);
        scene(guarded)
    });
}

#[test]
fn a_writer_revokes_the_bias() {
    on_biased(&PRIVATE, 3, |guarded| {
        let reader = reader(guarded);
        guarded.write();
        join([reader]);
        1
    });
}

#[test]
fn a_writer_that_tries_does_not_enter_beside_a_visible_reader() {
    on_biased(&PRIVATE, 3, |guarded| {
        let reader = reader(guarded);
        let wrote = guarded.lock.try_write(0).is_ok();
        if wrote {
            guarded.change();
            guarded.unlock();
        }
        join([reader]);
        usize::from(wrote)
    });
}

/// Between a reader's check of the word and the write of its slot, a writer comes and goes and the
/// lock becomes biased again. The slot then names the previous bias, which the next writer does not
/// look for.
#[test]
fn a_reader_whose_bias_is_over_withdraws() {
    on_biased(&PRIVATE[..1], 2, |guarded| {
        let reader = reader(guarded);
        guarded.write();
        guarded.lock.try_to_become_biased(2);
        guarded.write();
        join([reader]);
        2
    });
}

#[test]
fn a_visible_reader_leaves_while_two_writers_come() {
    on_biased(&PRIVATE[..1], 1, |guarded| {
        guarded.lock_shared();
        let writers = [(); 2].map(|()| writer(guarded));
        guarded.look();
        guarded.unlock();
        join(writers);
        2
    });
}

/// The writer's re-check timer fires while it waits for a slot, and a reader comes and goes by the
/// word: the writer does not lose its turn, and no thread is left asleep behind it. (Regression:
/// with 99 readers on two CPUs a write took 250 ms.)
#[test]
fn a_writer_takes_its_turn_while_it_waits_for_a_slot() {
    let scene = |guarded: &Arc<Guarded>| {
        guarded.lock_shared();
        let writer = writer(guarded);
        let reader = reader(guarded);
        guarded.look();
        guarded.unlock();
        join([writer, reader]);
        1
    };
    with_timers(|| on_biased(&PRIVATE, 1, scene));
}

#[test]
fn a_writer_that_gives_up_on_a_slot_lets_in_the_waiters_behind_it() {
    on_biased(&PRIVATE, 2, |guarded| {
        guarded.lock_shared();
        let reader = reader(guarded);
        let wrote = guarded.lock.write(0, Some(&passed()));
        assert_eq!(wrote, Err(RwLockError::TimedOut));
        // The reader proceeds although this thread still reads.
        join([reader]);
        guarded.unlock();
        0
    });
}

#[test]
fn a_visible_reader_can_read_again() {
    on_biased(&PRIVATE[..1], 2, |guarded| {
        guarded.lock_shared();
        let writer = writer(guarded);
        guarded.lock_shared();
        guarded.look();
        guarded.unlock();
        guarded.unlock();
        join([writer]);
        1
    });
}

/// Regression: a writer that revoked the reader bias announced itself before it queued
/// (`UPGRADE_WAITS`, under writer preference). If no thread of this process had ever waited, the
/// leaving reader did not look at any queue and withdrew the announcement, although the writer was
/// queued by then.
#[test]
fn a_visible_reader_that_reads_again_wakes_the_revoking_writer() {
    on_biased(&PRIVATE[1..], 3, |guarded| {
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
fn an_upgrade_revokes_the_bias() {
    on_biased(&PRIVATE[..1], 2, |guarded| {
        let reader = reader(guarded);
        assert!(guarded.lock.read_upgradably_of_model());
        guarded.look();
        guarded.lock.upgrade_of_model(None).unwrap();
        guarded.change();
        guarded.unlock();
        join([reader]);
        1
    });
}

#[test]
fn a_writer_that_cannot_wait_leaves_readers_be() {
    on_biased(&PRIVATE[..1], 3, |guarded| {
        guarded.lock_shared();
        let writer = spawn(guarded, |guarded| {
            assert_eq!(guarded.lock.try_write(0), Err(RwLockError::Busy));
            assert_eq!(guarded.lock.write(0, Some(&passed())), Err(RwLockError::TimedOut));
        });
        guarded.read();
        join([writer]);
        guarded.unlock();
        0
    });
}

/// One thread takes a hold by a slot and another releases it.
#[test]
fn a_reader_without_a_slot_gives_back_another_s() {
    on_biased(&PRIVATE[..1], 2, |guarded| {
        guarded.lock_shared();
        let other = spawn(guarded, |guarded| {
            guarded.look();
            guarded.unlock();
        });
        guarded.write();
        join([other]);
        1
    });
}

/// One reader counted in the word, and this thread in a slot.
fn lock_by_the_word_and_by_a_slot(guarded: &Guarded) {
    guarded.lock_shared();
    guarded.lock.become_biased(1);
    guarded.lock_shared();
}

/// (Regression: a thread with a slot that left fairly took the other thread's hold out of the word,
/// sometimes after the other had done so, and then the lock had four billion readers.)
#[test]
fn a_reader_in_a_slot_leaves_fairly_beside_one_in_the_word() {
    on(&PRIVATE, 2, |guarded| {
        lock_by_the_word_and_by_a_slot(guarded);
        guarded.lock.pretend_that_a_writer_waits();
        let other = spawn(guarded, Guarded::unlock);
        guarded.look();
        guarded.lock.unlock_shared_fairly();
        join([other]);
        0
    });
}

/// Two threads release what this one holds by the word and by a slot: they do not both release the
/// same hold.
#[test]
fn two_threads_give_back_a_hold_in_the_word_and_one_in_a_slot() {
    on(&PRIVATE[..1], 1, |guarded| {
        lock_by_the_word_and_by_a_slot(guarded);
        let writer = writer(guarded);
        let others = [(); 2].map(|()| spawn(guarded, Guarded::unlock));
        join(others);
        join([writer]);
        1
    });
}

/// A thread that releases another thread's hold may find the slot of a reader that is about to
/// check whether it may enter. That reader must then release the other hold in its place.
#[test]
fn a_slot_is_taken_from_a_reader_that_may_not_enter() {
    on_biased(&PRIVATE[..1], 2, |guarded| {
        // This thread's slot is the first.
        guarded.read();
        join([spawn(guarded, Guarded::lock_shared)]);
        let other = spawn(guarded, Guarded::unlock);
        let writer = writer(guarded);
        guarded.read();
        join([other, writer]);
        1
    });
}

/// Guards that were sent to another thread: this thread releases the late reader's hold, by its own
/// slot, while the other thread looks for this thread's hold.
#[test]
fn a_hold_is_found_though_others_come_and_go_meanwhile() {
    for unlock in [
        |guarded: &Guarded| guarded.lock.unlock_shared(),
        // POSIX's unlock, which could also find that no thread holds the lock.
        Guarded::unlock,
    ] {
        on_biased(&PRIVATE[..1], 1, move |guarded| {
            // The first line belongs to another thread than this one.
            join([reader(guarded)]);
            guarded.lock_shared();
            let other = spawn(guarded, unlock);
            join([spawn(guarded, Guarded::lock_shared)]);
            guarded.lock.unlock_shared();
            join([other]);
            0
        });
    }
}

/// Reader: slot, fence, check BIASED. Revoker: clear BIASED, fence, check the slot. The real code
/// is in `visible_readers.rs`.
fn one_sees_the_other(reader_fences: bool, revoker_fences: bool) {
    crate::checker::model(move || {
        // Whether the lock is biased, and the slot.
        let shared = Arc::new((AtomicU32::new(1), AtomicU32::new(0)));
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (biased, slot) = &*shared;
                let published = slot.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
                assert!(published.is_ok());
                if reader_fences {
                    fence(Ordering::SeqCst);
                }
                biased.load(Ordering::Acquire) == 1
            })
        };
        let (biased, slot) = &*shared;
        biased.fetch_and(0, Ordering::AcqRel);
        if revoker_fences {
            fence(Ordering::SeqCst);
        }
        let empty = slot.load(Ordering::Acquire) == 0;
        let reads = reader.join().unwrap();
        assert!(!(reads && empty), "a reader beside a writer");
    });
}

#[test]
fn with_both_fences_the_reader_or_the_revoker_sees_the_other() {
    one_sees_the_other(true, true);
}

#[test]
#[cfg_attr(shuttle, ignore = "shuttle has no weak memory")]
#[should_panic(expected = "a reader beside a writer")]
fn without_the_reader_s_fence_neither_does() {
    one_sees_the_other(false, true);
}

#[test]
#[cfg_attr(shuttle, ignore = "shuttle has no weak memory")]
#[should_panic(expected = "a reader beside a writer")]
fn without_the_revoker_s_fence_neither_does() {
    one_sees_the_other(true, false);
}
