//! The way from a signal handler back to the code that it has interrupted, without returning from
//! the handler.
//!
//! The kernel creates a frame below the stack of the code that it interrupts, or on the alternate
//! stack, and starts the handler with it:
//!
//! ```text
//!   rsp of the interrupted code ──►  ...
//!                                    128 bytes that are not touched
//!                                    floating-point state     (a multiple of 64)
//!                                    siginfo, signal mask, registers
//!   rsp of the handler ──────────►   where the handler returns to: the C library's `rt_sigreturn`
//! ```
//!
//! The frame is found by that last word and verified by the rest: the positions of its parts follow
//! from the kernel's own arithmetic. The frame that interrupted a call of ours is the highest one
//! below it. (An old one, of a handler that has returned, might still lie in a hole of a live
//! frame. The handlers' frames are below the one that is searched for, and the call's own have no
//! hole that is large enough.)

use core::arch::asm;
use core::ffi::c_void;
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use syscalls::{Sysno, syscall4};

const WORD: usize = size_of::<usize>();
const PAGE: usize = 4096;

/// Offsets in the kernel's `rt_sigframe`.
mod at {
    pub(super) const STACK_POINTER: usize = 8 + 40 + 15 * 8;
    pub(super) const FLAGS: usize = 8 + 40 + 17 * 8;
    pub(super) const FLOATING_POINT: usize = 8 + 40 + 23 * 8;
    pub(super) const MASK: usize = 8 + 296;
    pub(super) const END: usize = 8 + 304 + 128;
}

/// Larger than any processor's floating-point state.
const LARGEST_STATE: usize = 1 << 16;
/// No handler has that much on its stack; a larger distance means another stack.
const LARGEST_STACK: usize = 1 << 26;

/// A frame with which a handler of this thread was started.
#[derive(Clone, Copy)]
pub(super) struct SignalFrame(usize);

/// The addresses that handlers return to: `sa_restorer` of all installed handlers.
struct Restorers {
    known: [usize; 4],
}

impl Restorers {
    fn find() -> Self {
        /// Of the kernel's `struct sigaction`, and signals.
        const WORDS: usize = 4;
        const RESTORER: usize = 2;
        const SET_BYTES: usize = 8;
        const SIGNALS: usize = 64;
        let mut known = [0; 4];
        for signal in 1..=SIGNALS {
            let mut action = [0_usize; WORDS];
            // SAFETY: the kernel writes an action, no larger than this, to `action`, and reads
            // none.
            let answer = unsafe {
                syscall4(
                    Sysno::rt_sigaction,
                    signal,
                    0,
                    action.as_mut_ptr().expose_provenance(),
                    SET_BYTES,
                )
            };
            let restorer = action[RESTORER];
            if answer.is_err() || restorer == 0 || known.contains(&restorer) {
                continue;
            }
            if let Some(place) = known.iter_mut().find(|place| **place == 0) {
                *place = restorer;
            }
        }
        Self { known }
    }

    fn has(&self, address: usize) -> bool {
        address != 0 && self.known.contains(&address)
    }
}

/// The address range of the alternate signal stack if the calling thread is on it, else an empty
/// range.
fn alternate_stack() -> core::ops::Range<usize> {
    let mut stack = libc::stack_t { ss_sp: null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: `stack` is a place for the result; nothing is changed.
    let answer = unsafe { libc::sigaltstack(core::ptr::null(), &raw mut stack) };
    if answer != 0 || stack.ss_flags & libc::SS_ONSTACK == 0 {
        return 0..0;
    }
    stack.ss_sp.addr()..stack.ss_sp.addr() + stack.ss_size
}

/// The stack pointer that a jump will set.
pub(super) fn stack_pointer_of(registers: &[usize; 8]) -> usize {
    const STACK_POINTER: usize = 6;
    let guard: usize;
    // SAFETY: reads the word of the thread block in which glibc keeps its pointer guard.
    unsafe {
        asm!("mov {}, fs:0x30", out(reg) guard, options(nostack, preserves_flags, pure, readonly));
    }
    registers[STACK_POINTER].rotate_right(0x11) ^ guard
}

/// Whether a jump to `target` leaves the call that lies at `call`.
pub(super) fn is_beyond(target: usize, call: usize) -> bool {
    let alternate = alternate_stack();
    match (alternate.contains(&target), alternate.contains(&call)) {
        // Within the handler.
        (true, false) => false,
        (false, true) => true,
        _ => target > call,
    }
}

/// The word at this address.
///
/// # Safety
/// It is readable and aligned.
unsafe fn word(address: usize) -> usize {
    // SAFETY: readable and aligned, by this function's contract. Volatile: it lies in other
    // functions' frames.
    unsafe { with_exposed_provenance::<usize>(address).read_volatile() }
}

impl SignalFrame {
    /// The frame of the running handler that has interrupted the call that lies at `call`.
    pub(super) fn above(call: usize) -> Option<Self> {
        let restorers = Restorers::find();
        let here = (&raw const restorers).addr() & !(WORD - 1);
        let alternate = alternate_stack();
        if !alternate.contains(&here) || alternate.contains(&call) {
            return Self::highest(here, call, call, &restorers);
        }
        // From the alternate stack to the one that it interrupted, where another handler may be.
        let entry = Self::highest(here, alternate.end, call, &restorers)?;
        let below = entry.stack_pointer();
        Self::highest(below & !(WORD - 1), call, call, &restorers).or(Some(entry))
    }

    /// The highest frame between the two addresses that was created below `call`.
    fn highest(from: usize, to: usize, call: usize, restorers: &Restorers) -> Option<Self> {
        if to <= from || to - from > LARGEST_STACK {
            return None;
        }
        let mut found = None;
        let mut readable_until = from;
        let mut at = from;
        while at + at::END <= to {
            if at + at::END > readable_until {
                // Check the whole frame, page by page.
                while at + at::END > readable_until {
                    if !crate::memory::can_be_read(readable_until) {
                        return None;
                    }
                    readable_until = (readable_until / PAGE + 1) * PAGE;
                }
            }
            // SAFETY: a word of the calling thread's stack, which was seen to be readable.
            if restorers.has(unsafe { word(at) }) {
                let frame = Self(at);
                if frame.is_one(call) {
                    found = Some(frame);
                }
            }
            at += WORD;
        }
        found
    }

    /// Whether this is the frame of a handler that interrupted code below `call`, judging by the
    /// positions of its parts. All of it must be readable.
    fn is_one(self, call: usize) -> bool {
        let state = self.get(at::FLOATING_POINT);
        let interrupted = self.stack_pointer();
        let is_placed = state % 64 == 0
            && state.wrapping_sub(at::END) & !15 == self.0.wrapping_add(WORD)
            && interrupted <= call;
        // On the same stack the interrupted code is right above.
        let is_on_this_stack = interrupted > self.0 && interrupted - self.0 < LARGEST_STATE;
        is_placed && (is_on_this_stack || alternate_stack().contains(&self.0))
    }

    fn get(self, offset: usize) -> usize {
        // SAFETY: a word of a frame that is on the calling thread's stack, and was seen to be
        // readable.
        unsafe { word(self.0 + offset) }
    }

    /// Whether an unwinder sees this frame as the caller of a function whose frame ends at this
    /// address.
    pub(super) fn begins_at(self, address: usize) -> bool {
        address == self.0 + WORD
    }

    /// The stack pointer of the interrupted code.
    fn stack_pointer(self) -> usize {
        self.get(at::STACK_POINTER)
    }

    /// Ends the handler: the interrupted code continues, with the current signal mask.
    ///
    /// # Safety
    /// It is a frame of the calling thread, and all frames of functions below it may be abandoned.
    pub(super) unsafe fn go_back(self) -> ! {
        /// The flag that makes the processor trap after each instruction; a handler runs without
        /// it.
        const TRAP: usize = 0x100;
        const SET_BYTES: usize = 8;
        let mask = with_exposed_provenance_mut::<u64>(self.0 + at::MASK);
        let flags = with_exposed_provenance_mut::<usize>(self.0 + at::FLAGS);
        // SAFETY: the mask and the flags of a frame, which nothing but the kernel reads. The kernel
        // writes the current mask, and changes none.
        unsafe {
            let _ = syscall4(
                Sysno::rt_sigprocmask,
                libc::SIG_BLOCK as usize,
                0,
                mask.expose_provenance(),
                SET_BYTES,
            );
            flags.write_volatile(flags.read_volatile() & !TRAP);
        }
        // SAFETY: as when a handler returns: the stack pointer is past the frame's first word,
        // which the return would have popped.
        unsafe {
            asm!(
                "mov rsp, {frame}",
                "mov eax, 15",
                "syscall",
                "ud2",
                frame = in(reg) self.0 + WORD,
                options(noreturn),
            )
        }
    }
}

/// The C library's `__pthread_unwind_buf_t`, which `pthread_cleanup_push` puts into its list.
#[repr(C)]
struct Cleanup {
    jump: [usize; 9],
    previous: *mut Cleanup,
    rest: [*mut c_void; 3],
}

unsafe extern "C" {
    fn __pthread_register_cancel(cleanup: *mut Cleanup);
    fn __pthread_unregister_cancel(cleanup: *mut Cleanup);
}

/// Removes from the calling thread's list the cleanup handlers whose frames are lost on the way
/// back: those that a signal handler has pushed itself.
pub(super) fn forget_cleanups_below(frame: &SignalFrame) {
    let mut own = Cleanup { jump: [0; 9], previous: null_mut(), rest: [null_mut(); 3] };
    let alternate = alternate_stack();
    let here = (&raw const own).addr();
    let is_lost = |at: usize| alternate.contains(&at) || at >= here.min(frame.0) && at < frame.0;
    // SAFETY: `own` is in the list no longer than this function runs. The entries after it are the
    // thread's own, each in a frame that still exists.
    unsafe {
        __pthread_register_cancel(&raw mut own);
        while is_lost(own.previous.addr()) {
            own.previous = (*own.previous).previous;
        }
        __pthread_unregister_cancel(&raw mut own);
    }
}
