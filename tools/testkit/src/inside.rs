//! A way to be inside a bucket for any length of time, without help from the library.
//!
//! `wake_op` changes its second word while it holds the buckets of both words. If that word lies in
//! memory that is write-protected at that moment, the change faults, and the signal handler runs
//! while the buckets are held. The handler then makes the memory writable, and the change
//! completes.

use crate::mapping::Mapping;
use crate::thread::install;
use crate::until::{until, until_waiting};
use crate::watchdog::watch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::SeqCst};
use waitword::{Futex, Op, WakeOp};

const PAGE: usize = 4096;

/// The word whose bucket is held, in a page of its own. The bucket of [`FIRST`] is held too.
static SECOND: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// The first word of the wake_op.
pub static FIRST: AtomicU32 = AtomicU32::new(0);
static ACTION: AtomicUsize = AtomicUsize::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The word whose bucket is held while the action runs.
pub fn second() -> &'static AtomicU32 {
    // SAFETY: set before any use, and never unmapped.
    unsafe { &*SECOND.load(SeqCst) }
}

fn allow_writing(allowed: bool) {
    let access = match allowed {
        true => libc::PROT_READ | libc::PROT_WRITE,
        false => libc::PROT_READ,
    };
    // SAFETY: our own page.
    let result = unsafe { libc::mprotect(SECOND.load(SeqCst).cast(), PAGE, access) };
    assert_eq!(result, 0);
}

extern "C" fn on_fault(_signal: i32) {
    let action = ACTION.swap(0, SeqCst);
    // A fault that is not ours would recur forever.
    if action == 0 {
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
    // SAFETY: stored from such a function by `run`. Nothing else stores anything but 0.
    let action: fn() = unsafe { std::mem::transmute::<usize, fn()>(action) };
    action();
    allow_writing(true);
}

/// Runs `action` as a signal handler that has interrupted the calling thread while it holds the
/// buckets of [`FIRST`] and [`second`]. Another thread waits on `second` meanwhile.
pub fn run(action: fn()) {
    let _watchdog = watch();
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|broken| broken.into_inner());
    if SECOND.load(SeqCst).is_null() {
        let page = Mapping::private(PAGE).leak();
        SECOND.store(page.cast(), SeqCst);
    }
    let before = second().load(SeqCst);
    std::thread::scope(|scope| {
        // Without a waiter, wake_op takes no lock.
        let waiter = scope.spawn(|| while Futex::private(second()).wait(before).is_err() {});
        until_waiting(second(), 1);
        ACTION.store(action as usize, SeqCst);
        install(libc::SIGSEGV, on_fault, 0);
        allow_writing(false);
        let add = WakeOp::<u32>::new(Op::Add, 1);
        let woken = Futex::private(&FIRST).wake_op(0, Futex::private(second()), 0, add);
        assert_eq!(woken, Ok(0));
        assert_eq!(ACTION.load(SeqCst), 0, "the change has not faulted");
        assert_eq!(second().load(SeqCst), before.wrapping_add(1));
        // The action may have woken it.
        until(|| {
            let _ = Futex::private(second()).wake(1);
            waiter.is_finished()
        });
        waiter.join().expect("the waiter");
    });
}
