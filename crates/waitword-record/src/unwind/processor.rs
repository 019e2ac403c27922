//! What a walk has to know about the processor.
//!
//! | | x86-64 | AArch64 |
//! |---|---|---|
//! | frame pointer, stack pointer | `rbp`, `rsp` | `x29`, `sp` |
//! | where a call leaves the return address | on the stack, in front of the CFA | in `x30` (1) |
//! | what it may have in addition once it is saved | nothing | a signature in its upper bits |
//!
//! 1. A function that calls others saves it anywhere in its frame.
//!
//! On both, a function with a frame pointer saves its caller's where its own points to, and the
//! return address right behind it.

use core::arch::asm;
use gimli::{Register, Vendor};

/// Where the calling function is, and its frame.
pub(super) struct Registers {
    pub(super) instruction: u64,
    pub(super) stack: u64,
    pub(super) frame: u64,
}

#[cfg(target_arch = "x86_64")]
mod this {
    use super::{Register, Vendor};

    pub(in super::super) const FRAME_POINTER: Register = Register(6);
    pub(in super::super) const STACK_POINTER: Register = Register(7);
    pub(in super::super) const RETURN_ADDRESS: Register = Register(16);
    pub(in super::super) const VENDOR: Vendor = Vendor::Default;
    /// A return address, of what is found in its place.
    #[inline(always)]
    pub(in super::super) fn address(saved: u64) -> u64 {
        saved
    }
}

#[cfg(target_arch = "aarch64")]
mod this {
    use super::{Register, Vendor};

    pub(in super::super) const FRAME_POINTER: Register = Register(29);
    pub(in super::super) const STACK_POINTER: Register = Register(31);
    pub(in super::super) const RETURN_ADDRESS: Register = Register(30);
    pub(in super::super) const VENDOR: Vendor = Vendor::AArch64;
    /// A return address, of what is found in its place: without the signature of pointer
    /// authentication. (Linux maps nothing above these 48 bits unless a program asks for it.)
    #[inline(always)]
    pub(in super::super) fn address(saved: u64) -> u64 {
        saved & ((1 << 48) - 1)
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use this::{FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER, VENDOR, address};

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn registers() -> Registers {
    let (instruction, stack, frame): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!(
            "lea {instruction}, [rip]",
            "mov {stack}, rsp",
            "mov {frame}, rbp",
            instruction = out(reg) instruction,
            stack = out(reg) stack,
            frame = out(reg) frame,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { instruction, stack, frame }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn registers() -> Registers {
    let (instruction, stack, frame): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!(
            "adr {instruction}, .",
            "mov {stack}, sp",
            "mov {frame}, x29",
            instruction = out(reg) instruction,
            stack = out(reg) stack,
            frame = out(reg) frame,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { instruction, stack, frame }
}
