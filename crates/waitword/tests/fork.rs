//! fork: the child has a clean table and working futexes, whatever was locked in the parent.
//! Children that share memory with their parent need no cleaning.

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst,
};
use std::time::Duration;
use waitword::{Deadline, Error, Futex, table, wait_any};
use waitword_testkit::{
    BareThread, Child, Way, in_child, in_fresh_process, inside, install, signal, thread_number,
    until, until_waiting, watch,
};

/// The child's complaint, as its exit status.
const WAITERS_LEFT: i32 = 11;
const BUCKETS_LOCKED: i32 = 12;
const WAIT_FAILED: i32 = 13;
const WAKE_FAILED: i32 = 14;

/// Words that parent and child use. About three in 64 share a bucket.
static WORDS: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

/// Threads that wait and wake on all words until this is dropped.
struct Hammering {
    over: &'static AtomicBool,
    threads: Vec<BareThread>,
}

fn hammer(threads: usize) -> Hammering {
    let over: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let threads = (0..threads).map(|first| {
        BareThread::start(move || {
            for turn in first.. {
                let word = Futex::private(&WORDS[turn % WORDS.len()]);
                let other = Futex::private(&WORDS[(turn * 7 + 3) % WORDS.len()]);
                let soon = Deadline::after(Duration::from_micros(turn as u64 % 64));
                let _ = word.wait_until(0, soon);
                let _ = word.requeue(other, 1, 1);
                let _ = other.wake(1);
                if over.load(SeqCst) {
                    break;
                }
            }
        })
    });
    Hammering { over, threads: threads.collect() }
}

impl Drop for Hammering {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            assert_eq!(thread.join(), 0);
        }
    }
}

/// There are no waiters and no locked buckets. Allocates nothing.
fn table_is_clean() -> Result<(), i32> {
    let snapshot = table::snapshot(&mut []);
    match (snapshot.waiters, snapshot.locked_buckets) {
        (0, 0) => Ok(()),
        (0, _) => Err(BUCKETS_LOCKED),
        _ => Err(WAITERS_LEFT),
    }
}

/// Every word can be waited on and woken. The waker is the handler of SIGALRM, which only the child
/// uses. Allocates nothing.
fn futexes_work_alone() -> Result<(), i32> {
    for word in &WORDS {
        let soon = Deadline::after(Duration::from_micros(1));
        match Futex::private(word).wait_until(0, soon) {
            Err(Error::TimedOut) => {}
            _ => return Err(WAIT_FAILED),
        }
        if Futex::private(word).wake(usize::MAX) != Ok(0) {
            return Err(WAKE_FAILED);
        }
    }
    for turn in 0..5 {
        RUNG.store(0, SeqCst);
        set_timer(20 + turn * 50);
        while RUNG.load(SeqCst) == 0 {
            match Futex::private(&RUNG).wait(0) {
                Ok(()) | Err(Error::Mismatch | Error::Interrupted) => {}
                Err(_) => return Err(WAIT_FAILED),
            }
        }
    }
    let words = [Futex::private(&WORDS[0]).expecting(0), Futex::private(&RUNG).expecting(1)];
    let soon = Deadline::after(Duration::from_micros(1));
    match wait_any(&words, Some(soon)) {
        Err(Error::TimedOut) => table_is_clean(),
        _ => Err(WAIT_FAILED),
    }
}

static RUNG: AtomicU32 = AtomicU32::new(0);

extern "C" fn ring(_signal: i32) {
    RUNG.store(1, SeqCst);
    let _ = Futex::private(&RUNG).wake(1);
}

fn set_timer(microseconds: i64) {
    let times = [0i64, 0, 0, microseconds];
    // SAFETY: `struct itimerval` is four longs: interval and value, in seconds and microseconds.
    unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, times.as_ptr(), 0) };
}

/// Threads of the child wake each other.
fn futexes_work_between_threads() -> Result<(), i32> {
    let turn: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let play = move |mine: u64| {
        for _ in 0..100 {
            while turn.load(SeqCst) % 2 != mine {
                let now = turn.load(SeqCst);
                if now % 2 == mine {
                    break;
                }
                match Futex::private(turn).wait(now) {
                    Ok(()) | Err(Error::Mismatch) => {}
                    Err(_) => return Err(WAIT_FAILED),
                }
            }
            turn.fetch_add(1, SeqCst);
            if Futex::private(turn).wake(1).is_err() {
                return Err(WAKE_FAILED);
            }
        }
        Ok(())
    };
    let other = BareThread::start(move || play(1).err().unwrap_or(0));
    play(0)?;
    match other.join() {
        0 => Ok(()),
        complaint => Err(complaint),
    }
}

fn check_child(way: Way) -> i32 {
    let check = || {
        table_is_clean()?;
        futexes_work_alone()?;
        match way {
            Way::Fork => futexes_work_between_threads(),
            Way::RawClone => Ok(()),
        }
    };
    check().err().unwrap_or(0)
}

#[test]
fn a_child_starts_clean_while_others_hammer_the_table() {
    let _watchdog = watch();
    install(libc::SIGALRM, ring, libc::SA_RESTART);
    let _hammering = hammer(8);
    for way in [Way::Fork, Way::RawClone].into_iter().cycle().take(40) {
        in_child(way, || check_child(way));
    }
}

/// A child's child, and that one's child, are clean too.
#[test]
fn a_grandchild_starts_clean() {
    let _watchdog = watch();
    install(libc::SIGALRM, ring, libc::SA_RESTART);
    in_child(Way::Fork, || {
        let _hammering = hammer(4);
        until(|| table::snapshot(&mut []).waiters > 0);
        for way in [Way::Fork, Way::RawClone] {
            in_child(way, || check_child(way));
        }
    });
}

static HELD: AtomicBool = AtomicBool::new(false);
static LET_GO: AtomicBool = AtomicBool::new(false);

/// Not left to chance: a thread is stopped inside two buckets while its process forks.
#[test]
fn a_bucket_that_is_held_in_the_parent_is_free_in_the_child() {
    let _watchdog = watch();
    install(libc::SIGALRM, ring, libc::SA_RESTART);
    let holder = std::thread::spawn(|| {
        inside::run(|| {
            HELD.store(true, SeqCst);
            while !LET_GO.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
    });
    until(|| HELD.load(SeqCst));
    for way in [Way::Fork, Way::RawClone] {
        in_child(way, || {
            for word in [&inside::FIRST, inside::second()] {
                let (soon, now) = (Deadline::after(Duration::from_micros(1)), word.load(SeqCst));
                if Futex::private(word).wait_until(now, soon) != Err(Error::TimedOut) {
                    return WAIT_FAILED;
                }
                if Futex::private(word).wake(usize::MAX) != Ok(0) {
                    return WAKE_FAILED;
                }
            }
            check_child(way)
        });
    }
    LET_GO.store(true, SeqCst);
    holder.join().expect("the holder");
}

#[test]
fn a_child_starts_clean_while_the_table_grows() {
    in_fresh_process(|| {
        let _watchdog = watch();
        install(libc::SIGALRM, ring, libc::SA_RESTART);
        let _hammering = hammer(4);
        let forks = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for doubling in 9..18 {
                    let seen = forks.load(SeqCst);
                    assert!(table::reserve(1 << doubling).is_ok());
                    until(|| forks.load(SeqCst) > seen);
                }
            });
            for way in [Way::Fork, Way::RawClone].into_iter().cycle() {
                in_child(way, || check_child(way));
                forks.fetch_add(1, SeqCst);
                if table::buckets() >= 1 << 17 {
                    break;
                }
            }
            // So that the last doubling is seen.
            forks.fetch_add(1, SeqCst);
        });
    });
}

/// A child that shares memory uses the same table: it finds its parent's waiters, and leaves them
/// alone when it ends.
#[test]
fn a_child_that_shares_memory_finds_the_waiters() {
    let _watchdog = watch();
    static SHARED_BY_BOTH: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    extern "C" fn child(_: *mut libc::c_void) -> i32 {
        match Futex::private(&SHARED_BY_BOTH[0]).wake(usize::MAX) {
            Ok(2) => 0,
            _ => WAKE_FAILED,
        }
    }
    let wait = |word: &'static AtomicU32| move || assert_eq!(Futex::private(word).wait(0), Ok(()));
    let [first, second] = &SHARED_BY_BOTH;
    std::thread::scope(|scope| {
        scope.spawn(wait(first));
        scope.spawn(wait(first));
        scope.spawn(wait(second));
        until_waiting(first, 2);
        until_waiting(second, 1);
        let mut stack = vec![0u128; 4096];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child runs on a stack of its own, on our thread-local storage, while we are
        // stopped.
        let child = unsafe {
            let top = stack.as_mut_ptr_range().end;
            libc::clone(child, top.cast(), flags, std::ptr::null_mut())
        };
        assert!(child > 0, "no child");
        Child::new(child).succeeds();
        assert_eq!(Futex::private(second).wake(usize::MAX), Ok(1));
    });
}

/// A handler that has interrupted a wait forks, and the child returns from it, into a wait whose
/// table and parker the kernel has wiped. The wait must neither sleep forever nor remove itself
/// from a queue that it is no longer in. (It did, and left a dead thread of the parent in the
/// child's table.)
#[test]
fn a_wait_that_a_handler_forked_in_ends_in_the_child() {
    let _watchdog = watch();
    in_fresh_process(fork_in_waits);
}

fn fork_in_waits() {
    static FORKED: AtomicI32 = AtomicI32::new(-1);
    static THREAD: AtomicI32 = AtomicI32::new(0);
    extern "C" fn fork(_signal: i32) {
        // SAFETY: the child continues in this thread, and ends below without touching a lock of the
        // C library.
        FORKED.store(unsafe { libc::fork() }, SeqCst);
    }
    let (own, others) = two_words_in_one_bucket();
    for any in [false, true] {
        let wait = move || match any {
            false => Futex::private(own).wait(0),
            true => wait_any(&[Futex::private(own).expecting(0)], None).map(drop),
        };
        for flags in [0, libc::SA_RESTART] {
            FORKED.store(-1, SeqCst);
            install(libc::SIGUSR2, fork, flags);
            let stranger = BareThread::start(move || Futex::private(others).wait(0).is_ok());
            until_waiting(others, 1);
            let waiter = BareThread::start(move || {
                THREAD.store(thread_number(), SeqCst);
                let result = wait();
                if FORKED.load(SeqCst) == 0 {
                    let ended = match result {
                        Err(Error::Interrupted) => table_is_clean(),
                        _ => Err(WAIT_FAILED),
                    };
                    // SAFETY: ends the child at once.
                    unsafe { libc::_exit(ended.err().unwrap_or(0)) };
                }
            });
            until_waiting(own, 1);
            until_asleep(THREAD.load(SeqCst));
            signal(THREAD.load(SeqCst), libc::SIGUSR2);
            until(|| FORKED.load(SeqCst) > 0);
            Child::new(FORKED.load(SeqCst)).succeeds();
            Futex::private(own).wake(1).unwrap();
            assert_eq!(waiter.join(), 0);
            assert_eq!(Futex::private(others).wake(1), Ok(1));
            assert_eq!(stranger.join(), 0);
        }
    }
}

/// By the table's hash, as long as the table has at most 4096 buckets.
fn two_words_in_one_bucket() -> (&'static AtomicU32, &'static AtomicU32) {
    static WORDS: [AtomicU32; 1 << 16] = [const { AtomicU32::new(0) }; 1 << 16];
    let bucket = |word: &AtomicU32| {
        let address = (&raw const *word).addr() as u64;
        address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 12)
    };
    let others = WORDS[1..].iter().find(|word| bucket(word) == bucket(&WORDS[0]));
    (&WORDS[0], others.unwrap())
}

/// Waits until the kernel reports that a thread of ours sleeps.
fn until_asleep(thread: i32) {
    until(|| {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")))
    });
}
