//! `pthread_once`, and what it shares with C11's `call_once` (`c11.rs`).
//!
//! A `pthread_once_t` is four bytes: [`Once`] fits, and has the C library's numbers for "new" (0, the static initialiser) and "done"
//! (2). What lies between is each one's own; in a process all are ours, or with `WAITWORD=off` all are the C library's. (Its own
//! code does not call through this name.)
//!
//! # Left by unwinding
//!
//! If the routine throws, or its thread is cancelled in it or ends, it counts as not called, and one of those who wait calls
//! its own. Two things end [`Once`]'s turn then, and the first to come ends it ([`Turn`]):
//!
//! * A destructor. Exceptions run it, and so does the forced unwinding of a thread that ends.
//! * A handler in the C library's list of cleanup handlers. Forced unwinding stops at a frame without unwind tables, as code in
//!   C often has them. The C library then calls the handlers in its list and jumps over all frames that are left.
//!
//! While a thread is unwound, libgcc itself calls this: on a once of its own, with a routine that only makes a mutex.

use crate::mode;
use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use libc::pthread_once_t;
use waitword::Once;
use waitword::abi_support::{OnceRun, begin_executing};

/// What is to be called once.
pub(crate) type Routine = unsafe extern "C-unwind" fn();

mod glibc {
    use super::{Routine, c_int, pthread_once_t};

    crate::real::real! {
        fn pthread_once(control: *mut pthread_once_t, routine: Option<Routine>) -> c_int;
    }
}

const _: () = assert!(size_of::<Once>() == size_of::<pthread_once_t>());
const _: () = assert!(align_of::<Once>() <= align_of::<pthread_once_t>());

/// Calls the routine if nobody has, or waits for whoever is at it. `EINVAL` if there is none to call.
/// Source: POSIX `pthread_once`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_once(
    control: *mut pthread_once_t,
    routine: Option<Routine>,
) -> c_int {
    // SAFETY: four aligned bytes that stay, by POSIX's contract. `Once` is as large and not more
    // aligned (asserted above), any bytes are one, and it is atomic.
    let once = unsafe { &*control.cast::<Once>() };
    // "Done" is the same number in both worlds.
    if once.state().done() {
        return 0;
    }
    call(once, control, routine)
}

#[cold]
#[inline(never)]
fn call(once: &Once, control: *mut pthread_once_t, routine: Option<Routine>) -> c_int {
    if !mode::is_on() {
        // SAFETY: only `pthread_once` leads here, with its own arguments: POSIX's contract for that
        // call holds.
        return unsafe { glibc::pthread_once(control, routine) };
    }
    let Some(routine) = routine else {
        return libc::EINVAL;
    };
    if let Some(run) = begin_executing(once) {
        let turn = Turn::new(run);
        // SAFETY: the turn is this frame's, and ends below or in its destructor. The routine is a function that C's caller wants
        // called.
        unsafe {
            turn.list();
            routine();
            turn.end();
        }
    }
    0
}

/// A link of the C library's list of cleanup handlers: its `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct Link {
    routine: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut Link,
}

unsafe extern "C" {
    /// Puts a link in front of the calling thread's list.
    fn _pthread_cleanup_push(
        link: *mut Link,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    /// Takes it, and what stands in front of it, out.
    fn _pthread_cleanup_pop(link: *mut Link, execute: c_int);
}

/// The call of a routine. It stays where it is once it is [listed](Self::list): the C library knows by its address when its frame
/// is left.
struct Turn<'a> {
    /// `None` once it has ended.
    run: Cell<Option<OnceRun<'a>>>,
    link: UnsafeCell<MaybeUninit<Link>>,
}

impl<'a> Turn<'a> {
    fn new(run: OnceRun<'a>) -> Self {
        Self {
            run: Cell::new(Some(run)),
            link: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Has the C library end it if the thread ends.
    ///
    /// # Safety
    /// It lies in a frame of the calling thread's stack and is not moved. When that frame returns it has [ended](Self::end).
    unsafe fn list(&self) {
        unsafe extern "C" fn leave(turn: *mut c_void) {
            // SAFETY: the turn that was listed. The C library calls this on the same stack, further down, before anything else
            // can use the turn's place.
            let turn = unsafe { &*turn.cast::<Turn<'_>>() };
            drop(turn.run.take());
        }
        let turn = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the link has room for all that is written there, and is in the list no longer than it lives: `end` or the destructor
        // takes it out, or the C library does before it calls `leave`.
        unsafe { _pthread_cleanup_push(self.link.get().cast(), leave, turn) };
    }

    /// # Safety
    /// It is listed.
    unsafe fn unlist(&self) {
        // SAFETY: a link of the calling thread's list. What stands in front of it belongs to frames that are gone.
        unsafe { _pthread_cleanup_pop(self.link.get().cast(), 0) };
    }

    /// The routine has returned.
    ///
    /// # Safety
    /// It is listed.
    unsafe fn end(&self) {
        // SAFETY: forwards this function's own contract.
        unsafe { self.unlist() };
        if let Some(run) = self.run.take() {
            run.end();
        }
    }
}

/// An exception has left the routine, or the thread ends and `leave` was called.
impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // SAFETY: it was listed before the routine was called, and neither `end` nor `leave` has run.
            unsafe { self.unlist() };
            drop(run);
        }
    }
}
