//! Futex calls that are not seen: those that a program makes by a `syscall` instruction of its own.
//!
//! The drop-in serves what goes through the C library's `syscall`. A word on which one thread calls that and another one the
//! kernel itself would have waiters in two places, and lose wake-ups. Whether two calls mean the same word cannot be told
//! from the code, but whether there are calls of the other sort can:
//!
//! ```text
//!     mov eax, 202        a constant into the register of the number,
//!     ...                 that is neither left nor overwritten on the way
//!     syscall             to the instruction
//! ```
//!
//! A number that comes out of memory, or from another function, is not recognised.

use anyhow::{Context as _, Result};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, SectionKind};
use std::fs;
use std::path::Path;

/// futex, futex_waitv, futex_wake, futex_wait, futex_requeue.
const NUMBERS: [u32; 5] = [202, 449, 454, 455, 456];
/// How far a compiler puts the number from the call.
const FAR: usize = 32;
const MOV_EAX: u8 = 0xb8;

/// What a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Futex calls of its own.
    pub(crate) inlined: usize,
    /// Whether it calls the C library's `syscall`, too.
    pub(crate) calls_syscall: bool,
}

/// # Errors
/// The file cannot be read, or is not what the dynamic loader would load.
pub(crate) fn look_into(path: &Path) -> Result<Found> {
    let data = fs::read(path)?;
    let file: ElfFile64<'_> = ElfFile64::parse(&*data).context("not an ELF file of 64 bits")?;
    let mut inlined = 0;
    for section in file.sections() {
        if section.kind() == SectionKind::Text {
            inlined += calls_in(section.data()?, section.address());
        }
    }
    let imports = file.imports()?;
    Ok(Found {
        inlined,
        calls_syscall: imports.iter().any(|import| import.name() == b"syscall"),
    })
}

fn calls_in(code: &[u8], address: u64) -> usize {
    let is_number = |bytes: &[u8]| NUMBERS.iter().any(|number| bytes == number.to_le_bytes());
    // `mov eax, imm32` may also be the end of `mov r8d, imm32`: what is decoded from there on tells.
    (0..code.len().saturating_sub(5))
        .filter(|&at| code[at] == MOV_EAX && is_number(&code[at + 1..at + 5]))
        .filter(|&at| at == 0 || !has_prefix(code[at - 1]))
        .filter(|&at| leads_to_a_call(&code[at..], address + at as u64))
        .count()
}

/// Whether a byte before `mov eax` makes another register of it.
fn has_prefix(byte: u8) -> bool {
    const REX_WITH_B: [u8; 2] = [0x41, 0x49];
    REX_WITH_B.contains(&byte)
}

fn leads_to_a_call(code: &[u8], address: u64) -> bool {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    for nth in 0..FAR {
        if !decoder.can_decode() {
            return false;
        }
        decoder.decode_out(&mut instruction);
        if instruction.code() == Code::Syscall {
            return true;
        }
        let goes_on = matches!(
            instruction.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        );
        let overwrites = nth > 0
            && instruction.op_count() > 0
            && instruction.op0_register().full_register() == Register::RAX
            && !is_comparison(&instruction);
        if instruction.is_invalid() || !goes_on || overwrites {
            return false;
        }
    }
    false
}

/// Whether it only looks at its first operand.
fn is_comparison(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic;
    matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_that_reaches_a_syscall_instruction_is_a_call() {
        // mov eax, 202; xor r10d, r10d; cmp eax, 1; syscall
        let futex = [
            0xb8, 202, 0, 0, 0, 0x45, 0x31, 0xd2, 0x83, 0xf8, 1, 0x0f, 5, 0xc3,
        ];
        assert_eq!(calls_in(&futex, 0x1000), 1);
        // mov eax, 449; syscall, twice
        let waitv = [0xb8, 0xc1, 1, 0, 0, 0x0f, 5];
        assert_eq!(calls_in(&waitv.repeat(2), 0), 2);
    }

    #[test]
    fn others_are_not() {
        // mov r8d, 202; syscall
        let other_register = [0x41, 0xb8, 202, 0, 0, 0, 0x0f, 5];
        // mov eax, 202; mov eax, 1; syscall
        let overwritten = [0xb8, 202, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0x0f, 5];
        // mov eax, 202; ret; syscall
        let left = [0xb8, 202, 0, 0, 0, 0xc3, 0x0f, 5];
        // mov eax, 203; syscall
        let other_number = [0xb8, 203, 0, 0, 0, 0x0f, 5];
        for code in [
            &other_register[..],
            &overwritten,
            &left,
            &other_number,
            &[],
            &[0xb8, 202],
        ] {
            assert_eq!(calls_in(code, 0), 0, "{code:x?}");
        }
    }
}
