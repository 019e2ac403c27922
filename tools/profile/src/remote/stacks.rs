//! The stack of a thread of another process.

use super::memory::Memory;
use super::modules::Modules;
use super::registers::Registers;
use super::threads::{Call, Thread};
use framehop::Unwinder as _;
#[cfg(target_arch = "aarch64")]
use framehop::aarch64::UnwindRegsAarch64;
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::UnwindRegsX86_64;
use std::collections::HashMap;
use waitword_record::format::MOST_FRAMES;

const PAGE: u64 = 4096;
/// No address of a stack or of code: a function that needs the register ends the stack.
const UNKNOWN: u64 = 8;

/// The return addresses of a thread, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// As in a recording: the instruction before each is in the function.
    pub frames: Vec<u64>,
    /// Whether the last one is the thread's outermost function.
    pub is_complete: bool,
}

/// Unwinds from where the thread sleeps, or from its registers.
pub(super) fn unwind(
    memory: &Memory,
    modules: &mut Modules,
    thread: &Thread,
    registers: Option<Registers>,
) -> Stack {
    let registers = match (registers, thread.call) {
        (Some(registers), _) => registers,
        (None, Call::In { sp, pc, .. } | Call::Outside { sp, pc }) => Registers {
            sp,
            pc,
            bp: UNKNOWN,
            #[cfg(target_arch = "aarch64")]
            link: UNKNOWN,
        },
        (None, Call::Running) => return Stack::default(),
    };
    let mut pages: HashMap<u64, Option<Vec<u8>>> = HashMap::new();
    let mut word = |address: u64| {
        let (page, at) = (address / PAGE, (address % PAGE) as usize);
        let bytes = pages.entry(page).or_insert_with(|| {
            let mut bytes = vec![0; PAGE as usize];
            memory.read(page * PAGE, &mut bytes).then_some(bytes)
        });
        let bytes = bytes.as_ref().and_then(|bytes| bytes.get(at..at + 8));
        bytes.and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes).ok_or(())
    };
    let is_code = |address: u64| modules.code.iter().any(|(a, b)| (*a..*b).contains(&address));
    let (pc, registers) = (registers.pc, for_unwinder(registers));
    let mut frames = modules.unwinder.iter_frames(pc, registers, &mut modules.cache, &mut word);
    let mut stack = Stack::default();
    while stack.frames.len() < MOST_FRAMES {
        match frames.next() {
            Ok(Some(frame)) if is_code(frame.address_for_lookup()) => {
                stack.frames.push(frame.address_for_lookup() + 1);
            }
            Ok(None) => {
                stack.is_complete = true;
                break;
            }
            Ok(Some(_)) | Err(_) => break,
        }
    }
    stack
}

#[cfg(target_arch = "x86_64")]
fn for_unwinder(Registers { sp, pc, bp }: Registers) -> UnwindRegsX86_64 {
    UnwindRegsX86_64::new(pc, sp, bp)
}

#[cfg(target_arch = "aarch64")]
fn for_unwinder(Registers { sp, bp, link, .. }: Registers) -> UnwindRegsAarch64 {
    UnwindRegsAarch64::new(link, sp, bp)
}
