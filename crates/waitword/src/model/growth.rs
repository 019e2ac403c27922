//! The table grows while threads wait, wake and give up.

use super::*;

fn grow(waiter_table: &Arc<WaiterTable>) -> thread::JoinHandle<()> {
    let waiter_table = waiter_table.clone();
    thread::spawn(move || {
        waiter_table.grow(8).unwrap();
    })
}

#[test]
fn a_wake_finds_the_waiter_in_whichever_table() {
    check(3, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let waiter =
            spawn_on(
                &waiter_table,
                &word,
                |table, word| {
                    while word.holds(0) && word.wait(table).is_err() {}
                },
            );
        let grower = grow(&waiter_table);
        word.set(1);
        word.wake(&waiter_table, 1);
        waiter.join().unwrap();
        grower.join().unwrap();
    });
}

#[test]
fn a_timeout_leaves_the_queue_that_growth_has_moved() {
    check(3, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let waiter = spawn_on(&waiter_table, &word, |table, word| word.wait_briefly(table).is_ok());
        waiter_table.grow(8).unwrap();
        let counted = word.wake(&waiter_table, 1);
        assert_eq!(waiter.join().unwrap(), counted == 1);
        // No waiter is left behind, nor any count.
        assert_eq!(word.wake(&waiter_table, 1), 0);
    });
}

#[test]
fn two_growers_and_a_waiter() {
    check(3, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let growers = [grow(&waiter_table), grow(&waiter_table)];
        word.set(1);
        assert_eq!(word.wait(&waiter_table), Err(Error::Mismatch));
        for grower in growers {
            grower.join().unwrap();
        }
    });
}

/// A requeue that found its buckets in the old table moves the waiters that are queued in the new
/// one.
#[test]
fn a_requeue_finds_the_waiter_in_whichever_table() {
    check(2, || {
        let waiter_table = waiter_table();
        let (from, to) = (TestWord::new(0), TestWord::new(1));
        let waiter = {
            let (waiter_table, from) = (waiter_table.clone(), from.clone());
            thread::spawn(move || from.wait(&waiter_table).is_ok())
        };
        let grower = grow(&waiter_table);
        from.set(1);
        let moved = super::requeue::move_all(&waiter_table, &from, &to);
        let counted = to.wake(&waiter_table, 1);
        assert_eq!(moved, counted);
        assert_eq!(waiter.join().unwrap(), counted == 1);
        grower.join().unwrap();
    });
}
