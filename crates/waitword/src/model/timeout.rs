//! A deadline that passes while a waker is on its way: woken or timed out, and the waker's count knows which.

use super::*;

#[test]
fn a_timeout_and_a_wake_agree_on_who_was_first() {
    check(3, || {
        let (repository, word) = (repository(), TestWord::new(0));
        let waiter = {
            let (repository, word) = (repository.clone(), word.clone());
            thread::spawn(move || word.wait_briefly(&repository))
        };
        let counted = word.wake(&repository, 1);
        let woken = waiter.join().unwrap().is_ok();
        assert_eq!(counted == 1, woken);
    });
}

#[test]
fn a_timeout_does_not_take_a_wake_with_it() {
    check(2, || {
        let (repository, word) = (repository(), TestWord::new(0));
        let impatient = {
            let (repository, word) = (repository.clone(), word.clone());
            thread::spawn(move || word.wait_briefly(&repository).is_ok())
        };
        let patient = {
            let (repository, word) = (repository.clone(), word.clone());
            thread::spawn(move || word.wait(&repository).is_ok())
        };
        word.set(1);
        let counted = word.wake(&repository, 1);
        // Whoever is still there now is woken by this one; loom reports a deadlock otherwise.
        let rest = word.wake(&repository, usize::MAX);
        let woken = impatient.join().unwrap() as usize + patient.join().unwrap() as usize;
        assert_eq!(counted + rest, woken);
    });
}

#[test]
fn a_timeout_follows_a_requeue_to_the_other_word() {
    check(3, || {
        let repository = repository();
        let words = [TestWord::new(0), TestWord::new(1)];
        let waiter = {
            let (repository, word) = (repository.clone(), words[0].clone());
            thread::spawn(move || word.wait_briefly(&repository).is_ok())
        };
        let mover = {
            let (repository, [from, to]) = (repository.clone(), words.clone());
            thread::spawn(move || super::requeue::move_all(&repository, &from, &to))
        };
        let counted = words[1].wake(&repository, 1);
        mover.join().unwrap();
        assert_eq!(waiter.join().unwrap(), counted == 1);
    });
}
