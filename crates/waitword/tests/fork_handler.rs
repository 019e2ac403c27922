//! fork where the kernel does not wipe our memory in the child. A handler of `pthread_atfork` does
//! it, and it must be installed before any thread waits, however many threads come first at the
//! same moment.

use libc::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;
use waitword::{Futex, table};
use waitword_testkit::{
    Way, in_child, in_fresh_process,
    seccomp::{call, refuse},
    until, until_waiting, watch,
};

type Handler = Option<unsafe extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// How many threads have begun to register a handler.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
/// Whether the first of them may go on.
static GO_ON: AtomicBool = AtomicBool::new(false);

/// What `pthread_atfork` calls in the C library, with its first caller delayed before it.
#[unsafe(no_mangle)]
extern "C" fn __register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    library: *mut c_void,
) -> c_int {
    if BEGUN.fetch_add(1, SeqCst) == 0 {
        until(|| GO_ON.load(SeqCst));
    }
    // SAFETY: the C library's function of this name, which has this type; the arguments come from
    // its caller.
    unsafe {
        let real = libc::dlsym(libc::RTLD_NEXT, c"__register_atfork".as_ptr());
        std::mem::transmute::<*mut c_void, Register>(real)(prepare, parent, child, library)
    }
}

/// From here on the kernel refuses MADV_WIPEONFORK to this thread, and to the threads that it
/// starts.
fn refuse_to_wipe() {
    let wipe = call(libc::SYS_madvise).with(2, u32::MAX, libc::MADV_WIPEONFORK as u32);
    refuse(libc::EINVAL, [wipe]);
}

#[test]
fn a_thread_that_comes_during_registration_has_a_handler_too() {
    in_fresh_process(|| {
        static WORDS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
        let _watchdog = watch();
        refuse_to_wipe();
        let wait = |word: &'static AtomicU32| {
            thread::spawn(move || assert_eq!(Futex::private(word).wait(0), Ok(())))
        };
        let first = wait(&WORDS[0]);
        until(|| BEGUN.load(SeqCst) == 1);
        let second = wait(&WORDS[1]);
        until_waiting(&WORDS[1], 1);
        in_child(Way::Fork, || {
            let snapshot = table::snapshot(&mut []);
            let woken = Futex::private(&WORDS[1]).wake(1);
            i32::from((snapshot.waiters, woken) != (0, Ok(0)))
        });
        GO_ON.store(true, SeqCst);
        until_waiting(&WORDS[0], 1);
        for word in &WORDS {
            assert_eq!(Futex::private(word).wake(1), Ok(1));
        }
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// The kernel wipes the table and the first parkers, but refuses for parkers that are mapped later.
#[test]
fn parkers_that_the_kernel_does_not_wipe_are_free_in_the_child() {
    in_fresh_process(|| {
        /// More than the first chunk of parkers holds.
        const WAITERS: usize = 40;
        static FIRST: AtomicU32 = AtomicU32::new(0);
        static WORD: AtomicU32 = AtomicU32::new(0);
        let _watchdog = watch();
        // The delayed registration is the other test's subject.
        GO_ON.store(true, SeqCst);
        let wait = |word: &'static AtomicU32| {
            thread::spawn(move || assert_eq!(Futex::private(word).wait(0), Ok(())))
        };
        let first = wait(&FIRST);
        until_waiting(&FIRST, 1);
        refuse_to_wipe();
        let waiters: Vec<_> = (0..WAITERS).map(|_| wait(&WORD)).collect();
        until_waiting(&WORD, WAITERS);
        assert_eq!(table::snapshot(&mut []).parkers, 1 + WAITERS);
        in_child(Way::Fork, || i32::from(table::snapshot(&mut []).parkers != 0));
        assert_eq!(Futex::private(&FIRST).wake(1), Ok(1));
        assert_eq!(Futex::private(&WORD).wake(usize::MAX), Ok(WAITERS));
        waiters.into_iter().chain([first]).for_each(|waiter| waiter.join().unwrap());
    });
}
