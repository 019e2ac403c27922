//! Runs an operation in a forked child, an instruction at a time, and reads each instruction before it is run.
//!
//! Only the child's first thread is traced; its other threads run free. A child that hangs is ended by its own alarm
//! (`support::processes`), which is seen here as a status that is not a step's.

use crate::scene;
use crate::support::processes::{Child, fork};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use iced_x86::{Mnemonic, OpAccess, OpKind, Register};
use libc::user_regs_struct as Registers;
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

const LINE: u64 = 64;
/// The child's exit status if it may not be traced.
const REFUSED: i32 = 77;
/// The longest instruction, in bytes.
const LONGEST: usize = 15;
/// More than any operation has.
const MOST_STEPS: usize = 1_000_000;

/// What an operation costs: locked instructions, system calls, lines of its own and other lines that are written.
pub(crate) type Costs = [usize; 4];

/// What was seen of an operation.
struct Seen {
    reader: InstructionInfoFactory,
    locked: usize,
    calls: usize,
    /// The numbers of the cache lines that were written.
    lines: BTreeSet<u64>,
}

/// Has a child `prepare` and then do `operation`, which is watched; `None` if the kernel refuses that.
pub(crate) fn watch(prepare: fn(), operation: fn()) -> Option<Costs> {
    let mut child = fork(|| {
        scene::set();
        prepare();
        // SAFETY: asks to be traced by the parent, which expects it.
        if unsafe { libc::ptrace(libc::PTRACE_TRACEME) } != 0 {
            return REFUSED;
        }
        breakpoint();
        operation();
        breakpoint();
        0
    });
    let status = child.next_status();
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == REFUSED {
        return None;
    }
    expect_trap(status);
    let memory = File::open(format!("/proc/{}/mem", child.id())).expect("the child's memory");
    let before = registers(&child);
    let nobody_elses = [
        // The stack and the red zone below it.
        before.rsp - (64 << 10)..=before.rsp + 256,
        // Thread-local storage, and the C library's own data of the thread above it.
        before.fs_base - (16 << 10)..=before.fs_base + (4 << 10),
    ];
    let mut seen = Seen {
        reader: InstructionInfoFactory::new(),
        locked: 0,
        calls: 0,
        lines: BTreeSet::new(),
    };
    for _ in 0..MOST_STEPS {
        let now = registers(&child);
        let mut code = [0; LONGEST];
        let length = memory.read_at(&mut code, now.rip).expect("code");
        let mut decoder = Decoder::with_ip(64, &code[..length], now.rip, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.code() == Code::Int3 {
            return Some(seen.costs());
        }
        seen.add(&instruction, &now, &nobody_elses);
        request(&child, libc::PTRACE_SINGLESTEP, 0);
        expect_trap(child.next_status());
    }
    panic!("the operation does not end");
}

/// Stops the calling thread, which is traced.
fn breakpoint() {
    // SAFETY: the tracer has it go on behind. No access to memory is moved across.
    unsafe { std::arch::asm!("int3", options(nostack)) };
}

fn expect_trap(status: i32) {
    assert!(
        libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP,
        "the child has hung (signal 14), failed or died: status {status:#x}"
    );
}

fn registers(child: &Child) -> Registers {
    // SAFETY: plain numbers.
    let mut registers: Registers = unsafe { std::mem::zeroed() };
    request(child, libc::PTRACE_GETREGS, (&raw mut registers).addr());
    registers
}

/// A request to ptrace(2) with `data`, which is 0 or the address of what the request fills in.
fn request(child: &Child, request: libc::c_uint, data: usize) {
    // SAFETY: the child is ours and stopped; `data` as above.
    let done = unsafe { libc::ptrace(request, child.id(), 0_usize, data) };
    assert_eq!(done, 0, "ptrace: {}", std::io::Error::last_os_error());
}

impl Seen {
    fn costs(&self) -> Costs {
        let own = scene::place();
        let own_lines = self
            .lines
            .range(own.start() / LINE..=own.end() / LINE)
            .count();
        [
            self.locked,
            self.calls,
            own_lines,
            self.lines.len() - own_lines,
        ]
    }

    fn add(&mut self, instruction: &Instruction, now: &Registers, except: &[RangeInclusive<u64>]) {
        let mnemonic = instruction.mnemonic();
        let exchanges_memory =
            mnemonic == Mnemonic::Xchg && instruction.op_kinds().any(|kind| kind == OpKind::Memory);
        let is_locked =
            instruction.has_lock_prefix() || exchanges_memory || mnemonic == Mnemonic::Mfence;
        self.locked += usize::from(is_locked);
        self.calls += usize::from(mnemonic == Mnemonic::Syscall);
        for memory in self.reader.info(instruction).used_memory() {
            if !is_written(memory.access()) {
                continue;
            }
            let register = |register, _, _| value(now, register);
            let address = memory.virtual_address(0, register);
            let address = address.unwrap_or_else(|| panic!("where does {instruction:?} write?"));
            if except.iter().all(|range| !range.contains(&address)) {
                let last = address + memory.memory_size().size().max(1) as u64 - 1;
                self.lines.extend([address / LINE, last / LINE]);
            }
        }
    }
}

/// Whether a CPU needs the line for itself: a compare-and-swap does, even if it fails.
fn is_written(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// What an address is made of.
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
