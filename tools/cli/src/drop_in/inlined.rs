//! Finds the futex calls that the drop-in does not see: those that a program makes with its own
//! `syscall` instructions.
//!
//! The drop-in serves calls that go through the C library's `syscall`. If one thread uses that
//! function on a word and another thread calls the kernel directly on the same word, the waiters
//! are in two places and wake-ups are lost. The code does not show whether two calls use the same
//! word, but it does show whether there are direct calls:
//!
//! ```text
//!     mov ebp, 202        a futex call's number is loaded into a register, which is
//!     ...                 neither overwritten nor left behind by a jump,
//!     mov eax, ebp        copied to the register of the system call's number,
//!     syscall             and used
//! ```
//!
//! Calls through the C library's `syscall` are found in the same way: there the constant is the
//! first argument (`edi`) of a function call, in a file that imports `syscall`.
//!
//! A number that is read from memory, or comes from another function, is not recognised.

use anyhow::{Context as _, Result};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, SectionKind};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// futex, futex_waitv, futex_wake, futex_wait, futex_requeue.
const NUMBERS: [u32; 5] = [202, 449, 454, 455, 456];
/// How many instructions a number is followed for.
const FAR: usize = 64;

/// The futex calls in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Futex calls by its own instructions.
    pub(crate) inlined: usize,
    /// Futex calls through the C library's `syscall`.
    pub(crate) by_function: usize,
}

/// Counts the futex calls in a file.
///
/// # Errors
/// The file cannot be read, or is not one that the dynamic loader would load.
pub(crate) fn look_into(path: &Path) -> Result<Found> {
    let data = fs::read(path)?;
    let file: ElfFile64<'_> = ElfFile64::parse(&*data).context("not an ELF file of 64 bits")?;
    let imports = file.imports()?;
    let imports_syscall = imports.iter().any(|import| import.name() == b"syscall");
    let mut found = Found::default();
    for section in file.sections() {
        if section.kind() == SectionKind::Text {
            let calls = Calls::of(section.data()?, section.address());
            found.inlined += calls.inlined.len();
            found.by_function += calls.by_function.len() * usize::from(imports_syscall);
        }
    }
    Ok(found)
}

/// The addresses of the instructions that one of the numbers reaches.
#[derive(Default)]
struct Calls {
    /// `syscall` instructions, with the number in its register.
    inlined: BTreeSet<u64>,
    /// Function calls with the number as the first argument.
    by_function: BTreeSet<u64>,
}

impl Calls {
    fn of(code: &[u8], address: u64) -> Self {
        let mut calls = Self::default();
        for at in 0..code.len().saturating_sub(5) {
            // `mov r32, imm32`; or `mov r/m, imm32`, which has a separate byte for the register.
            let number = match code[at..] {
                [0xb8..=0xbf, ..] => code.get(at + 1..at + 5),
                [0xc7, 0xc0..=0xc7, ..] => code.get(at + 2..at + 6),
                _ => None,
            };
            let is_number =
                |bytes: &[u8]| NUMBERS.iter().any(|number| bytes == number.to_le_bytes());
            if !number.is_some_and(is_number) {
                continue;
            }
            // The byte before may be a prefix that selects another register.
            let start = match at > 0 && code[at - 1] & 0xf1 == 0x41 {
                true => at - 1,
                false => at,
            };
            calls.follow(&code[start..], address + start as u64);
        }
        calls
    }

    /// The first instruction in `code` loads a number into a register. Follows the number to the
    /// calls that it reaches.
    fn follow(&mut self, code: &[u8], address: u64) {
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        decoder.decode_out(&mut instruction);
        let mut holders = vec![instruction.op0_register().full_register()];
        for _ in 0..FAR {
            if holders.is_empty() || !decoder.can_decode() {
                return;
            }
            decoder.decode_out(&mut instruction);
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::ConditionalBranch => {}
                FlowControl::Call | FlowControl::IndirectCall => {
                    if instruction.code() == Code::Syscall {
                        if holders.contains(&Register::RAX) {
                            self.inlined.insert(instruction.ip());
                        }
                        holders.retain(|&register| register != Register::RAX);
                    } else {
                        if holders.contains(&Register::RDI) {
                            self.by_function.insert(instruction.ip());
                        }
                        holders.retain(is_kept_by_functions);
                    }
                    continue;
                }
                _ => return,
            }
            let copies = instruction.mnemonic() == Mnemonic::Mov
                && instruction.op1_kind() == OpKind::Register
                && holders.contains(&instruction.op1_register().full_register());
            if instruction.op0_kind() == OpKind::Register && !is_comparison(&instruction) {
                let written = instruction.op0_register().full_register();
                holders.retain(|&register| register != written);
                if copies {
                    holders.push(written);
                }
            }
        }
    }
}

/// Whether a called function preserves this register.
fn is_kept_by_functions(register: &Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX};
    [RBX, RBP, R12, R13, R14, R15].contains(register)
}

/// Whether the instruction only reads its first operand.
fn is_comparison(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls_in(code: &[u8], address: u64) -> usize {
        Calls::of(code, address).inlined.len()
    }

    #[test]
    fn a_constant_that_reaches_a_syscall_instruction_is_a_call() {
        // mov eax, 202; xor r10d, r10d; cmp eax, 1; syscall
        let futex = [0xb8, 202, 0, 0, 0, 0x45, 0x31, 0xd2, 0x83, 0xf8, 1, 0x0f, 5, 0xc3];
        assert_eq!(calls_in(&futex, 0x1000), 1);
        // mov eax, 449; syscall, twice
        let waitv = [0xb8, 0xc1, 1, 0, 0, 0x0f, 5];
        assert_eq!(calls_in(&waitv.repeat(2), 0), 2);
        // mov r8d, 202; mov eax, r8d; syscall
        let by_way_of_another = [0x41, 0xb8, 202, 0, 0, 0, 0x44, 0x89, 0xc0, 0x0f, 5];
        assert_eq!(calls_in(&by_way_of_another, 0x1000), 1);
        // mov rax, 202; syscall
        let long = [0x48, 0xc7, 0xc0, 202, 0, 0, 0, 0x0f, 5];
        assert_eq!(calls_in(&long, 0x1000), 1);
        // mov ebp, 202; call; mov eax, ebp; syscall; mov eax, ebp; syscall
        let kept = [0xbd, 202, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x89, 0xe8, 0x0f, 5, 0x89, 0xe8, 0x0f, 5];
        assert_eq!(calls_in(&kept, 0x1000), 2);
    }

    #[test]
    fn others_are_not() {
        // mov r8d, 202; syscall
        let other_register = [0x41, 0xb8, 202, 0, 0, 0, 0x0f, 5];
        // mov eax, 202; mov eax, 1; syscall
        let overwritten = [0xb8, 202, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0x0f, 5];
        // mov eax, 202; ret; syscall
        let left = [0xb8, 202, 0, 0, 0, 0xc3, 0x0f, 5];
        // mov eax, 202; call; syscall
        let clobbered = [0xb8, 202, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x0f, 5];
        // mov edi, 202; xor eax, eax; call: the C library's `syscall`
        let function = [0xbf, 202, 0, 0, 0, 0x31, 0xc0, 0xe8, 0, 0, 0, 0, 0x0f, 5];
        // mov eax, 203; syscall
        let other_number = [0xb8, 203, 0, 0, 0, 0x0f, 5];
        for code in [
            &other_register[..],
            &overwritten,
            &left,
            &clobbered,
            &function,
            &other_number,
            &[],
            &[0xb8, 202],
        ] {
            assert_eq!(calls_in(code, 0), 0, "{code:x?}");
        }
        assert_eq!(Calls::of(&function, 0).by_function.len(), 1);
        assert_eq!(Calls::of(&clobbered, 0).by_function.len(), 0);
    }
}
