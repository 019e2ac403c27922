//! How waits on a word in the kernel end, and what a signal does to the word.

use super::counted::{Sleep, signal};
use crate::lock::interrupter::Interrupter;
use crate::lock::kernel_wait::Slept;
use crate::sys::clock::Deadline;
use crate::sys::tid::tid;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, SystemTime};
use waitword_testkit::{Mapping, sleeps, until, watch};

const PAGE: usize = 4096;

/// Whether a signal changes this word. It does if a waiter is counted that may sleep on the word.
fn finds_a_waiter(word: &AtomicU32) -> bool {
    let before = word.load(SeqCst);
    signal(word, 1);
    word.load(SeqCst) != before
}

#[test]
fn a_signal_does_nothing_unless_a_waiter_is_counted() {
    let _watchdog = watch();
    // Waiters of other tests come and go, and may be counted in this word's counter.
    let word = AtomicU32::new(0);
    until(|| !finds_a_waiter(&word));
    let sleep = Sleep::begin(&word);
    assert!(finds_a_waiter(&word));
    assert_eq!(sleep.sleep(None, None), Slept::Woken);
    until(|| !finds_a_waiter(&word));
}

#[test]
fn a_deadline_holds_on_either_clock() {
    let _watchdog = watch();
    let word = AtomicU32::new(7);
    let soon = Duration::from_millis(5);
    let deadlines = [Deadline::after(soon), Deadline::at_system_time(SystemTime::now() + soon)];
    for deadline in deadlines {
        // The second time, the deadline has already passed.
        for _ in 0..2 {
            let slept = Sleep::begin(&word).sleep(Some(&deadline), None);
            assert_eq!(slept, Slept::TimedOut);
            assert!(deadline.has_passed());
        }
    }
}

#[test]
fn memory_that_is_gone_means_that_it_was_signalled() {
    let _watchdog = watch();
    let mapping = Mapping::private(PAGE);
    let memory = mapping.at::<libc::c_void>(0);
    // SAFETY: zeroed, and used as this only.
    let sleep = Sleep::begin(unsafe { mapping.get::<AtomicU32>(0) });
    // SAFETY: mapped above; from here on only the kernel follows an address into it. The memory
    // becomes inaccessible rather than unmapped, so that no other test's memory can be mapped here.
    // To the kernel both are the same.
    assert_eq!(unsafe { libc::mprotect(memory, PAGE, libc::PROT_NONE) }, 0);
    assert_eq!(sleep.sleep(None, None), Slept::Woken);
}

/// Runs `sleeping` on another thread, and `body` once that thread is asleep.
fn while_asleep(sleeping: impl FnOnce() + Send, body: impl FnOnce(u32)) {
    let sleeper = AtomicU32::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            sleeper.store(tid(), SeqCst);
            sleeping();
        });
        until(|| sleeper.load(SeqCst) != 0 && sleeps(sleeper.load(SeqCst)));
        body(sleeper.load(SeqCst));
    });
}

/// Sends the thread a signal whose handler does nothing.
fn send_signal(tid: u32) {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler does nothing, and the structure is complete. The remaining arguments are
    // numbers.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut());
        libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGURG);
    }
}

#[test]
fn a_signal_handler_ends_no_wait() {
    let _watchdog = watch();
    for by in [None, Some(Interrupter::signalled())] {
        let word = AtomicU32::new(7);
        let sleeping = || {
            let slept = Sleep::begin(&word).sleep(None, by.as_ref());
            assert_eq!((slept, word.load(SeqCst)), (Slept::Woken, 8));
        };
        while_asleep(sleeping, |sleeper| {
            for _ in 0..20 {
                send_signal(sleeper);
                std::thread::sleep(Duration::from_micros(200));
            }
            until(|| sleeps(sleeper));
            assert_eq!(signal(&word, 1), 1);
        });
    }
}

/// A waiter that was signalled before it could sleep returns as signalled, even if it was also
/// interrupted.
#[test]
fn a_signal_counts_more_than_an_interruption() {
    let _watchdog = watch();
    let (word, by) = (AtomicU32::new(7), Interrupter::signalled());
    let sleep = Sleep::begin(&word);
    by.interrupt();
    signal(&word, 1);
    assert_eq!(sleep.sleep(None, Some(&by)), Slept::Woken);
    // The interruption is still pending.
    let sleep = Sleep::begin(&word);
    assert_eq!(sleep.sleep(None, Some(&by)), Slept::Interrupted);
}
