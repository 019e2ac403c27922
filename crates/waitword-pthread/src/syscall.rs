//! `syscall`: raw futexes. Code that calls futex(2) without a lock of the C library (Rust's std,
//! libstdc++, Abseil, `perf bench futex`) mostly does it through the C library's `syscall`, which
//! is defined here too.
//!
//! | call | private words of 32 bits | all else |
//! |------|--------------------------|----------|
//! | futex: WAIT, WAKE, WAIT_BITSET, WAKE_BITSET | our table | the kernel |
//! | futex: REQUEUE, CMP_REQUEUE, WAKE_OP | our table | the kernel |
//! | futex: the PI operations | the kernel (1) | the kernel |
//! | futex: unknown ones | the kernel | the kernel |
//! | futex_wait, futex_wake | our table | the kernel |
//! | futex_requeue | our table, if both words are private | the kernel |
//! | futex_waitv | our table, if one word is private (2) | the kernel |
//! | every other number | | the kernel |
//!
//! 1. Unless plain waiters are queued on the word: then the result is what the kernel's would be.
//! 2. The shared words are then waited for in the kernel at the same time.
//!
//! So a word's waiters are queued in one place, whichever call is used: the call's own flags alone
//! decide. Sizes and flags that the kernel does not know today are left for the kernel to refuse.
//!
//! # The way to the kernel
//!
//! Between the caller and the kernel nothing may happen that glibc does not do: `vfork` must not
//! find its return address overwritten by its child, `rt_sigreturn` must not find its stack pointer
//! moved, nor `clone` a frame that its child does not have. So the entry is written in assembly
//! (each processor has its own file) and, for all numbers but five, is glibc's own instructions
//! preceded by a few that compare. They use no stack, no memory, and of the registers only one that
//! glibc's own instructions set.
//!
//! Libraries are relocated one after the other, and another library's IFUNC resolver may call this
//! before ours is relocated. The way to the kernel needs no relocation unless the call fails; the
//! path that does is taken only once the relocations are seen to be there (and `errno` is set only
//! then).
//!
//! # Cancellation
//!
//! A call that we serve is like any other call of ours (`call.rs`): a thread with the asynchronous
//! type is deferred for its duration, and a request is acted on at its end. A wait of futex(2) is
//! ended by the request, or by a handler that leaves; one of futex2 ends as any handler ends it.
//! With the deferred type no raw call is a cancellation point.
//!
//! # Bad addresses
//!
//! The kernel returns EFAULT where a load of ours would raise SIGSEGV. See `memory.rs`.

mod arguments;
mod classic;
// A naked function needs Rust 1.88.
#[cfg_attr(target_arch = "aarch64", path = "syscall/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "syscall/x86_64.rs")]
mod entry;
mod futex2;

use crate::call::{self, Call, Ended};
use crate::{mode, record};
use arguments::{Arguments, FUTEX, FUTEX_WAIT, FUTEX_WAITV};
use core::cell::Cell;
use core::ffi::{c_int, c_long};
use waitword::raw::Errno;
use waitword_record::format::Object;

unsafe extern "C-unwind" {
    #[link_name = "waitword_syscall"]
    fn entry(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long;
    #[link_name = "waitword_kernel"]
    fn kernel(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long;
}

/// The C library's `syscall`. Source: syscall(2).
///
/// The library exports the assembly's entry under this name (`build.rs`), and never this function,
/// since its code may move the stack pointer. It makes the compiler export the name, which the
/// compiler does only for Rust functions.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: usize,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    // SAFETY: the caller's arguments are what the call of this number requires; those that the
    // caller has not passed are garbage, which the entry passes on and which is not used.
    unsafe { entry(number, first, second, third, fourth, fifth, sixth) }
}

/// Handles an error of the kernel's as glibc does.
extern "C" fn failed(negative: c_long) -> c_long {
    refuse(-negative as c_int)
}

#[cold]
fn refuse(number: c_int) -> c_long {
    // SAFETY: the calling thread's own `errno`, which exists as long as the thread.
    unsafe { *libc::__errno_location() = number };
    -1
}

/// Serves one of the five calls.
///
/// # Safety
/// The arguments are those that the call of this number takes.
unsafe extern "C-unwind" fn serve(
    number: usize,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    let arguments = [first, second, third, fourth, fifth, sixth];
    // SAFETY: forwards this function's own contract.
    unsafe {
        match mode::serves_futexes() {
            true => serve_plainly(number, &arguments, |wait| wait()),
            false => serve_otherwise(number, &arguments),
        }
    }
}

/// In a process that records, that leaves futexes to the kernel, or that had not decided.
///
/// # Safety
/// As [`serve`].
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn serve_otherwise(number: usize, arguments: &Arguments) -> c_long {
    let word = core::ptr::without_provenance::<u32>(arguments[0]);
    // SAFETY: forwards this function's own contract.
    unsafe {
        match mode::futexes() {
            mode::Futexes::Ours => serve_plainly(number, arguments, |wait| wait()),
            mode::Futexes::Recorded if may_wait(number, arguments) => {
                serve_plainly(number, arguments, |wait| {
                    let answer = Cell::new(0);
                    record::waiting(Object::Futex, word, || {
                        answer.set(wait());
                        answer.get() as c_int
                    });
                    answer.get()
                })
            }
            mode::Futexes::Recorded => serve_plainly(number, arguments, |wait| wait()),
            mode::Futexes::TheKernels => pass_on(number, arguments),
        }
    }
}

/// Whether it is a call that waits.
fn may_wait(number: usize, arguments: &Arguments) -> bool {
    match number as u32 as usize {
        FUTEX => classic::waits(arguments),
        call => call == FUTEX_WAIT || call == FUTEX_WAITV,
    }
}

/// # Safety
/// As [`serve`].
#[inline(always)]
unsafe fn pass_on(number: usize, arguments: &Arguments) -> c_long {
    let [first, second, third, fourth, fifth, sixth] = *arguments;
    // SAFETY: forwards this function's own contract.
    unsafe { kernel(number, first, second, third, fourth, fifth, sixth) }
}

/// Serves a call, or passes it on. `run` calls what it is given, which serves it.
///
/// # Safety
/// As [`serve`].
#[inline(always)]
unsafe fn serve_plainly(
    number: usize,
    arguments: &Arguments,
    run: impl FnOnce(&dyn Fn() -> c_long) -> c_long,
) -> c_long {
    let call = number as u32 as usize;
    let is_ours = match call {
        FUTEX => classic::is_ours(arguments),
        // SAFETY: forwards this function's own contract.
        _ => unsafe { futex2::is_ours(call, arguments) },
    };
    if !is_ours {
        if call == FUTEX && classic::inherits(arguments) {
            // SAFETY: forwards this function's own contract.
            if let Some(answer) = unsafe { answer_of_pi(arguments) } {
                return answer;
            }
        }
        // SAFETY: forwards this function's own contract.
        return unsafe { pass_on(number, arguments) };
    }
    run(&|| {
        let answer = Cell::new(Ok(0));
        let work = |running: &Call| {
            let by = running.interrupter();
            answer.set(match call {
                // SAFETY: it is futex(2), and ours, as was seen above; for its arguments this
                // forwards the function's own contract.
                FUTEX => unsafe { classic::call(arguments, by, running.is_asynchronous()) },
                // SAFETY: it is ours, as was seen above; for its arguments this forwards the
                // function's own contract.
                _ => unsafe { futex2::call(call, arguments) },
            });
            Ended::with(0)
        };
        call::run(work, |_| {});
        returned(answer.get())
    })
}

/// Converts the result for C.
#[inline]
fn returned(answer: Result<usize, Errno>) -> c_long {
    match answer {
        Ok(answer) => answer as c_long,
        Err(errno) => refuse(errno.raw_os_error()),
    }
}

/// The result of an operation with priority inheritance, if it is not for the kernel alone to
/// decide. Does not sleep.
///
/// # Safety
/// As `classic::call`.
#[cold]
unsafe fn answer_of_pi(arguments: &Arguments) -> Option<c_long> {
    let answer = Cell::new(None);
    call::run_through(|| {
        // SAFETY: forwards this function's own contract.
        answer.set(unsafe { classic::answer_of_pi(arguments) });
        0
    });
    answer.get().map(returned)
}
