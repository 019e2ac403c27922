//! Slots: published, given back, found by scans, and awaited.

use super::slot_table::{Key, SLOTS_IN_LINE, TABLE};
use super::visible_readers::*;
use super::word::{self, State};
use crate::sys::clock::Deadline;
use core::sync::atomic::Ordering;

/// No lock lies here.
const NOWHERE: usize = 0x7fff_0000_1238;

fn key(lock: usize) -> Key {
    Key::new(lock, State(7 << word::BIAS_SHIFT))
}

#[test]
fn a_published_hold_is_found_by_its_thread_and_by_others() {
    assert!(!holds(key(NOWHERE)) && !any(key(NOWHERE)) && !retract(key(NOWHERE)));
    // Twice: two slots.
    let _ = (publish(key(NOWHERE)).unwrap(), publish(key(NOWHERE)).unwrap());
    assert!(holds(key(NOWHERE)) && any(key(NOWHERE)));
    std::thread::spawn(|| {
        assert!(!holds(key(NOWHERE)) && any(key(NOWHERE)) && !retract(key(NOWHERE)));
        assert!(retract_any(key(NOWHERE)));
    })
    .join()
    .unwrap();
    assert!(holds(key(NOWHERE)));
    // The other thread gave back one of the two. It does not matter which.
    assert!(retract(key(NOWHERE)) && !retract(key(NOWHERE)) && !any(key(NOWHERE)));
}

#[test]
fn a_full_line_takes_no_further_lock() {
    let locks: Vec<usize> = (0..SLOTS_IN_LINE).map(|n| 0x7ffe_0000_0000 + 8 * n).collect();
    for &lock in &locks {
        let _ = publish(key(lock)).unwrap();
    }
    assert!(publish(key(NOWHERE + 8)).is_none());
    assert!(locks.into_iter().all(|lock| retract(key(lock))));
}

/// A server with a thread for each request gets there in weeks.
#[test]
fn a_thread_after_2_to_the_32_others_is_seen() {
    const LOCK: usize = NOWHERE + 0x2000;
    TABLE.threads.fetch_max(u64::from(u32::MAX) - 1, Ordering::Relaxed);
    for _ in 0..4 {
        let reads = || {
            let _ = publish(key(LOCK)).unwrap();
            (any(key(LOCK)), retract(key(LOCK)))
        };
        assert_eq!(std::thread::spawn(reads).join().unwrap(), (true, true));
    }
}

#[test]
fn clearing_an_awaited_slot_wakes_the_waiter() {
    use crate::sys::clock::Clock;
    const LOCK: usize = NOWHERE + 0x1000;
    let _ = publish(key(LOCK)).unwrap();
    let past = Deadline::at(Clock::Monotonic, core::time::Duration::ZERO);
    assert_eq!(wait_until_empty(key(LOCK), Some(&past)), Err(StillHeld));
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(wait_until_empty(key(LOCK), None)));
    assert!(done.recv_timeout(core::time::Duration::from_millis(20)).is_err());
    assert!(retract(key(LOCK)));
    let minute = core::time::Duration::from_secs(60);
    assert_eq!(done.recv_timeout(minute), Ok(Ok(())));
}
