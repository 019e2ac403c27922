//! Bugs of other futexes, or of what is built on them, each as a test: those that show in a single,
//! ordered run.

use crate::{futex, scopes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{Deadline, Error, Futex, Mask, Scope, WaitOptions};
use waitword_testkit::{Answer, Atomic, Crew, for_every_width, watch};

fn answer_of(waited: Result<(), Error>) -> Answer {
    waited.map(|()| 0).map_err(Error::raw_os_error)
}

fn crew(size: usize) -> Crew {
    waitword::spin::set_budget(Duration::ZERO);
    Crew::new(size)
}

/// Entries in our table of a waiting thread.
fn entries(scope: Scope) -> usize {
    usize::from(scope == Scope::Private)
}

/// Makes each of these threads wait on the word, which holds 0, in this order.
fn all_wait<A: Atomic>(crew: &mut Crew, threads: usize, word: &Arc<A>, scope: Scope) {
    crew.line_up(0..threads, entries(scope), word, move |word| {
        answer_of(futex(word, scope).wait(A::value(0)))
    });
}

fn woken(workers: std::ops::Range<usize>) -> Vec<(usize, Answer)> {
    workers.map(|worker| (worker, Ok(0))).collect()
}

/// SerenityOS #23669 and #1960: a broadcast woke one waiter, and any other count was taken as
/// "all".
#[test]
fn serenity_23669_a_broadcast_wakes_one() {
    let _watchdog = watch();
    for_every_width!(a_broadcast_wakes_all());
}

fn a_broadcast_wakes_all<A: Atomic>() {
    let mut crew = crew(5);
    for scope in scopes::<A>() {
        let word = Arc::new(A::default());
        // The last ones are numbers that a conversion to 32 bits turns into 0, -1 or 1.
        let counts =
            [usize::MAX, i32::MAX as usize, 1 << 31, u32::MAX as usize, 1 << 32, (1 << 32) + 1];
        for all in counts {
            all_wait(&mut crew, 5, &word, scope);
            assert_eq!(futex(&*word, scope).wake(all), Ok(5), "{all:#x}, {scope:?}");
            assert_eq!(crew.settle(), woken(0..5));
        }
        all_wait(&mut crew, 5, &word, scope);
        assert_eq!(futex(&*word, scope).wake(2), Ok(2));
        assert_eq!(crew.settle(), woken(0..2));
        assert_eq!(futex(&*word, scope).wake(5), Ok(3));
        assert_eq!(crew.settle(), woken(2..5));
    }
}

/// The same numbers as counts of a requeue, and of both.
#[test]
fn serenity_15021_a_requeue_of_all_moves_one() {
    let _watchdog = watch();
    let mut crew = crew(5);
    for scope in scopes::<AtomicU32>() {
        let (from, to) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
        let (source, target) = (futex(&*from, scope), futex(&to, scope));
        for all in [usize::MAX, i32::MAX as usize, 1 << 31, 1 << 32] {
            all_wait(&mut crew, 5, &from, scope);
            assert_eq!(source.requeue(target, 0, all), Ok(5), "{all:#x}, {scope:?}");
            assert_eq!(crew.settle(), []);
            assert_eq!(target.wake(all), Ok(5));
            assert_eq!(crew.settle(), woken(0..5));
            all_wait(&mut crew, 5, &from, scope);
            assert_eq!(source.cmp_requeue(0, target, all, all), Ok(5), "{all:#x}, {scope:?}");
            assert_eq!(crew.settle(), woken(0..5));
        }
    }
}

/// Zig #12877: a broadcast was as many single wakes as there were waiters. A waiter that returned
/// and waited again took two of them, and another waiter got none.
#[test]
fn zig_12877_a_broadcast_wakes_the_same_thread_twice() {
    let _watchdog = watch();
    for_every_width!(a_broadcast_wakes_each_once());
}

fn a_broadcast_wakes_each_once<A: Atomic>() {
    const THREADS: usize = 8;
    let mut crew = crew(THREADS);
    for scope in scopes::<A>() {
        let word = Arc::new(A::default());
        let woken: Arc<[AtomicUsize; THREADS]> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        for worker in 0..THREADS {
            let (word, woken, stop) = (word.clone(), woken.clone(), stop.clone());
            crew.order(worker, entries(scope), move || {
                while !stop.load(SeqCst) {
                    answer_of(futex(&*word, scope).wait(A::value(0)))?;
                    woken[worker].fetch_add(1, SeqCst);
                }
                Ok(0)
            });
            assert_eq!(crew.settle(), []);
        }
        for round in 1..=20 {
            assert_eq!(futex(&*word, scope).wake(THREADS), Ok(THREADS));
            while woken.iter().any(|woken| woken.load(SeqCst) < round) {
                std::thread::yield_now();
            }
            assert_eq!(crew.settle(), []);
            assert!(woken.iter().all(|woken| woken.load(SeqCst) == round), "{woken:?}, {round}");
        }
        stop.store(true, SeqCst);
        assert_eq!(futex(&*word, scope).wake(usize::MAX), Ok(THREADS));
        assert_eq!(crew.settle().len(), THREADS);
    }
}

/// LiteBox #75, Mystikos #373: what requeue and wake return. On Linux: woken plus moved, and woken.
#[test]
fn litebox_75_requeue_returns_woken_plus_moved() {
    let _watchdog = watch();
    let mut crew = crew(5);
    for scope in scopes::<AtomicU32>() {
        let (from, to) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
        all_wait(&mut crew, 5, &from, scope);
        let (source, target) = (futex(&*from, scope), futex(&to, scope));
        assert_eq!(source.requeue(target, 2, 1), Ok(3));
        assert_eq!(crew.settle(), woken(0..2));
        assert_eq!(target.wake(9), Ok(1));
        assert_eq!(crew.settle(), woken(2..3));
        assert_eq!(source.wake(9), Ok(2));
        assert_eq!(crew.settle(), woken(3..5));
    }
}

/// Nanos #1601: an implementation that counts waiters so that a wake can skip an empty word must
/// count requeued waiters at their new word, and no longer at the old one. Many words, so that the
/// counts of unrelated waiters do not hide the bug.
#[test]
fn nanos_1601_waiter_counts_follow_a_requeue() {
    let _watchdog = watch();
    let mut crew = crew(1);
    let words: Arc<[AtomicU8; 512]> = Arc::new([const { AtomicU8::new(0) }; 512]);
    let waiting = words.clone();
    crew.order(0, 1, move || answer_of(Futex::private(&waiting[0]).wait(0)));
    assert_eq!(crew.settle(), []);
    for pair in words.windows(2) {
        let (from, to) = (Futex::private(&pair[0]), Futex::private(&pair[1]));
        assert_eq!(from.requeue(to, 0, 1), Ok(1));
        assert_eq!(from.wake(1), Ok(0));
    }
    assert_eq!(Futex::private(&words[511]).wake(1), Ok(1));
    assert_eq!(crew.settle(), woken(0..1));
    assert!(words.iter().all(|word| Futex::private(word).wake(1) == Ok(0)));
}

/// CVE-2014-3153 and its like: a requeue onto the word itself must leave the queue as it was.
#[test]
fn cve_2014_3153_requeue_onto_itself() {
    let _watchdog = watch();
    let mut crew = crew(4);
    for scope in scopes::<AtomicU32>() {
        let word = Arc::new(AtomicU32::new(0));
        all_wait(&mut crew, 4, &word, scope);
        let itself = futex(&*word, scope);
        assert_eq!(itself.requeue(itself, 0, usize::MAX), Ok(4));
        assert_eq!(itself.requeue(itself, 0, 2), Ok(2));
        assert_eq!(crew.settle(), []);
        assert_eq!(itself.cmp_requeue(0, itself, 1, usize::MAX), Ok(4));
        assert_eq!(crew.settle(), woken(0..1));
        for worker in 1..4 {
            assert_eq!(itself.wake(1), Ok(1));
            assert_eq!(crew.settle(), woken(worker..worker + 1));
        }
        assert_eq!(itself.wake(1), Ok(0));
    }
}

/// libc++ #85107 (a wait at the wrong width on Darwin): exactly the word is compared.
#[test]
fn libcxx_85107_compared_at_the_wrong_width() {
    let _watchdog = watch();
    for_every_width!(compared_at_its_own_width());
}

fn compared_at_its_own_width<A: Atomic>() {
    let words = [A::default(), A::default(), A::default()];
    let [before, word, after] = &words;
    for scope in scopes::<A>() {
        for bit in 0..A::BITS {
            word.set(1 << bit);
            before.set(A::ALL_BITS ^ 1 << bit);
            after.set(A::ALL_BITS);
            let deadline = Deadline::after(Duration::ZERO);
            let futex = futex(word, scope);
            let same = futex.wait_until(A::value(1 << bit), deadline);
            assert_eq!(same, Err(Error::TimedOut), "bit {bit} of {}, {scope:?}", A::BITS);
            let other = futex.wait_until(A::value(0), deadline);
            assert_eq!(other, Err(Error::Mismatch), "bit {bit} of {}, {scope:?}", A::BITS);
        }
    }
}

/// LiteBox #303: a wake's mask was stored where the next wake found it. Two wakers run at once,
/// with different masks: each must find its own waiters.
#[test]
fn litebox_303_masks_of_two_wakers_mix() {
    let _watchdog = watch();
    const ROUNDS: usize = 100;
    let mut crew = crew(6);
    for scope in scopes::<AtomicU32>() {
        let word = Arc::new(AtomicU32::new(0));
        let mask = |worker: usize| Mask::<u32>::new(1 << (worker % 3)).unwrap();
        for _ in 0..ROUNDS {
            for worker in 0..6 {
                let word = word.clone();
                crew.order(worker, entries(scope), move || {
                    let options = WaitOptions::new().mask(mask(worker));
                    answer_of(futex(&*word, scope).wait_with(0, options))
                });
            }
            assert_eq!(crew.settle(), []);
            std::thread::scope(|threads| {
                for waker in 0..2 {
                    let word = &*word;
                    threads.spawn(move || {
                        assert_eq!(futex(word, scope).wake_mask(9, mask(waker)), Ok(2));
                    });
                }
            });
            let back: Vec<_> = crew.settle().iter().map(|&(worker, _)| worker).collect();
            assert_eq!(back, [0, 1, 3, 4]);
            assert_eq!(futex(&*word, scope).wake(9), Ok(2));
            crew.settle();
        }
    }
}
