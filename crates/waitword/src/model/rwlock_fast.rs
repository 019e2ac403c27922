//! Biased readers: publishing against revocation, leaving against a writer that sleeps until they
//! have left; and the need for each fence.

use super::rwlock::{Guarded, passed, start, with_alarms};
use super::*;
use crate::checker::sync::atomic::fence;
use crate::{Preference, RwLockError, Scope};

fn fast(preference: Preference) -> Arc<Guarded> {
    let guarded = Guarded::new(preference, Scope::Private);
    guarded.lock.become_fast(1);
    guarded
}

const PREFERENCES: [Preference; 2] = [Preference::Reader, Preference::Writer];

#[test]
fn a_writer_drives_out_fast_readers() {
    for preference in PREFERENCES {
        check(3, move || {
            let guarded = fast(preference);
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            guarded.write();
            reader.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn a_writer_that_tries_does_not_come_in_beside_a_fast_reader() {
    for preference in PREFERENCES {
        check(3, move || {
            let guarded = fast(preference);
            let reader = start(&guarded, |guarded| drop(guarded.read()));
            let wrote = guarded.lock.try_write(0).is_ok();
            if wrote {
                guarded.change();
                guarded.unlock();
            }
            reader.join().unwrap();
            guarded.is_left_alone(usize::from(wrote));
        });
    }
}

/// Between a reader's check of the word and the write of its slot, a writer comes and goes and the
/// lock becomes biased again. The slot then names the previous bias, which the next writer does not
/// look for.
#[test]
fn a_reader_whose_bias_is_over_withdraws() {
    check(2, || {
        let guarded = fast(Preference::Reader);
        let reader = start(&guarded, |guarded| drop(guarded.read()));
        guarded.write();
        guarded.lock.try_to_become_fast(2);
        guarded.write();
        reader.join().unwrap();
        guarded.is_left_alone(2);
    });
}

#[test]
fn a_fast_reader_leaves_while_two_writers_come() {
    check(1, || {
        let guarded = fast(Preference::Reader);
        guarded.lock.read(0, None).unwrap();
        let writers = [(); 2].map(|()| start(&guarded, Guarded::write));
        guarded.look();
        guarded.unlock();
        for writer in writers {
            writer.join().unwrap();
        }
        guarded.is_left_alone(2);
    });
}

/// The writer's re-check timer fires while it waits for a slot, and a reader comes and goes by the
/// word: the writer does not lose its turn, and no thread is left asleep behind it. (Regression:
/// with 99 readers on two CPUs a write took 250 ms.)
#[test]
fn a_writer_takes_its_turn_while_it_waits_for_a_slot() {
    for preference in PREFERENCES {
        with_alarms(1, move || {
            let guarded = fast(preference);
            guarded.lock.read(0, None).unwrap();
            let writer = start(&guarded, Guarded::write);
            let reader = start(&guarded, |guarded| {
                guarded.read();
            });
            guarded.look();
            guarded.unlock();
            writer.join().unwrap();
            reader.join().unwrap();
            guarded.is_left_alone(1);
        });
    }
}

#[test]
fn a_writer_that_gives_up_waiting_for_a_slot_lets_those_in_who_waited_for_it() {
    for preference in PREFERENCES {
        check(2, move || {
            let guarded = fast(preference);
            guarded.lock.read(0, None).unwrap();
            let reader = start(&guarded, |guarded| {
                guarded.read();
            });
            let wrote = guarded.lock.write(0, Some(&passed()));
            assert_eq!(wrote, Err(RwLockError::TimedOut));
            // The reader proceeds although this thread still reads.
            reader.join().unwrap();
            guarded.unlock();
            guarded.is_left_alone(0);
        });
    }
}

#[test]
fn who_reads_fast_can_read_again() {
    check(2, || {
        let guarded = fast(Preference::Reader);
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

/// Regression: a writer that revoked the reader bias announced itself before it queued
/// (`CLAIM_WAITS`, under writer preference). If no thread of this process had ever waited, the
/// leaving reader did not look at any queue and withdrew the announcement, although the writer was
/// queued by then.
#[test]
fn who_reads_again_beside_a_writer_that_drives_it_out_wakes_it() {
    check(3, || {
        let guarded = fast(Preference::Writer);
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

#[test]
fn an_upgrade_drives_out_fast_readers() {
    check(2, || {
        let guarded = fast(Preference::Reader);
        let reader = start(&guarded, |guarded| drop(guarded.read()));
        assert!(guarded.lock.claim());
        guarded.look();
        guarded.lock.upgrade_claim(None).unwrap();
        guarded.change();
        guarded.unlock();
        reader.join().unwrap();
        guarded.is_left_alone(1);
    });
}

#[test]
fn a_writer_that_cannot_wait_leaves_readers_be() {
    check(3, || {
        let guarded = fast(Preference::Reader);
        guarded.lock.read(0, None).unwrap();
        let writer = start(&guarded, |guarded| {
            assert_eq!(guarded.lock.try_write(0), Err(RwLockError::Busy));
            assert_eq!(
                guarded.lock.write(0, Some(&passed())),
                Err(RwLockError::TimedOut)
            );
        });
        guarded.read();
        writer.join().unwrap();
        guarded.unlock();
        guarded.is_left_alone(0);
    });
}

/// One thread takes a hold by a slot and another releases it.
#[test]
fn anybody_s_slot_will_do_for_a_reader_without_one() {
    check(2, || {
        let guarded = fast(Preference::Reader);
        guarded.lock.read(0, None).unwrap();
        let other = start(&guarded, |guarded| {
            guarded.look();
            guarded.unlock();
        });
        guarded.write();
        other.join().unwrap();
        guarded.is_left_alone(1);
    });
}

/// One reader counted in the word, and this thread in a slot.
fn by_the_word_and_by_a_slot(preference: Preference) -> Arc<Guarded> {
    let guarded = Guarded::new(preference, Scope::Private);
    guarded.lock.read(0, None).unwrap();
    guarded.lock.become_fast(1);
    guarded.lock.read(0, None).unwrap();
    guarded
}

/// (Regression: a thread with a slot that left fairly took the other thread's hold out of the word,
/// sometimes after the other had done so, and then the lock had four billion readers.)
#[test]
fn who_has_a_slot_leaves_fairly_beside_one_who_holds_it_by_the_word() {
    for preference in PREFERENCES {
        check(2, move || {
            let guarded = by_the_word_and_by_a_slot(preference);
            guarded.lock.pretend_that_a_writer_waits();
            let other = start(&guarded, Guarded::unlock);
            guarded.look();
            guarded.lock.unlock_shared_fairly();
            other.join().unwrap();
            guarded.is_left_alone(0);
        });
    }
}

/// Two threads release what this one holds by the word and by a slot: they do not both release the
/// same hold.
#[test]
fn two_without_a_slot_leave_where_one_stands_in_the_word() {
    check(1, || {
        let guarded = by_the_word_and_by_a_slot(Preference::Reader);
        let writer = start(&guarded, Guarded::write);
        let others = [(); 2].map(|()| start(&guarded, Guarded::unlock));
        for other in others {
            other.join().unwrap();
        }
        writer.join().unwrap();
        guarded.is_left_alone(1);
    });
}

/// A thread that releases another thread's hold may find the slot of a reader that is about to
/// check whether it may enter. That reader must then release the other hold in its place.
#[test]
fn a_slot_is_taken_from_a_reader_that_may_not_come_in() {
    check(2, || {
        let guarded = fast(Preference::Reader);
        // This thread's slot is the first.
        guarded.read();
        let hold = start(&guarded, |guarded| {
            guarded.lock.read(0, None).unwrap();
        });
        hold.join().unwrap();
        let other = start(&guarded, Guarded::unlock);
        let writer = start(&guarded, Guarded::write);
        guarded.read();
        other.join().unwrap();
        writer.join().unwrap();
        guarded.is_left_alone(1);
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
        check(1, move || {
            let guarded = fast(Preference::Reader);
            // The first line belongs to another thread than this one.
            let first = start(&guarded, |guarded| drop(guarded.read()));
            first.join().unwrap();
            guarded.lock.read(0, None).unwrap();
            let other = start(&guarded, unlock);
            let late = start(&guarded, |guarded| guarded.lock.read(0, None).unwrap());
            late.join().unwrap();
            guarded.lock.unlock_shared();
            other.join().unwrap();
            guarded.is_left_alone(0);
        });
    }
}

/// Reader: slot, fence, check FAST. Claimant: clear FAST, fence, check the slot. The real code is
/// in `slots.rs`.
fn one_sees_the_other(reader_fences: bool, claimant_fences: bool) {
    crate::checker::model(move || {
        // Whether the lock is biased, and the slot.
        let shared = Arc::new((AtomicU32::new(1), AtomicU32::new(0)));
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (fast, slot) = &*shared;
                let published = slot.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
                assert!(published.is_ok());
                if reader_fences {
                    fence(Ordering::SeqCst);
                }
                fast.load(Ordering::Acquire) == 1
            })
        };
        let (fast, slot) = &*shared;
        fast.fetch_and(0, Ordering::AcqRel);
        if claimant_fences {
            fence(Ordering::SeqCst);
        }
        let empty = slot.load(Ordering::Acquire) == 0;
        let reads = reader.join().unwrap();
        assert!(!(reads && empty), "a reader beside a writer");
    });
}

#[test]
fn with_both_fences_the_reader_or_the_claimant_sees_the_other() {
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
fn without_the_claimant_s_fence_neither_does() {
    one_sees_the_other(true, false);
}
