//! How long somebody's turn keeps readers out. Regressions: once alarms were a second apart, each second doubled the turn, so that
//! a thread that read again while it read, 6 s after a writer had begun to wait, waited 16 s; and a signal handler that ran made
//! it wait anew.

use super::wait::{Alarms, length_of_turn};
use super::*;
use core::sync::atomic::Ordering::SeqCst;
use core::time::Duration;
use std::sync::mpsc::channel;
use std::time::Instant;

#[test]
fn a_turn_is_never_longer_than_its_owner_has_waited() {
    let mut alarms = Alarms::new();
    let mut waited = Duration::ZERO;
    let mut longest = Duration::ZERO;
    for alarm in 0..60 {
        let step = Duration::from_millis(1 << alarm.min(10)).min(Duration::from_secs(1));
        waited += step;
        alarms.ring();
        let length = length_of_turn(State(0).with_turn(alarms.turn()));
        assert!(length <= waited, "{length:?} after {waited:?}");
        // Nor does it stay behind: the bound that writers are promised needs that.
        let due = (waited / 4).min(Duration::from_secs(16));
        assert!(length >= due, "{length:?} after {waited:?}");
        longest = length;
    }
    assert_eq!(longest, Duration::from_millis(1 << 14));
}

#[test]
fn a_reader_that_is_disturbed_does_not_wait_anew() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: a handler that does nothing; no other test of this program uses the signal.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        libc::sigaction(libc::SIGWINCH, &action, core::ptr::null_mut());
    }
    let disturbed = [Scope::Private, Scope::Shared]
        .map(|scope| std::thread::spawn(move || read_again_while_disturbed(scope)));
    for done in disturbed {
        done.join().unwrap();
    }
}

fn read_again_while_disturbed(scope: Scope) {
    let lock: &'static RawRwLock = Box::leak(Box::new(RawRwLock::with(Preference::Reader, scope)));
    assert!(lock.try_read().is_ok());
    // A turn of a second, whose owner waits for the reader.
    lock.word.fetch_or(State(0).with_turn(11).0, SeqCst);
    let (says, hears) = channel();
    let reader = std::thread::spawn(move || {
        // SAFETY: no arguments, no memory.
        says.send(unsafe { libc::gettid() }).unwrap();
        lock.read(0, None)
    });
    let tid = hears.recv().unwrap();
    let began = Instant::now();
    while !reader.is_finished() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{scope:?}: {lock:?}"
        );
        // SAFETY: the signal has a handler; a thread that is gone by now is not found.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGWINCH) };
        std::thread::sleep(Duration::from_millis(5));
    }
    reader.join().unwrap().unwrap();
    assert_eq!(lock.state().readers(), 2, "{lock:?}");
}
