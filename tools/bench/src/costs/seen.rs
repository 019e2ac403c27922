//! What was seen of an operation: decodes its instructions and adds up what they cost.

use super::child::Child;
use super::scene;
use super::table::Costs;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use iced_x86::{Mnemonic, OpAccess, OpKind, Register};
use libc::user_regs_struct as Registers;
use std::collections::{BTreeSet, HashMap};
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt as _;

const LINE: u64 = 64;
/// Length of the longest instruction, in bytes.
const LONGEST: usize = 15;

/// What was seen of an operation so far.
pub(super) struct Seen {
    pub(super) costs: Costs,
    /// Start addresses of the cache lines that were written.
    lines: BTreeSet<u64>,
    /// Addresses that no other CPU wants.
    private: [RangeInclusive<u64>; 2],
    reader: InstructionInfoFactory,
    known: HashMap<u64, Instruction>,
    /// Address of the previous instruction.
    last: u64,
    /// The vDSO, the kernel's own code in the process. It reads the clock, with a few instructions
    /// more or fewer each time.
    vdso: Range<u64>,
}

impl Seen {
    pub(super) fn new(before: &Registers) -> Self {
        Self {
            costs: Costs::default(),
            lines: BTreeSet::new(),
            private: [
                // The stack, and the red zone below it.
                before.rsp - (64 << 10)..=before.rsp + 256,
                // Thread-local storage, and above it the C library's own data of the thread.
                before.fs_base - (16 << 10)..=before.fs_base + (4 << 10),
            ],
            reader: InstructionInfoFactory::new(),
            known: HashMap::new(),
            last: 0,
            vdso: vdso(),
        }
    }

    pub(super) fn instruction_at(&mut self, child: &Child, address: u64) -> Instruction {
        *self.known.entry(address).or_insert_with(|| {
            let mut code = [0; LONGEST];
            let length = child.memory.read_at(&mut code, address).expect("code");
            Decoder::with_ip(64, &code[..length], address, DecoderOptions::NONE).decode()
        })
    }

    pub(super) fn costs(mut self) -> Costs {
        let is_own = |line: &&u64| scene::places().iter().any(|place| place.contains(*line));
        self.costs.own = self.lines.iter().filter(is_own).count() as u64;
        self.costs.other = self.lines.len() as u64 - self.costs.own;
        self.costs
    }

    pub(super) fn add(&mut self, instruction: &Instruction, now: &Registers) {
        // Each repetition is one step.
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let is_again = repeats && self.last == now.rip;
        self.last = now.rip;
        let is_the_kernels = self.vdso.contains(&now.rip);
        self.costs.instructions += u64::from(!is_again && !is_the_kernels);
        let mnemonic = instruction.mnemonic();
        let exchanges_memory =
            mnemonic == Mnemonic::Xchg && instruction.op_kinds().any(|kind| kind == OpKind::Memory);
        let is_atomic =
            instruction.has_lock_prefix() || exchanges_memory || mnemonic == Mnemonic::Mfence;
        self.costs.atomic += u64::from(is_atomic);
        self.costs.calls += u64::from(mnemonic == Mnemonic::Syscall);
        for memory in self.reader.info(instruction).used_memory() {
            if !is_written(memory.access()) {
                continue;
            }
            let register = |register, _, _| value(now, register);
            let address = memory.virtual_address(0, register);
            let address = address.unwrap_or_else(|| panic!("no address for {instruction:?}"));
            if self.private.iter().all(|range| !range.contains(&address)) {
                let last = address + memory.memory_size().size().max(1) as u64 - 1;
                self.lines.extend([address / LINE * LINE, last / LINE * LINE]);
            }
        }
    }
}

/// The address range of the vDSO, the same in this process and its forked children.
fn vdso() -> Range<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split(' ').next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).ok();
    range.and_then(|(start, end)| Some(number(start)?..number(end)?)).unwrap_or_default()
}

/// Whether the CPU needs exclusive ownership of the line. A compare-and-swap does, even if it
/// fails.
fn is_written(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// The value of a register in an address computation.
fn value(now: &Registers, register: Register) -> Option<u64> {
    Some(match register {
        Register::RAX => now.rax,
        Register::RBX => now.rbx,
        Register::RCX => now.rcx,
        Register::RDX => now.rdx,
        Register::RSI => now.rsi,
        Register::RDI => now.rdi,
        Register::RBP => now.rbp,
        Register::RSP => now.rsp,
        Register::R8 => now.r8,
        Register::R9 => now.r9,
        Register::R10 => now.r10,
        Register::R11 => now.r11,
        Register::R12 => now.r12,
        Register::R13 => now.r13,
        Register::R14 => now.r14,
        Register::R15 => now.r15,
        Register::FS => now.fs_base,
        Register::GS => now.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => return None,
    })
}
