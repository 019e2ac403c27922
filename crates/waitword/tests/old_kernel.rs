//! Kernels that lack newer features, on any kernel: a filter of system calls (seccomp(2)) answers
//! like Linux 5.10, or like 4.19. Everything that can work must work; what cannot must be refused
//! at once. `scripts/old-kernel` runs the other test programs in this way, and `scripts/qemu old`
//! runs all of them on a real old kernel.
//!
//! | since | what | like 5.10 | like 4.19 |
//! |-------|------|-----------|-----------|
//! | 5.1 to 5.10 | clone3, pidfd_open, openat2 and all other new calls | | `ENOSYS` |
//! | 5.4 | MADV_COLD, MADV_PAGEOUT | | `EINVAL` |
//! | 5.10 | membarrier(2) for restartable sequences | | `EINVAL` |
//! | 5.14 | FUTEX_LOCK_PI2 | `ENOSYS` | `ENOSYS` |
//! | 5.16 | futex_waitv | `ENOSYS` | `ENOSYS` |
//! | 6.7 | futex_wait, futex_wake, futex_requeue | `ENOSYS` | `ENOSYS` |
//! | 6.16 | PR_FUTEX_HASH | `EINVAL` | `EINVAL` |
//! | 7.0 | PR_RSEQ_SLICE_EXTENSION | `EINVAL` | `EINVAL` |
//! | 7.3 | FUTEX_ROBUST_UNLOCK | `ENOSYS` | `ENOSYS` |

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

/// The first call after those of 4.19 and its end: since 5.1 the numbers are the same on every
/// architecture, except on Alpha.
const SINCE_5_1: std::ops::Range<libc::c_long> = 424..480;

const FUTEX_LOCK_PI2: u32 = 13;
const FUTEX_ROBUST_UNLOCK: u32 = 512;
const PR_FUTEX_HASH: u32 = 78;
const PR_RSEQ_SLICE_EXTENSION: u32 = 79;
/// The membarrier(2) commands for restartable sequences: 1 << 7 and 1 << 8.
const MEMBARRIER_RSEQ: [u32; 2] = [1 << 7, 1 << 8];

/// From here on this thread, and the threads that it starts, see the futexes of Linux 5.10.
fn become_old() {
    // futex_wake, futex_wait, futex_requeue: the same numbers on every architecture.
    let calls = [libc::SYS_futex_waitv, 454, 455, 456].map(call);
    refuse(libc::ENOSYS, calls);
    // Whatever its flags are.
    let lock_pi2 = call(libc::SYS_futex).with(1, 127, FUTEX_LOCK_PI2);
    refuse(libc::ENOSYS, [lock_pi2]);
    let robust_unlock = call(libc::SYS_futex).with(1, FUTEX_ROBUST_UNLOCK, FUTEX_ROBUST_UNLOCK);
    refuse(libc::ENOSYS, [robust_unlock]);
    for option in [PR_FUTEX_HASH, PR_RSEQ_SLICE_EXTENSION] {
        refuse(libc::EINVAL, [call(libc::SYS_prctl).with(0, u32::MAX, option)]);
    }
}

/// The same, and the other system calls of Linux 4.19.
fn become_older() {
    become_old();
    let newer: Vec<_> = SINCE_5_1.map(call).collect();
    refuse::<{ (SINCE_5_1.end - SINCE_5_1.start) as usize }>(
        libc::ENOSYS,
        newer.try_into().expect("as many as the range has"),
    );
    for command in MEMBARRIER_RSEQ {
        refuse(libc::EINVAL, [call(libc::SYS_membarrier).with(0, u32::MAX, command)]);
    }
    for advice in [libc::MADV_COLD, libc::MADV_PAGEOUT] {
        refuse(libc::EINVAL, [call(libc::SYS_madvise).with(2, u32::MAX, advice as u32)]);
    }
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
    match std::env::var("WAITWORD_TEST_KERNEL").as_deref() {
        Ok("5.10") | Err(_) => become_old(),
        Ok("4.19") => become_older(),
        Ok(other) => panic!("no filter for Linux {other}"),
    }
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
            probe::robust_unlock(),
        ] {
            assert_eq!(support, missing);
        }
        assert_eq!(probe::private_hash_slots(), Err(waitword::raw::Errno::INVAL));
        assert_eq!(probe::slice_extension(), Support::No(waitword::raw::Errno::INVAL));
    });
}

/// The filter of the machine that `scripts/qemu 4.19` boots.
#[test]
fn the_calls_of_later_kernels_are_unknown_to_4_19() {
    in_fresh_process(|| {
        become_older();
        let _watchdog = watch();
        // clone3, openat2, futex_waitv, rseq_slice_yield.
        for number in [435, 437, 449, 471] {
            // SAFETY: the filter refuses the call before its arguments, all null, are looked at.
            let result = unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) };
            let error = std::io::Error::last_os_error().raw_os_error();
            assert_eq!((result, error), (-1, Some(libc::ENOSYS)), "{number}");
        }
        // The C library starts threads without clone3 there.
        let word = AtomicU32::new(0);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| Futex::private(&word).wait(0));
            until_waiting(&word, 1);
            assert_eq!(Futex::private(&word).wake(1), Ok(1));
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
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
