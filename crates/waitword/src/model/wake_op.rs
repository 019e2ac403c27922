//! wake_op against waiters of both words.

use super::*;
use crate::futex::private;

/// One thread waits on the condition and then for the lock, another for the lock; signal and unlock in one
/// call leaves nobody asleep.
#[test]
fn signal_and_unlock_in_one_step_wakes_both() {
    check(2, || {
        let repository = repository();
        let (condition, lock) = (TestWord::new(0), TestWord::new(1));
        let spawn_waiter = |word: &Arc<TestWord>| {
            let (repository, word) = (repository.clone(), word.clone());
            thread::spawn(move || word.wait(&repository).is_ok() as usize)
        };
        let waiters = [spawn_waiter(&condition), spawn_waiter(&lock)];
        condition.set(1);
        let counted = private::wake_op(&repository, condition.key, 1, lock.key, 1, || {
            lock.set(1);
            true
        });
        assert_eq!(
            counted,
            waiters.map(|waiter| waiter.join().unwrap()).iter().sum()
        );
    });
}

#[test]
fn an_old_value_that_does_not_compare_leaves_the_second_word_s_waiters_alone() {
    check(3, || {
        let repository = repository();
        let words = [TestWord::new(0), TestWord::new(1)];
        let waiter = {
            let (repository, word) = (repository.clone(), words[1].clone());
            thread::spawn(move || word.wait(&repository).is_ok())
        };
        let change = || {
            words[1].set(1);
            false
        };
        let counted = private::wake_op(&repository, words[0].key, 1, words[1].key, 1, change);
        assert_eq!(counted, 0);
        let late = words[1].wake(&repository, 1);
        assert_eq!(waiter.join().unwrap(), late == 1);
    });
}
