//! Time slice extensions: a thread asks the kernel not to preempt it in a short critical section
//! (rseq, Linux 7.0).
//!
//! If the thread's time slice ends while it has asked, the kernel lets it run on for a few
//! microseconds (5 by default), so that it does not keep others waiting for a whole time slice. A
//! thread that was given this time yields its CPU when the section ends. A request costs no system
//! call, and where there are no extensions it has no effect.
//!
//! The library asks while it holds a lock of its waiter table. [`extend`] asks around a section of
//! yours: one of less than about a microsecond, in which the thread holds a lock that others need
//! soon, and makes no system call (a call in the extra time gives it back at once).
//!
//! ```
//! use waitword::{Mutex, time_slice};
//!
//! static COUNTS: Mutex<[u64; 2]> = Mutex::new([0; 2]);
//!
//! {
//!     let _extension = time_slice::extend();
//!     let mut counts = COUNTS.lock();
//!     counts[0] += 1;
//!     counts[1] += 2;
//!     // The lock is released first, then the rest of the extra time is given back.
//! }
//! ```
//!
//! # What it needs
//!
//! * Linux 7.0 or newer, built with `CONFIG_RSEQ_SLICE_EXTENSION`. Debian's kernels up to 7.3 are
//!   built without it.
//! * glibc 2.41 or newer. The kernel grants extensions only to threads that have registered the
//!   whole of `struct rseq` as the kernel knows it. Older versions register the 32 bytes of
//!   Linux 4.18, and a thread can have only one such registration. This library does not replace
//!   the C library's by one of its own, since the C library and others (tcmalloc, librseq) read
//!   that one. Nor does it register an area where the C library has been told not to
//!   (`GLIBC_TUNABLES=glibc.pthread.rseq=0`): the memory must outlive the thread's last return from
//!   the kernel, which thread-local storage of a library loaded by `dlopen` does not.
//! * x86-64 or AArch64.
//!
//! `waitword doctor` shows what is missing. The environment variable `WAITWORD_TIME_SLICE=0` turns
//! all requests of this library off.
//!
//! # How
//!
//! ```text
//!   thread                          kernel, at an interrupt that ends the time slice
//!   ──────                          ────────────────────────────────────────────────
//!   request = 1
//!   critical section          ◄──   request? request = 0, granted = 1, arm a timer, return
//!   request = 0                     (timer, or a further interrupt: granted = 0, schedule)
//!   granted? rseq_slice_yield ──►   granted = 0, schedule
//! ```
//!
//! Both bytes lie in the thread's own rseq area, and the kernel writes them only while the thread
//! is interrupted, on the same CPU. So plain loads and stores (Relaxed) in program order suffice,
//! with compiler fences around the section.
//!
//! **Nesting**: a request is made only if neither byte is set. So an inner section does not end the
//! request of an outer one, whoever made that: this library, a signal handler's interrupted code,
//! or the program itself. Nothing is counted, and nothing is left wrong if a section is never
//! ended: the kernel clears the bytes at the next interrupt that finds them.

use super::env;
use super::rseq;
use crate::atomic::thread_static;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicU8, AtomicU32, Ordering::Relaxed, Ordering::SeqCst, compiler_fence,
};

/// `struct rseq` of Linux 7.0. All fields are atomics: the kernel may write each of them.
#[repr(C)]
struct Area {
    /// CPU numbers and the restartable sequence, which are not used here.
    _first: [AtomicU32; 4],
    flags: AtomicU32,
    _node_id: AtomicU32,
    _mm_cid: AtomicU32,
    request: AtomicU8,
    granted: AtomicU8,
}

const _: () = assert!(core::mem::offset_of!(Area, flags) == 16);
const _: () = assert!(core::mem::offset_of!(Area, request) == 28);

/// The largest registration that the kernel takes for one of Linux 4.18, without extensions.
const ORIGINAL_SIZE: u32 = 32;
/// In `flags`: this kernel has extensions, and they are enabled for this thread.
const AVAILABLE: u32 = 1 << 4;
const ENABLED: u32 = 1 << 5;

/// What the calling thread knows about its extensions.
#[derive(Clone, Copy)]
enum Known {
    Unasked,
    Unavailable,
    At(NonNull<Area>),
}

thread_static! {
    // No destructor and a constant initial value: usable at any moment, in handlers too.
    static KNOWN: Cell<Known> = const { Cell::new(Known::Unasked) };
}

/// Whether the calling thread can extend its time slice.
///
/// The first call in a thread may make one system call. Async-signal-safe.
pub fn is_available() -> bool {
    area().is_some()
}

/// Asks the kernel not to preempt the calling thread for a moment, until the returned value is
/// dropped.
///
/// Does not block. The first call in a thread may make one system call. Async-signal-safe.
#[inline]
pub fn extend() -> Extension {
    Extension { requested: request(), not_send: PhantomData }
}

/// A critical section with a request for a [time slice extension](extend); dropping it ends the
/// section.
///
/// It belongs to the thread that made it, so it is neither `Send` nor `Sync`. Declare it before the
/// lock's guard: then the lock is released first. If it is never dropped, the request ends when the
/// kernel next interrupts the thread.
#[derive(Debug)]
#[must_use = "the request ends when this is dropped"]
pub struct Extension {
    requested: bool,
    not_send: PhantomData<*const ()>,
}

impl Drop for Extension {
    #[inline]
    fn drop(&mut self) {
        if self.requested {
            release();
        }
    }
}

/// Makes a request. False if there is one already, or no support: then there is nothing to
/// [`release`].
#[inline]
pub(crate) fn request() -> bool {
    let Some(area) = area() else {
        return false;
    };
    if area.request.load(Relaxed) | area.granted.load(Relaxed) != 0 {
        return false;
    }
    area.request.store(1, Relaxed);
    compiler_fence(SeqCst);
    true
}

/// Ends a request that was made, and yields the CPU if it was granted.
#[inline]
pub(crate) fn release() {
    compiler_fence(SeqCst);
    let Some(area) = area() else {
        return;
    };
    area.request.store(0, Relaxed);
    compiler_fence(SeqCst);
    if area.granted.load(Relaxed) != 0 {
        slice_yield();
    }
}

/// The calling thread's area, if it can extend its time slice.
#[inline]
fn area() -> Option<&'static Area> {
    match KNOWN.with(Cell::get) {
        Known::Unavailable => None,
        // SAFETY: `look_up` has found the area of the calling thread, in whose thread-local storage
        // both the area and `KNOWN` are. The reference stays in this file, in calls by this thread.
        // The kernel writes the fields, all atomics, only while the thread is interrupted.
        Known::At(area) => Some(unsafe { area.as_ref() }),
        Known::Unasked => look_up(),
    }
}

#[cold]
fn look_up() -> Option<&'static Area> {
    let found = find();
    let known = found.map_or(Known::Unavailable, Known::At);
    KNOWN.with(|cell| cell.set(known));
    // SAFETY: as in `area`.
    found.map(|area| unsafe { area.as_ref() })
}

/// Whether a thread of this process may find that it can extend its time slice. Makes no system
/// call.
pub(crate) fn is_possible() -> bool {
    !cfg!(loom) && rseq::registered_size() > ORIGINAL_SIZE && is_wanted()
}

/// Finds the calling thread's area, and enables extensions for the thread.
fn find() -> Option<NonNull<Area>> {
    if !is_possible() {
        return None;
    }
    let address = thread_pointer()?.wrapping_add_signed(rseq::offset()?);
    let area = NonNull::new(core::ptr::with_exposed_provenance_mut::<Area>(address))?;
    // SAFETY: the C library has reserved `registered_size` bytes at this offset in every thread,
    // more than an `Area` has, aligned to at least 32. They are valid as long as the thread lives,
    // and zero if the kernel refused the registration.
    let flags = unsafe { area.as_ref() }.flags.load(Relaxed);
    let enabled = flags & ENABLED != 0 || flags & AVAILABLE != 0 && enable();
    enabled.then_some(area)
}

/// Whether the environment allows requests. It is read once, at the process's first request.
fn is_wanted() -> bool {
    const UNREAD: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;
    // Relaxed: every thread would read the same.
    static WANTED: AtomicU8 = AtomicU8::new(UNREAD);
    if WANTED.load(Relaxed) == UNREAD {
        let no = env::number(c"WAITWORD_TIME_SLICE") == Some(0);
        WANTED.store(if no { NO } else { YES }, Relaxed);
    }
    WANTED.load(Relaxed) == YES
}

/// Enables extensions for the calling thread. The children that it forks have them too.
fn enable() -> bool {
    use syscalls::{Sysno, syscall5};
    const PR_RSEQ_SLICE_EXTENSION: usize = 79;
    const SET: usize = 2;
    const ENABLE: usize = 1;
    // SAFETY: no memory is passed. The kernel changes a flag in the thread's registered area.
    unsafe { syscall5(Sysno::prctl, PR_RSEQ_SLICE_EXTENSION, SET, ENABLE, 0, 0) }.is_ok()
}

/// The thread pointer of the ELF ABI.
#[inline]
fn thread_pointer() -> Option<usize> {
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    {
        let pointer: usize;
        // SAFETY: the ABI has the thread pointer itself stored in the word that it points to.
        unsafe {
            core::arch::asm!(
                "mov {}, qword ptr fs:[0]",
                out(reg) pointer,
                options(nostack, preserves_flags, readonly),
            );
        }
        Some(pointer)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let pointer: usize;
        // SAFETY: reads a register that every program may read.
        unsafe {
            core::arch::asm!(
                "mrs {}, tpidr_el0",
                out(reg) pointer,
                options(nostack, preserves_flags, nomem),
            );
        }
        Some(pointer)
    }
    #[cfg(not(any(
        all(target_arch = "x86_64", target_pointer_width = "64"),
        target_arch = "aarch64"
    )))]
    None
}

/// `rseq_slice_yield`, which the crate `syscalls` does not know yet. Its number is the same on
/// every architecture.
#[cold]
fn slice_yield() {
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    // SAFETY: the call has no arguments and accesses no memory of the program but the thread's rseq
    // area. The kernel changes rax, rcx and r11.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") 471usize => _,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the call has no arguments and accesses no memory of the program but the thread's rseq
    // area. The kernel changes x0.
    unsafe {
        core::arch::asm!(
            "svc #0",
            in("x8") 471usize,
            lateout("x0") _,
            options(nostack),
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The two bytes, `None` where there are no extensions.
    fn bytes() -> Option<[u8; 2]> {
        area().map(|area| [area.request.load(Relaxed), area.granted.load(Relaxed)])
    }

    /// With retries, since the kernel may grant or revoke the request at any interrupt.
    fn soon(mut condition: impl FnMut() -> bool) -> bool {
        (0..1000).any(|_| condition())
    }

    #[test]
    fn an_inner_section_leaves_the_request_to_the_outer_one() {
        assert!(soon(|| {
            let outer = extend();
            let during = bytes();
            let inner = extend();
            let (inner_requested, outer_requested) = (inner.requested, outer.requested);
            drop(inner);
            let still = bytes();
            drop(outer);
            let after = bytes();
            match during {
                None => !outer_requested && !inner_requested,
                Some(during) => {
                    outer_requested
                        && !inner_requested
                        && during == [1, 0]
                        && still == Some([1, 0])
                        && after == Some([0, 0])
                }
            }
        }));
    }

    #[test]
    fn every_thread_has_its_own() {
        assert!(soon(|| {
            let _here = extend();
            let there = std::thread::spawn(|| (bytes(), extend().requested)).join().unwrap();
            match is_available() {
                false => there == (None, false),
                true => there == (Some([0, 0]), true),
            }
        }));
    }

    #[test]
    fn a_request_that_is_never_ended_does_not_last() {
        core::mem::forget(extend());
        // The kernel clears it when it next schedules, and a later request is then possible.
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(soon(|| {
            let next = extend();
            std::thread::yield_now();
            next.requested == is_available()
        }));
    }
}
