//! `RobustMutex` and its guards.

use crate::support::memory::Mapping;
use crate::support::processes::fork;
use crate::support::watchdog::watch;
use std::pin::{Pin, pin};
use std::time::Duration;
use waitword::{Clock, Deadline, RobustError, RobustGuard, RobustMutex, RobustProtocol};

const PROTOCOLS: [RobustProtocol; 2] = [RobustProtocol::None, RobustProtocol::Inherit];

static COUNT: RobustMutex<u32> = RobustMutex::new(0);

#[test]
fn a_static_counts() {
    let _watchdog = watch("a_static_counts");
    let count = Pin::static_ref(&COUNT);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| *count.lock().unwrap() += 1));
        }
    });
    assert_eq!(*count.lock().unwrap(), 4000);
}

#[test]
fn a_guard_excludes_and_says_so() {
    let _watchdog = watch("a_guard_excludes_and_says_so");
    for protocol in PROTOCOLS {
        let mutex = pin!(RobustMutex::with_protocol([1, 2], protocol));
        let mutex = mutex.into_ref();
        let mut guard = mutex.lock().unwrap();
        guard[1] = 3;
        assert!(!RobustGuard::owner_died(&guard));
        assert_eq!(mutex.lock().unwrap_err(), RobustError::Deadlock);
        assert_eq!(mutex.try_lock().unwrap_err(), RobustError::Busy);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(mutex.try_lock().unwrap_err(), RobustError::Busy);
                let short = mutex.lock_for(Duration::from_millis(2));
                assert_eq!(short.unwrap_err(), RobustError::TimedOut);
                let past = Deadline::at(Clock::Realtime, Duration::ZERO);
                let late = mutex.lock_until(past);
                assert_eq!(late.unwrap_err(), RobustError::TimedOut);
            });
        });
        assert_eq!(format!("{guard:?}"), "[1, 3]");
        assert!(format!("{mutex:?}").starts_with("RobustMutex"));
        drop(guard);
        assert_eq!(*mutex.try_lock().unwrap(), [1, 3]);
    }
}

#[test]
fn a_panic_unlocks_and_is_no_death() {
    let _watchdog = watch("a_panic_unlocks_and_is_no_death");
    let mutex = pin!(RobustMutex::new(()));
    let mutex = mutex.into_ref();
    std::thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let _guard = mutex.lock().unwrap();
            // Not `panic`: its message would be taken for a failure.
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panics.join().is_err());
    });
    assert!(!RobustGuard::owner_died(&mutex.lock().unwrap()));
}

#[test]
fn who_repairs_and_panics_loses_it() {
    let _watchdog = watch("who_repairs_and_panics_loses_it");
    for protocol in PROTOCOLS {
        let mutex = pin!(RobustMutex::with_protocol((), protocol));
        let mutex = mutex.into_ref();
        lose(mutex);
        let guard = mutex.lock().unwrap();
        assert!(RobustGuard::owner_died(&guard));
        drop(guard);
        assert_eq!(mutex.lock().unwrap_err(), RobustError::NotRecoverable);
        assert_eq!(mutex.try_lock().unwrap_err(), RobustError::NotRecoverable);
    }
}

/// Has a thread end that holds it.
fn lose<T: Send>(mutex: Pin<&RobustMutex<T>>) {
    std::thread::scope(|scope| {
        let dies = scope.spawn(|| std::mem::forget(mutex.lock().unwrap()));
        dies.join().unwrap();
    });
}

#[test]
fn a_mutex_that_goes_while_locked_leaves_the_list() {
    let _watchdog = watch("a_mutex_that_goes_while_locked_leaves_the_list");
    for protocol in PROTOCOLS {
        let stays = pin!(RobustMutex::with_protocol(0, protocol));
        let stays = stays.into_ref();
        for _ in 0..100 {
            let [first, second, third] =
                [(); 3].map(|()| Box::pin(RobustMutex::with_protocol(0, protocol)));
            std::mem::forget(first.as_ref().lock().unwrap());
            std::mem::forget(second.as_ref().lock().unwrap());
            let guard = stays.lock().unwrap();
            std::mem::forget(third.as_ref().lock().unwrap());
            drop((second, third));
            // What comes to lie there must not be written to.
            let scribble = [(); 8].map(|()| Box::new([0x5555_5555_5555_5555u64; 6]));
            drop(guard);
            drop(stays.lock().unwrap());
            drop(first);
            assert!(
                scribble
                    .iter()
                    .all(|here| **here == [0x5555_5555_5555_5555; 6])
            );
        }
    }
}

#[test]
fn a_mutex_that_goes_while_another_thread_holds_it_ends_the_process() {
    let _watchdog = watch("a_mutex_that_goes_while_another_thread_holds_it_ends_the_process");
    // A program of its own, since it is to be aborted.
    const VARIABLE: &str = "WAITWORD_TEST_ABORT";
    if std::env::var_os(VARIABLE).is_some() {
        let mutex = Box::pin(RobustMutex::new(()));
        let (say, hear) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mutex_there = &mutex;
            let holder = scope.spawn(move || {
                std::mem::forget(mutex_there.as_ref().lock().unwrap());
            });
            holder.join().unwrap();
        });
        // Its holder has ended: no harm.
        drop(mutex);
        let mutex: &'static _ = Box::leak(Box::new(Box::pin(RobustMutex::new(()))));
        std::thread::spawn(move || {
            std::mem::forget(mutex.as_ref().lock().unwrap());
            say.send(()).unwrap();
            std::thread::sleep(Duration::from_secs(100));
        });
        hear.recv().unwrap();
        // SAFETY: read once: as if the box went.
        drop(unsafe { std::ptr::read(mutex) });
        return;
    }
    let test = "guards::a_mutex_that_goes_while_another_thread_holds_it_ends_the_process";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VARIABLE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("its guard was forgotten"), "{said}");
}

#[test]
fn a_forked_childs_copy_of_a_guard_does_nothing() {
    let _watchdog = watch("a_forked_childs_copy_of_a_guard_does_nothing");
    for protocol in PROTOCOLS {
        let memory = Mapping::anonymous(4096);
        let address = memory.at::<RobustMutex<u32>>(0);
        // SAFETY: ours alone as yet, and then a mutex as long as the mapping.
        let mutex = unsafe {
            address.write(RobustMutex::with_protocol(0, protocol));
            RobustMutex::at(address)
        };
        let guard = mutex.lock().unwrap();
        let private = Box::pin(RobustMutex::new(0));
        std::mem::forget(private.as_ref().lock().unwrap());
        let mut copies = Some((guard, private));
        let child = fork(|| {
            // Without a destructor's effect on the parent's mutex.
            drop(copies.take());
            i32::from(mutex.try_lock().is_ok())
        });
        assert_eq!(child.join(), 0);
        assert_eq!(mutex.try_lock().unwrap_err(), RobustError::Busy);
        drop(copies);
        assert!(!RobustGuard::owner_died(&mutex.lock().unwrap()));
    }
}

/// The example of the documentation, with a process that is killed.
#[test]
fn a_killed_process_is_reported_to_the_next() {
    let _watchdog = watch("a_killed_process_is_reported_to_the_next");
    for protocol in PROTOCOLS {
        let memory = Mapping::anonymous(4096);
        let address = memory.at::<RobustMutex<[u32; 2]>>(0);
        // SAFETY: ours alone as yet, and then a mutex as long as the mapping.
        let mutex = unsafe {
            address.write(RobustMutex::with_protocol([0, 0], protocol));
            RobustMutex::at(address)
        };
        for turn in 1..10 {
            let child = fork(|| {
                let mut guard = mutex.lock().unwrap();
                guard[0] = turn;
                // SAFETY: kills this process.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
                0
            });
            child.until_gone();
            let mut guard = mutex.lock_for(Duration::from_secs(60)).unwrap();
            assert!(RobustGuard::owner_died(&guard));
            assert_eq!(*guard, [turn, turn - 1]);
            guard[1] = guard[0];
            RobustGuard::mark_consistent(&mut guard);
            drop(guard);
            let guard = mutex.try_lock().unwrap();
            assert!(!RobustGuard::owner_died(&guard));
        }
    }
}
