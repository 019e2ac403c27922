//! Kernels that lack newer features, on any kernel: a filter of system calls (seccomp(2)) answers
//! like Linux 5.10. Everything that can work must work; what cannot must be refused at once.
//! `scripts/old-kernel` runs the other test programs in this way, and `scripts/qemu old` runs all
//! of them on a real old kernel.
//!
//! | since | what | here |
//! |-------|------|------|
//! | 5.14 | FUTEX_LOCK_PI2 | `ENOSYS` |
//! | 5.16 | futex_waitv | `ENOSYS` |
//! | 6.7 | futex_wait, futex_wake, futex_requeue | `ENOSYS` |
//! | 6.16 | PR_FUTEX_HASH | `EINVAL` |

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use waitword::probe::{self, Support};
use waitword::{
    Deadline, Error, Futex, LockError, PosixFlavour, PosixMutexOptions, RawCondvar, Scope, raw,
    wait_any,
};
use waitword_testkit::{
    in_fresh_process,
    seccomp::{call, refuse},
    until_waiting, watch,
};

const FUTEX_LOCK_PI2: u32 = 13;
const PR_FUTEX_HASH: u32 = 78;

/// From here on this thread, and the threads that it starts, see the futexes of Linux 5.10.
fn become_old() {
    // futex_wake, futex_wait, futex_requeue: the same numbers on every architecture.
    let calls = [libc::SYS_futex_waitv, 454, 455, 456].map(call);
    refuse(libc::ENOSYS, calls);
    // Whatever its flags are.
    let lock_pi2 = call(libc::SYS_futex).with(1, 127, FUTEX_LOCK_PI2);
    refuse(libc::ENOSYS, [lock_pi2]);
    let hash = call(libc::SYS_prctl).with(0, u32::MAX, PR_FUTEX_HASH);
    refuse(libc::EINVAL, [hash]);
}

/// Runs a test in a process of its own, which is on an old kernel from its first futex on.
#[track_caller]
fn on_an_old_kernel(check: impl FnOnce()) {
    in_fresh_process(|| {
        become_old();
        let _watchdog = watch();
        check();
    });
}

#[test]
#[ignore = "for scripts/old-kernel, which says which program"]
fn a_program_runs_there() {
    let [program, arguments] = ["WAITWORD_TEST_PROGRAM", "WAITWORD_TEST_ARGUMENTS"]
        .map(|name| std::env::var(name).expect("scripts/old-kernel sets it"));
    become_old();
    let mut command = Command::new(program);
    panic!("{}", command.args(arguments.split_whitespace()).exec());
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(20))
}

#[test]
fn the_probes_report_it() {
    on_an_old_kernel(|| {
        let missing = Support::No(waitword::raw::Errno::NOSYS);
        assert_eq!(probe::futex(), Support::Yes);
        for support in [
            probe::futex_waitv(),
            probe::futex2_wait_call(),
            probe::futex2_wake_call(),
            probe::futex2_requeue_call(),
            probe::futex2_numa(),
        ] {
            assert_eq!(support, missing);
        }
        assert_eq!(probe::private_hash_slots(), Err(waitword::raw::Errno::INVAL));
    });
}

#[test]
fn what_needs_futex_waitv_is_refused_and_the_rest_works() {
    on_an_old_kernel(|| {
        let (byte, word, wide) = (AtomicU8::new(0), AtomicU32::new(0), AtomicU64::new(0));
        // Refused at once: without a deadline, these would be hangs.
        assert_eq!(Futex::shared(&wide).wait(0), Err(Error::Unsupported));
        let mixed = [Futex::private(&byte).expecting(0), Futex::shared(&word).expecting(0)];
        assert_eq!(wait_any(&mixed, None), Err(Error::Unsupported));
        assert_eq!(waitword::table::snapshot(&mut []).counted, 0);
        // Wakes and the other sizes work as usual.
        assert_eq!(Futex::shared(&wide).wake(1), Ok(0));
        assert_eq!(Futex::shared(&word).wait_until(0, soon()), Err(Error::TimedOut));
        assert_eq!(Futex::shared(&byte).wait_until(0, soon()), Err(Error::TimedOut));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let words =
                    [Futex::private(&byte).expecting(0), Futex::private(&wide).expecting(0)];
                wait_any(&words, None)
            });
            until_waiting(&wide, 1);
            assert_eq!(Futex::private(&wide).wake(1), Ok(1));
            assert_eq!(waiter.join().unwrap(), Ok(1));
        });
    });
}

/// futex2's own calls, on private words of all sizes.
#[test]
fn the_raw_interface_has_futex2_where_the_kernel_has_not() {
    on_an_old_kernel(|| {
        let wide = AtomicU64::new(0);
        let flags = raw::SIZE_U64 | raw::PRIVATE;
        thread::scope(|scope| {
            // SAFETY: the word outlives the calls.
            let waiter = scope.spawn(|| unsafe {
                raw::futex_wait(
                    wide.as_ptr().cast(),
                    0,
                    u64::MAX,
                    flags,
                    std::ptr::null(),
                    libc::CLOCK_MONOTONIC,
                )
            });
            until_waiting(&wide, 1);
            // SAFETY: as above.
            let woken = unsafe { raw::futex_wake(wide.as_ptr().cast(), u64::MAX, 1, flags) };
            assert_eq!(woken, Ok(1));
            assert_eq!(waiter.join().unwrap(), Ok(0));
        });
    });
}

/// FUTEX_LOCK_PI knows only the wall clock.
#[test]
fn a_priority_mutex_has_deadlines_on_both_clocks() {
    on_an_old_kernel(|| {
        let mutex = &PosixMutexOptions::new().flavour(PosixFlavour::PriorityInheriting).build_raw();
        let wall_clock = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        mutex.lock();
        thread::scope(|scope| {
            let timed_out = [
                soon(),
                Deadline::at(waitword::Clock::Realtime, wall_clock + Duration::from_millis(20)),
            ];
            for deadline in timed_out {
                let waiter = scope.spawn(move || mutex.lock_until(deadline));
                assert_eq!(waiter.join().unwrap(), Err(LockError::TimedOut));
                assert!(deadline.has_passed());
            }
            let waiter = scope.spawn(|| {
                mutex.lock_until(Deadline::after(Duration::from_secs(60))).unwrap();
                // SAFETY: locked just above.
                unsafe { mutex.unlock() };
            });
            thread::sleep(Duration::from_millis(5));
            // SAFETY: locked above.
            unsafe { mutex.unlock() };
            waiter.join().unwrap();
        });
    });
}

/// With neither the kernel's table nor its futex2: more sleepers than one group, in every kind of
/// wait.
#[test]
fn a_herd_is_woken_and_moved() {
    on_an_old_kernel(|| {
        const HERD: usize = 600;
        let (word, other) = (AtomicU32::new(0), AtomicU64::new(0));
        let (mutex, condvar) = (PosixMutexOptions::new().build_raw(), RawCondvar::new());
        let shared = PosixMutexOptions::new().scope(Scope::Shared).build_raw();
        let went = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..HERD {
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn_scoped(scope, || {
                        Futex::private(&word).wait(0).unwrap();
                        mutex.lock();
                        went.fetch_add(1, SeqCst);
                        while went.load(SeqCst) < HERD as u32 {
                            // SAFETY: the mutex is held, and it is the only one here.
                            unsafe { condvar.wait(&mutex, None) }.unwrap();
                        }
                        condvar.notify_all();
                        // SAFETY: locked above.
                        unsafe { mutex.unlock() };
                        shared.lock();
                        // SAFETY: locked just above.
                        unsafe { shared.unlock() };
                    })
                    .expect("a thread");
            }
            until_waiting(&word, HERD);
            let moved = Futex::private(&word).requeue(Futex::private(&other), 0, HERD);
            assert_eq!(moved, Ok(HERD));
            assert_eq!(Futex::private(&other).wake(HERD), Ok(HERD));
        });
    });
}
