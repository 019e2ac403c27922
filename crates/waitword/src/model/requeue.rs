//! requeue against wakes of both words.

use super::*;
use crate::futex::private;

/// Moves all waiters of `from`, whatever the word holds.
pub(super) fn move_all(waiter_table: &WaiterTable, from: &TestWord, to: &TestWord) -> usize {
    private::requeue(waiter_table, from.key, to.key, 0, usize::MAX, || true).unwrap()
}

fn moved_waiters_are_found(second: usize) {
    check(3, move || {
        let waiter_table = waiter_table();
        let words = [TestWord::new(0), TestWord::new(second)];
        let waiter = spawn_on(&waiter_table, &words[0], |table, word| word.wait(table).is_ok());
        words[0].set(1);
        let moved = move_all(&waiter_table, &words[0], &words[1]);
        let counted = words[1].wake(&waiter_table, 1);
        assert_eq!(moved, counted);
        assert_eq!(waiter.join().unwrap(), counted == 1);
    });
}

#[test]
fn a_moved_waiter_is_found_at_the_other_word() {
    // Words 0 and 1 to 4: these include two words in one bucket and two in different ones.
    (1..5).for_each(moved_waiters_are_found);
}

/// A condition variable's broadcast: waiters move onto a held lock while its holder unlocks. Either
/// the mover sees the lock free and wakes, or the unlocker finds the waiter that was moved. This is
/// why the target's count is raised before the locks are taken.
#[test]
fn an_unlock_finds_a_waiter_that_is_being_moved() {
    check(3, || {
        let waiter_table = waiter_table();
        // The lock is held while its word is 0.
        let (condition, lock) = (TestWord::new(0), TestWord::new(1));
        let waiter = {
            let (waiter_table, condition) = (waiter_table.clone(), condition.clone());
            thread::spawn(
                move || while condition.holds(0) && condition.wait(&waiter_table).is_err() {},
            )
        };
        let unlocker = {
            let (waiter_table, lock) = (waiter_table.clone(), lock.clone());
            thread::spawn(move || {
                lock.set(1);
                lock.wake(&waiter_table, 1);
            })
        };
        condition.set(1);
        let lock_is_held = || lock.holds(0);
        let (from, to) = (condition.key, lock.key);
        if private::requeue(&waiter_table, from, to, 0, 1, lock_is_held).is_err() {
            condition.wake(&waiter_table, 1);
        }
        unlocker.join().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn two_movers_in_opposite_directions_do_not_deadlock() {
    check(3, || {
        let waiter_table = waiter_table();
        let words = [TestWord::new(0), TestWord::new(1)];
        let waiter = spawn_on(&waiter_table, &words[0], |table, word| word.wait(table).is_ok());
        let back = {
            let (waiter_table, [first, second]) = (waiter_table.clone(), words.clone());
            thread::spawn(move || move_all(&waiter_table, &second, &first))
        };
        words[0].set(1);
        move_all(&waiter_table, &words[0], &words[1]);
        back.join().unwrap();
        words.iter().for_each(|word| {
            word.wake(&waiter_table, 1);
        });
        waiter.join().unwrap();
    });
}
