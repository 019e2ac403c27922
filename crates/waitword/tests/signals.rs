//! Signals: when a wait is interrupted, and wakes from handlers, wherever they have interrupted.

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst,
};
use std::time::Duration;
use waitword::{Deadline, Error, Futex, Op, WakeOp, probe, wait_any};
use waitword_testkit::{
    inside, install, signal, thread_number, until, until_waiting, waiters_at, watch,
};

const HOUR: Duration = Duration::from_secs(3600);

static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_signal: i32) {
    HANDLED.fetch_add(1, SeqCst);
}

/// Whether this kernel can wait for shared words of 64 bits, and for shared words among others: not
/// before Linux 5.16.
fn has_waitv() -> bool {
    probe::futex_waitv().is_there()
}

/// Runs `wait` in a thread that is signalled until it returns. Returns its result.
fn signalled<T: Send>(number: i32, wait: impl FnOnce() -> T + Send) -> T {
    let thread = AtomicI32::new(0);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            thread.store(thread_number(), SeqCst);
            wait()
        });
        // A signal that comes just before the sleep interrupts nothing, so several are sent.
        until(|| {
            match thread.load(SeqCst) {
                0 => {}
                thread => signal(thread, number),
            }
            waiter.is_finished()
        });
        waiter.join().expect("the waiter")
    })
}

#[test]
fn without_sa_restart_every_wait_is_interrupted() {
    let _watchdog = watch();
    let number = libc::SIGRTMIN() + 1;
    install(number, count, 0);
    let (a, b) = (AtomicU8::new(0), AtomicU16::new(0));
    let (c, d) = (AtomicU32::new(0), AtomicU64::new(0));
    let interrupted = Err(Error::Interrupted);
    assert_eq!(signalled(number, || Futex::private(&a).wait(0)), interrupted);
    assert_eq!(signalled(number, || Futex::private(&d).wait(0)), interrupted);
    assert_eq!(signalled(number, || Futex::shared(&a).wait(0)), interrupted);
    assert_eq!(signalled(number, || Futex::shared(&b).wait(0)), interrupted);
    assert_eq!(signalled(number, || Futex::shared(&c).wait(0)), interrupted);
    let far = || Deadline::after(HOUR);
    assert_eq!(signalled(number, || Futex::private(&b).wait_until(0, far())), interrupted);
    if has_waitv() {
        assert_eq!(signalled(number, || Futex::shared(&d).wait(0)), interrupted);
        assert_eq!(signalled(number, || Futex::shared(&d).wait_until(0, far())), interrupted);
    }
    let any = |first: bool, last: bool, deadline| {
        let all = [
            Futex::private(&a).expecting(0),
            Futex::private(&c).expecting(0),
            Futex::shared(&b).expecting(0),
            Futex::shared(&d).expecting(0),
        ];
        let words = &all[if first { 0 } else { 2 }..if last { 4 } else { 2 }];
        wait_any(words, deadline)
    };
    for (private, shared) in [(true, false), (false, true), (true, true)] {
        if shared && !has_waitv() {
            continue;
        }
        for deadline in [None, Some(far())] {
            let ended = signalled(number, || any(private, shared, deadline));
            assert_eq!(ended, Err(Error::Interrupted));
        }
    }
    assert_eq!(waiters_at(&a) + waiters_at(&b) + waiters_at(&c) + waiters_at(&d), 0);
}

#[test]
fn with_sa_restart_a_wait_without_a_deadline_goes_on() {
    let _watchdog = watch();
    let number = libc::SIGRTMIN() + 2;
    install(number, count, libc::SA_RESTART);
    let (a, b, c) = (AtomicU8::new(0), AtomicU32::new(0), AtomicU64::new(0));
    for many in [false, true] {
        let thread = AtomicI32::new(0);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                thread.store(thread_number(), SeqCst);
                if !many {
                    return Futex::private(&a).wait(0).map(|()| 0);
                }
                let words = [
                    Futex::private(&a).expecting(0),
                    Futex::shared(&b).expecting(0),
                    Futex::shared(&c).expecting(0),
                ];
                wait_any(&words[..if has_waitv() { 3 } else { 1 }], None)
            });
            until_waiting(&a, 1);
            for _ in 0..20 {
                let before = HANDLED.load(SeqCst);
                signal(thread.load(SeqCst), number);
                until(|| HANDLED.load(SeqCst) > before);
            }
            assert!(!waiter.is_finished());
            assert_eq!(Futex::private(&a).wake(usize::MAX), Ok(1));
            assert_eq!(waiter.join().expect("the waiter"), Ok(0));
        });
    }
}

#[test]
fn with_sa_restart_a_wait_with_a_deadline_is_interrupted() {
    let _watchdog = watch();
    let number = libc::SIGRTMIN() + 3;
    install(number, count, libc::SA_RESTART);
    let (a, c) = (AtomicU8::new(0), AtomicU32::new(0));
    let far = || Deadline::after(HOUR);
    let interrupted = Err(Error::Interrupted);
    assert_eq!(signalled(number, || Futex::private(&a).wait_until(0, far())), interrupted);
    assert_eq!(signalled(number, || Futex::shared(&a).wait_until(0, far())), interrupted);
    assert_eq!(signalled(number, || Futex::shared(&c).wait_until(0, far())), interrupted);
    let any = || {
        let words = [Futex::private(&a).expecting(0), Futex::private(&c).expecting(0)];
        wait_any(&words, Some(far()))
    };
    assert_eq!(signalled(number, any), Err(Error::Interrupted));
}

/// futex_waitv is restarted even if it has a deadline, which is absolute. So are waits that are
/// built on it.
#[test]
fn with_sa_restart_waits_on_the_kernels_waitv_keep_their_deadline() {
    let _watchdog = watch();
    if !has_waitv() {
        println!("this kernel has no futex_waitv");
        return;
    }
    let number = libc::SIGRTMIN() + 4;
    install(number, count, libc::SA_RESTART);
    let (a, d) = (AtomicU8::new(0), AtomicU64::new(0));
    let soon = || Deadline::after(Duration::from_millis(20));
    let over = Err(Error::TimedOut);
    assert_eq!(signalled(number, || Futex::shared(&d).wait_until(0, soon())), over);
    let any = || {
        let words = [Futex::private(&a).expecting(0), Futex::shared(&d).expecting(0)];
        wait_any(&words, Some(soon()))
    };
    assert_eq!(signalled(number, any), Err(Error::TimedOut));
}

static WOKEN_BY_HANDLER: AtomicUsize = AtomicUsize::new(usize::MAX);
static BELL: AtomicU32 = AtomicU32::new(0);

extern "C" fn ring_bell(_signal: i32) {
    let woken = Futex::private(&BELL).wake(usize::MAX);
    WOKEN_BY_HANDLER.store(woken.unwrap_or(1000), SeqCst);
}

#[test]
fn a_wake_from_a_handler_returns_what_it_has_woken() {
    let _watchdog = watch();
    let number = libc::SIGRTMIN() + 5;
    install(number, ring_bell, 0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(Futex::private(&BELL).wait(0), Ok(())));
        }
        until_waiting(&BELL, 3);
        signal(thread_number(), number);
        until(|| WOKEN_BY_HANDLER.load(SeqCst) != usize::MAX);
        assert_eq!(WOKEN_BY_HANDLER.load(SeqCst), 3);
    });
}

/// Words for handlers that have interrupted inside a bucket.
static LINES: [AtomicU32; 12] = [const { AtomicU32::new(0) }; 12];
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);

/// Runs `action` inside a bucket, while each of `LINES` has a waiter. All waiters must be woken in
/// the end.
fn all_are_woken_by(lines: &'static [AtomicU32], action: fn()) {
    std::thread::scope(|scope| {
        for line in lines {
            scope.spawn(|| assert_eq!(Futex::private(line).wait(0), Ok(())));
        }
        for line in lines {
            until_waiting(line, 1);
        }
        inside::run(action);
    });
}

/// One test, because all parts use the same words.
#[test]
fn a_handler_inside_a_bucket_has_its_wakes_delivered() {
    let _watchdog = watch();
    // The words whose buckets are held, and another.
    all_are_woken_by(&LINES[..1], || {
        assert_eq!(Futex::private(inside::second()).wake(1), Ok(0), "not yet known");
        assert_eq!(Futex::private(&LINES[0]).wake(1), Ok(0), "not yet known");
    });
    // The mask travels with the wake.
    all_are_woken_by(&LINES[..1], || {
        let mask = |bits| waitword::Mask::new(bits).expect("some bits");
        assert_eq!(Futex::private(&LINES[0]).wake_mask(1, mask(2)), Ok(0));
    });
    // As many as there is room for, and more: then all waiters are woken.
    all_are_woken_by(&LINES[..8], || wake_each(&LINES[..8]));
    all_are_woken_by(&LINES, || wake_each(&LINES));
    // Waiters that should be moved are woken.
    all_are_woken_by(&LINES[..1], || {
        let to = Futex::private(&ELSEWHERE);
        assert_eq!(Futex::private(&LINES[0]).requeue(to, 0, 1), Ok(0));
    });
    all_are_woken_by(&LINES[..1], || {
        let (from, to) = (Futex::private(&LINES[0]), Futex::private(&ELSEWHERE));
        assert_eq!(from.cmp_requeue(7, to, 1, 1), Err(Error::Mismatch));
        assert_eq!(from.cmp_requeue(0, to, 1, 1), Ok(0));
    });
    // Both words of a wake_op, and its change.
    all_are_woken_by(&LINES[..2], || {
        let (first, second) = (Futex::private(&LINES[0]), Futex::private(&LINES[1]));
        let add = WakeOp::<u32>::new(Op::Add, 5);
        assert_eq!(first.wake_op(1, second, 1, add), Ok(0));
        assert_eq!(LINES[1].swap(0, SeqCst), 5);
    });
    // A wait cannot queue there.
    inside::run(|| {
        assert_eq!(Futex::private(&ELSEWHERE).wait(0), Err(Error::Interrupted));
        assert_eq!(Futex::private(&ELSEWHERE).wait(1), Err(Error::Mismatch));
        let words = [Futex::private(&ELSEWHERE).expecting(0)];
        assert_eq!(wait_any(&words, None), Err(Error::Interrupted));
    });
}

fn wake_each(lines: &[AtomicU32]) {
    for line in lines {
        assert_eq!(Futex::private(line).wake(1), Ok(0), "not yet known");
    }
}

/// While one thread is stopped inside a bucket, the others continue, except those that need that
/// bucket.
#[test]
fn a_holder_that_is_stopped_stops_no_other_bucket() {
    let _watchdog = watch();
    static STOPPED: AtomicBool = AtomicBool::new(false);
    static GO_ON: AtomicBool = AtomicBool::new(false);
    let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicUsize::new(0);
    let (words, done) = (&words, &done);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            inside::run(|| {
                STOPPED.store(true, SeqCst);
                while !GO_ON.load(SeqCst) {
                    std::hint::spin_loop();
                }
            });
        });
        until(|| STOPPED.load(SeqCst));
        let mut none = [];
        let snapshot = waitword::table::snapshot(&mut none);
        assert!((1..=2).contains(&snapshot.locked_buckets), "{snapshot:?}");
        // Some of these words may share a held bucket; most do not.
        for word in words {
            scope.spawn(move || {
                let soon = Deadline::after(Duration::from_millis(1));
                assert_eq!(Futex::private(word).wait_until(0, soon), Err(Error::TimedOut));
                done.fetch_add(1, SeqCst);
            });
        }
        until(|| done.load(SeqCst) > 48);
        GO_ON.store(true, SeqCst);
    });
}

/// Tokens that the handler has given, and that were not yet taken.
static TOKENS: AtomicU32 = AtomicU32::new(0);
static GIVEN: AtomicUsize = AtomicUsize::new(0);
const TAKERS: usize = 3;
/// How many each taker takes.
const QUOTA: usize = 1_000;

extern "C" fn give(_signal: i32) {
    if GIVEN.fetch_add(1, SeqCst) < TAKERS * QUOTA {
        TOKENS.fetch_add(1, SeqCst);
        let _ = Futex::private(&TOKENS).wake(1);
    }
}

/// `sem_post` from a timer's handler, on the word that the interrupted thread itself waits on and
/// wakes.
#[test]
fn a_fast_timer_loses_nothing() {
    let _watchdog = watch();
    let number = libc::SIGRTMIN() + 6;
    for flags in [0, libc::SA_RESTART] {
        install(number, give, flags);
        GIVEN.store(0, SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..TAKERS {
                scope.spawn(|| {
                    let _timer = Timer::start(number);
                    (0..QUOTA).for_each(|_| take_one());
                });
            }
        });
        assert_eq!(TOKENS.load(SeqCst), 0);
    }
}

fn take_one() {
    while TOKENS.fetch_update(SeqCst, SeqCst, |tokens| tokens.checked_sub(1)).is_err() {
        match Futex::private(&TOKENS).wait(0) {
            Ok(()) | Err(Error::Mismatch | Error::Interrupted) => {}
            Err(error) => panic!("a wait has failed: {error}"),
        }
    }
    // More traffic in the bucket, for the timer to interrupt: counts its waiters and moves none.
    let _ = Futex::private(&TOKENS).requeue(Futex::private(&TOKENS), 0, 1);
}

/// A timer that signals the calling thread every 50 µs, until it is dropped.
struct Timer(libc::timer_t);

impl Timer {
    fn start(number: i32) -> Self {
        let period = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: whole structures.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = number;
            event.sigev_notify_thread_id = thread_number();
            let mut timer = std::mem::zeroed();
            let clock = libc::CLOCK_MONOTONIC;
            assert_eq!(libc::timer_create(clock, &raw mut event, &raw mut timer), 0);
            libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
            Self(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `start`, deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}
