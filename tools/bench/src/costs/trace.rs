//! Runs an operation in a forked child, one instruction at a time, and decodes each instruction
//! before it runs.
//!
//! Only the child's first thread is traced; its other threads run freely. Each step is a stop, and
//! the kernel counts each stop as a voluntary context switch. The switches that remain after
//! subtracting the steps are the operation's own sleeps.
//!
//! A child that hangs is ended by its own alarm; the tracer sees a status that is not a step's.

use super::scene;
use super::table::Costs;
use core::cell::Cell;
use core::fmt;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use iced_x86::{Mnemonic, OpAccess, OpKind, Register};
use libc::user_regs_struct as Registers;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt;

const LINE: u64 = 64;
/// Length of the longest instruction, in bytes.
const LONGEST: usize = 15;
/// More steps than any operation takes unless it spins forever.
const MOST_STEPS: u64 = 200_000;
/// Time limit for everything a child does, in seconds.
const MOST_SECONDS: u32 = 50;
/// The child's exit status if tracing is not allowed.
const REFUSED: i32 = 77;
/// The child's exit status if a thread that should sleep does not.
pub(super) const AWAKE: i32 = 78;

/// Why an operation was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing can be counted on this machine.
    Refused(String),
    /// A waiter for this lock does not sleep, or not in a futex call.
    Awake,
    /// The operation does not end.
    Endless,
    /// Something went wrong; contains the child's status.
    Died(i32),
}

impl Failure {
    /// The failure of a child that has ended, or that stopped where it should not.
    fn of(status: i32) -> Self {
        let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        match exited {
            Some(REFUSED) => Self::Refused("this kernel refuses ptrace".to_owned()),
            Some(AWAKE) => Self::Awake,
            _ => Self::Died(status),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "{why}"),
            Self::Awake => write!(f, "a waiter does not sleep in a futex call"),
            Self::Endless => write!(f, "it does not end within {MOST_STEPS} instructions"),
            Self::Died(status) => {
                write!(
                    f,
                    "the child hung (signal 14), failed or died: status {status:#x}"
                )
            }
        }
    }
}

/// Forks a child that does `prepare` and then `operation`, and watches the operation.
pub(super) fn watch(prepare: fn(), operation: fn()) -> Result<Costs, Failure> {
    let child = Child::fork(|| {
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
    })?;
    child.expect_trap()?;
    let before = child.registers();
    let switches = child.voluntary_switches();
    let mut seen = Seen::new(&before);
    let mut steps = 0;
    loop {
        let now = child.registers();
        let instruction = seen.instruction_at(&child, now.rip);
        if instruction.code() == Code::Int3 {
            break;
        }
        if steps == MOST_STEPS {
            return Err(Failure::Endless);
        }
        seen.add(&instruction, &now);
        child.step();
        child.expect_trap()?;
        steps += 1;
    }
    seen.costs.switches = child.voluntary_switches() - switches - steps;
    Ok(seen.costs())
}

/// Stops the calling thread, which is traced.
fn breakpoint() {
    // SAFETY: the tracer resumes the thread after the instruction. The compiler moves no memory
    // access across the asm block.
    unsafe { std::arch::asm!("int3", options(nostack)) };
}

/// A forked process. It is killed when this value is dropped.
struct Child {
    id: i32,
    memory: File,
    status: File,
    is_gone: Cell<bool>,
}

impl Child {
    /// Forks a process that runs `body` and exits with its result.
    fn fork(body: impl FnOnce() -> i32) -> Result<Self, Failure> {
        // SAFETY: the child calls `body`, which starts threads only through the C library, and
        // leaves by `_exit`.
        let id = unsafe { libc::fork() };
        if id == 0 {
            // The child must not outlive us, and must not get signals from the terminal.
            // SAFETY: system calls that take no memory.
            unsafe {
                libc::alarm(MOST_SECONDS);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::setsid();
            }
            let body = std::panic::AssertUnwindSafe(body);
            let status = std::panic::catch_unwind(body).unwrap_or(101);
            // SAFETY: `_exit` runs no cleanup of the copied process.
            unsafe { libc::_exit(status) }
        }
        if id < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::Refused(format!("fork: {error}")));
        }
        let open = |file: &str| File::open(format!("/proc/{id}/{file}"));
        match (open("mem"), open("status")) {
            (Ok(memory), Ok(status)) => Ok(Self {
                id,
                memory,
                status,
                is_gone: Cell::new(false),
            }),
            (Err(error), _) | (_, Err(error)) => {
                let status = end(id);
                let why = format!("cannot read a child's /proc: {error}");
                // The child may already have ended.
                Err(match libc::WIFEXITED(status) {
                    true => Failure::of(status),
                    false => Failure::Refused(why),
                })
            }
        }
    }

    /// Waits until the child has made a step.
    fn expect_trap(&self) -> Result<(), Failure> {
        let mut status = 0;
        // SAFETY: the process is our child and has not been reaped.
        let heard = unsafe { libc::waitpid(self.id, &raw mut status, 0) };
        assert_eq!(heard, self.id, "{}", std::io::Error::last_os_error());
        if libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP {
            return Ok(());
        }
        self.is_gone.set(!libc::WIFSTOPPED(status));
        Err(Failure::of(status))
    }

    fn registers(&self) -> Registers {
        // SAFETY: all fields are integers, for which zeros are valid.
        let mut registers: Registers = unsafe { core::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, (&raw mut registers).addr());
        registers
    }

    fn step(&self) {
        self.request(libc::PTRACE_SINGLESTEP, 0);
    }

    /// Makes a ptrace(2) request with `data`, which is 0 or the address that the request fills in.
    fn request(&self, request: libc::c_uint, data: usize) {
        // SAFETY: the child is ours and stopped; `data` is as described above.
        let done = unsafe { libc::ptrace(request, self.id, 0_usize, data) };
        assert_eq!(done, 0, "ptrace: {}", std::io::Error::last_os_error());
    }

    /// How often the child's first thread has given up its CPU voluntarily.
    fn voluntary_switches(&self) -> u64 {
        let mut text = [0; 8192];
        let length = self.status.read_at(&mut text, 0).expect("a child's status");
        let text = String::from_utf8_lossy(&text[..length]);
        let mut lines = text.lines();
        let number = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let number = number.and_then(|number| number.trim().parse().ok());
        number.expect("the kernel counts context switches")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_gone.get() {
            end(self.id);
        }
    }
}

/// Kills a child that has not been waited for, and returns its status.
fn end(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the process is our child and has not been reaped, so the ID is still its own.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &raw mut status, 0);
    }
    status
}

/// What was seen of an operation so far.
struct Seen {
    costs: Costs,
    /// Start addresses of the cache lines that were written.
    lines: BTreeSet<u64>,
    /// Addresses that no other CPU wants.
    nobody_elses: [RangeInclusive<u64>; 2],
    reader: InstructionInfoFactory,
    known: HashMap<u64, Instruction>,
    /// Address of the previous instruction.
    last: u64,
    /// The vDSO, the kernel's own code in the process. It reads the clock, with a few instructions
    /// more or fewer each time.
    vdso: Range<u64>,
}

impl Seen {
    fn new(before: &Registers) -> Self {
        Self {
            costs: Costs::default(),
            lines: BTreeSet::new(),
            nobody_elses: [
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

    fn instruction_at(&mut self, child: &Child, address: u64) -> Instruction {
        *self.known.entry(address).or_insert_with(|| {
            let mut code = [0; LONGEST];
            let length = child.memory.read_at(&mut code, address).expect("code");
            Decoder::with_ip(64, &code[..length], address, DecoderOptions::NONE).decode()
        })
    }

    fn costs(mut self) -> Costs {
        let is_own = |line: &&u64| scene::places().iter().any(|place| place.contains(*line));
        self.costs.own = self.lines.iter().filter(is_own).count() as u64;
        self.costs.other = self.lines.len() as u64 - self.costs.own;
        self.costs
    }

    fn add(&mut self, instruction: &Instruction, now: &Registers) {
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
            if self
                .nobody_elses
                .iter()
                .all(|range| !range.contains(&address))
            {
                let last = address + memory.memory_size().size().max(1) as u64 - 1;
                self.lines
                    .extend([address / LINE * LINE, last / LINE * LINE]);
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
    range
        .and_then(|(start, end)| Some(number(start)?..number(end)?))
        .unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchdog;
    use scene::IT;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst, fence};

    /// The costs of an operation; `None`, after printing a message, if nothing can be counted.
    fn costs(operation: fn()) -> Option<Costs> {
        let _guard = watchdog::guard("costs, trace");
        if crate::workload::allowed_cpus().len() < 2 {
            println!("skipped: one CPU");
            return None;
        }
        match watch(|| (), operation) {
            Ok(costs) => Some(costs),
            Err(Failure::Refused(why)) => {
                println!("skipped: {why}");
                None
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Atomic operations, system calls, switches, own lines, other lines.
    fn expect(operation: fn(), columns: [u64; 5]) {
        if let Some(costs) = costs(operation) {
            let seen = [
                costs.atomic,
                costs.calls,
                costs.switches,
                costs.own,
                costs.other,
            ];
            assert_eq!(seen, columns);
        }
    }

    #[test]
    fn plain_and_atomic_accesses_are_told_apart() {
        expect(|| (), [0, 0, 0, 0, 0]);
        expect(
            || IT.word.store(IT.word.load(Relaxed), Relaxed),
            [0, 0, 0, 1, 0],
        );
        expect(|| _ = IT.word.fetch_add(1, Relaxed), [1, 0, 0, 1, 0]);
        expect(|| _ = IT.word.swap(1, Relaxed), [1, 0, 0, 1, 0]);
        expect(
            || _ = IT.word.compare_exchange(7, 8, Relaxed, Relaxed),
            [1, 0, 0, 1, 0],
        );
        expect(|| fence(SeqCst), [1, 0, 0, 0, 0]);
    }

    #[test]
    fn each_line_is_counted_once_and_its_owner_known() {
        static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
        let twice_on_one_line_and_once_elsewhere = || {
            IT.word.store(1, Relaxed);
            IT.word.store(2, Relaxed);
            IT.other_word.store(1, Relaxed);
            ELSEWHERE.store(1, Relaxed);
        };
        expect(twice_on_one_line_and_once_elsewhere, [0, 0, 0, 2, 1]);
    }

    #[test]
    fn a_system_call_is_counted_and_a_sleep_in_one_is_a_switch() {
        expect(|| _ = std::os::unix::process::parent_id(), [0, 1, 0, 0, 0]);
        let sleep = || {
            let time = libc::timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            };
            // SAFETY: a valid time; the remaining time is not requested.
            unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0_usize) };
        };
        expect(sleep, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn a_repeated_instruction_is_one_instruction() {
        fn fill<const BYTES: usize>() {
            let mut bytes = [0_u8; BYTES];
            // SAFETY: writes zeros to exactly these bytes; the calling convention guarantees that
            // the direction flag is clear.
            unsafe {
                std::arch::asm!(
                    "rep stosb",
                    inout("rcx") BYTES => _,
                    inout("rdi") bytes.as_mut_ptr() => _,
                    in("al") 0_u8,
                    options(nostack),
                );
            }
            std::hint::black_box(bytes[0]);
        }
        let steps = |operation| costs(operation).map(|costs| costs.instructions);
        // The array's own zeros take instructions, too, but equally many for both.
        assert_eq!(steps(fill::<17>), steps(fill::<31>));
    }

    #[test]
    fn what_does_not_end_or_dies_is_told() {
        let _guard = watchdog::guard("costs, trace");
        if costs(|| ()).is_none() {
            return;
        }
        let endless = || {
            while IT.word.load(Relaxed) == 0 {
                std::hint::spin_loop();
            }
        };
        assert_eq!(watch(|| (), endless), Err(Failure::Endless));
        // SAFETY: ends the child.
        let exits = || unsafe { libc::_exit(7) };
        assert_eq!(watch(|| (), exits), Err(Failure::Died(7 << 8)));
        assert_eq!(watch(exits, || ()), Err(Failure::Died(7 << 8)));
        // SAFETY: as above.
        let never_asleep = || unsafe { libc::_exit(AWAKE) };
        assert_eq!(watch(never_asleep, || ()), Err(Failure::Awake));
    }
}
