//! The table grows while threads wait, wake and give up.

use super::*;

fn grow(repository: &Arc<Repository>) -> thread::JoinHandle<()> {
    let repository = repository.clone();
    thread::spawn(move || {
        repository.grow(8).unwrap();
    })
}

#[test]
fn a_wake_finds_the_waiter_in_whichever_table() {
    check(3, || {
        let (repository, word) = (repository(), TestWord::new(0));
        let waiter = {
            let (repository, word) = (repository.clone(), word.clone());
            thread::spawn(move || while word.holds(0) && word.wait(&repository).is_err() {})
        };
        let grower = grow(&repository);
        word.set(1);
        word.wake(&repository, 1);
        waiter.join().unwrap();
        grower.join().unwrap();
    });
}

#[test]
fn a_timeout_leaves_the_queue_that_growth_has_moved() {
    check(3, || {
        let (repository, word) = (repository(), TestWord::new(0));
        let waiter = {
            let (repository, word) = (repository.clone(), word.clone());
            thread::spawn(move || word.wait_briefly(&repository).is_ok())
        };
        repository.grow(8).unwrap();
        let counted = word.wake(&repository, 1);
        assert_eq!(waiter.join().unwrap(), counted == 1);
        // Nobody is left behind, in the counts either.
        assert_eq!(word.wake(&repository, 1), 0);
    });
}

#[test]
fn two_growers_and_a_waiter() {
    check(3, || {
        let (repository, word) = (repository(), TestWord::new(0));
        let growers = [grow(&repository), grow(&repository)];
        word.set(1);
        assert_eq!(word.wait(&repository), Err(Error::Mismatch));
        for grower in growers {
            grower.join().unwrap();
        }
    });
}

/// A requeue that found its buckets in the old table moves those who stand in the new one.
#[test]
fn a_requeue_finds_the_waiter_in_whichever_table() {
    check(2, || {
        let repository = repository();
        let (from, to) = (TestWord::new(0), TestWord::new(1));
        let waiter = {
            let (repository, from) = (repository.clone(), from.clone());
            thread::spawn(move || from.wait(&repository).is_ok())
        };
        let grower = grow(&repository);
        from.set(1);
        let moved = super::requeue::move_all(&repository, &from, &to);
        let counted = to.wake(&repository, 1);
        assert_eq!(moved, counted);
        assert_eq!(waiter.join().unwrap(), counted == 1);
        grower.join().unwrap();
    });
}
