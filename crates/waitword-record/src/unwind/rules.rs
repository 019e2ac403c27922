//! How to get from a place in the code to its caller.
//!
//! A rule says where the frame begins (the canonical frame address, or CFA), relative to the stack
//! pointer or to the frame pointer, and where the caller's frame pointer and the return address are
//! saved. (A function that has not saved the return address calls none, so that no walk comes to
//! it.)

use super::maps::{Buffer, LONGEST_LINE, write};
use super::modules::{LONGEST_ID, Modules, Reader};
use super::processor::{FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use gimli::{
    CfaRule, Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection as _,
    UnwindTableRow,
};

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Nothing is known about this place.
    Unknown,
    /// The outermost frame.
    Outermost,
    /// The CFA is at this distance from a register.
    Frame {
        from_frame: bool,
        cfa: i32,
        /// The distance of the saved frame pointer from the CFA; `None` if it is not changed.
        frame: Option<i16>,
        /// The distance of the return address from the CFA: a multiple of 8.
        back: i16,
    },
}

/// A saved frame pointer cannot be here.
const NOT_SAVED: i16 = i16::MAX;

impl Rule {
    /// Never 0, which is an empty place in the cache.
    fn to_bits(self) -> u64 {
        match self {
            Self::Unknown => 1,
            Self::Outermost => 2,
            Self::Frame { from_frame, cfa, frame, back } => {
                let frame = frame.unwrap_or(NOT_SAVED) as u16;
                // The lowest three bits of `back` are 0.
                let low = 3 | u16::from(from_frame) << 2 | back as u16 & !7;
                u64::from(low) | u64::from(frame) << 16 | u64::from(cfa as u32) << 32
            }
        }
    }

    fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            2 => Self::Outermost,
            3 => Self::Frame {
                from_frame: bits & 4 != 0,
                cfa: (bits >> 32) as u32 as i32,
                frame: Some((bits >> 16) as u16 as i16).filter(|frame| *frame != NOT_SAVED),
                back: (bits as u16 & !7) as i16,
            },
            _ => Self::Unknown,
        }
    }
}

/// 64 KiB: the rules of 4096 places.
const PLACES: usize = 4096;

/// A place in the cache. Two threads may write it at once, and a third may read a half of each. So
/// the address is stored combined with the rule: halves that do not belong together do not match.
struct Cached {
    rule: AtomicU64,
    address_and_rule: AtomicU64,
}

static CACHE: [Cached; PLACES] =
    [const { Cached { rule: AtomicU64::new(0), address_and_rule: AtomicU64::new(0) } }; PLACES];

/// The rule for this address.
#[inline]
pub(super) fn rule(address: u64) -> Rule {
    // Fibonacci hashing.
    let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let cached = &CACHE[(hash >> (64 - PLACES.ilog2())) as usize];
    // Relaxed: the check below finds a mixture, and there is no other data.
    let bits = cached.rule.load(Ordering::Relaxed);
    if bits != 0 && cached.address_and_rule.load(Ordering::Relaxed) ^ bits == address {
        return Rule::from_bits(bits);
    }
    look_up(address, cached)
}

#[cold]
#[inline(never)]
fn look_up(address: u64, cached: &Cached) -> Rule {
    let Some(rule) = Tables::with(|tables| tables.rule(address).unwrap_or(Rule::Unknown)) else {
        return Rule::Unknown;
    };
    let bits = rule.to_bits();
    cached.rule.store(bits, Ordering::Relaxed);
    cached.address_and_rule.store(address ^ bits, Ordering::Relaxed);
    rule
}

/// Where a gimli context keeps its rows.
struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

/// What one look-up at a time uses.
struct Tables {
    modules: Modules,
    buffer: Buffer,
    context: Option<UnwindContext<usize, Storage>>,
}

/// A module was found.
static NEW_MODULES: AtomicBool = AtomicBool::new(false);
static IN_USE: AtomicBool = AtomicBool::new(false);
static TABLES: Shared = Shared(UnsafeCell::new(Tables {
    modules: Modules::new(),
    buffer: Buffer::new(),
    context: None,
}));

struct Shared(UnsafeCell<Tables>);

// SAFETY: the contents are used only by the thread that has set `IN_USE`.
unsafe impl Sync for Shared {}

impl Tables {
    /// Calls `work` with the tables. `None` if another thread uses them for long (30 ms and
    /// more), or the thread that this handler has interrupted does.
    fn with<R>(work: impl FnOnce(&mut Self) -> R) -> Option<R> {
        /// Some 10 µs, then some yields, then naps of 50 µs: reading the maps of a large program
        /// takes long, and that thread may have lost its CPU, even to this one. Each takes its turn
        /// once for each place in the code, so that this is rare.
        const LOOKS: usize = 1000;
        const YIELDS_FROM: usize = 300;
        const NAPS_FROM: usize = 400;
        const NAP: core::time::Duration = core::time::Duration::from_micros(50);
        // Acquire and Release: what one thread writes into the tables is visible to the next one.
        let is_mine = (0..LOOKS).any(|look| {
            let is_mine = !IN_USE.swap(true, Ordering::Acquire);
            match look {
                _ if is_mine => {}
                ..YIELDS_FROM => core::hint::spin_loop(),
                YIELDS_FROM..NAPS_FROM => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
            is_mine
        });
        if !is_mine {
            return None;
        }
        // SAFETY: `IN_USE` was false and is true now, so no other reference exists until it is
        // false again. `work` does not come back here: it calls nothing of the program's.
        let result = work(unsafe { &mut *TABLES.0.get() });
        IN_USE.store(false, Ordering::Release);
        Some(result)
    }

    fn rule(&mut self, address: u64) -> Option<Rule> {
        let known = self.modules.len();
        let module = self.modules.find(address, &mut self.buffer)?;
        if self.modules.len() != known {
            NEW_MODULES.store(true, Ordering::Relaxed);
        }
        let in_file = address.wrapping_sub(module.bias());
        let (header, frames, bases) = module.tables();
        let header = header.parse(&bases, 8).ok()?;
        let context = self.context.get_or_insert_with(UnwindContext::new_in);
        let row = header
            .table()?
            .unwind_info_for_address(
                &frames,
                &bases,
                context,
                in_file,
                gimli::EhFrame::<Reader>::cie_from_offset,
            )
            .ok()?;
        let back = match row.register(RETURN_ADDRESS) {
            RegisterRule::Undefined => return Some(Rule::Outermost),
            RegisterRule::Offset(offset) if offset % 8 == 0 => i16::try_from(offset).ok()?,
            _ => return None,
        };
        let &CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return None;
        };
        let frame = match row.register(FRAME_POINTER) {
            RegisterRule::Undefined | RegisterRule::SameValue => None,
            RegisterRule::Offset(offset) => Some(i16::try_from(offset).ok()?),
            _ => return None,
        };
        let from_frame = match register {
            FRAME_POINTER => true,
            STACK_POINTER => false,
            _ => return None,
        };
        Some(Rule::Frame { from_frame, cfa: i32::try_from(offset).ok()?, frame, back })
    }
}

/// Whether a module was found since this was last asked.
pub(crate) fn has_new_modules() -> bool {
    NEW_MODULES.load(Ordering::Relaxed) && NEW_MODULES.swap(false, Ordering::Relaxed)
}

/// Appends a line `# build-id HEX FILE` to an open file for each module that is known and has a
/// build ID. Returns whether that was possible.
pub(crate) fn write_build_ids(file: i32) -> bool {
    const BEGIN: &[u8] = b"# build-id ";
    let mut line = [0; BEGIN.len() + 2 * LONGEST_ID + 1 + LONGEST_LINE + 1];
    line[..BEGIN.len()].copy_from_slice(BEGIN);
    let mut is_written = true;
    let done = Tables::with(|tables| {
        tables.modules.build_ids(&mut tables.buffer, |build_id, name| {
            let mut len = BEGIN.len();
            let digits = build_id.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
            let digits = digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]);
            let text = digits.chain([b' ']).chain(name.iter().copied()).chain([b'\n']);
            for (to, letter) in line[BEGIN.len()..].iter_mut().zip(text) {
                *to = letter;
                len += 1;
            }
            is_written &= write(file, &line[..len]);
        });
    });
    done.is_some() && is_written
}

/// The modules that are known are new to another recording of this process.
pub(crate) fn write_modules_again() {
    NEW_MODULES.store(true, Ordering::Relaxed);
}

/// In a forked child, before any thread of it walks: what another thread of the parent was doing
/// does not count.
pub(crate) fn forget() {
    IN_USE.store(false, Ordering::Relaxed);
    let _ = Tables::with(|tables| {
        tables.modules = Modules::new();
        tables.context = None;
    });
}

/// Calls `each` with the mappings of the process until it returns true; false if it never does, or
/// if another thread reads them now.
pub(super) fn find_mapping(each: impl FnMut(super::maps::Mapping<'_>) -> bool) -> bool {
    Tables::with(|tables| tables.buffer.find(each)).unwrap_or(false)
}

/// Calls `work` while another thread uses the tables, and checks that it does until the end.
#[cfg(test)]
pub(crate) fn while_in_use(work: impl FnOnce()) {
    let at_both_ends = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while Tables::with(|_| {
                at_both_ends.wait();
                at_both_ends.wait();
            })
            .is_none()
            {}
        });
        at_both_ends.wait();
        work();
        let is_in_use = IN_USE.load(Ordering::Relaxed);
        at_both_ends.wait();
        assert!(is_in_use, "taken from a thread that uses it");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back_from_their_bits() {
        for rule in [
            Rule::Unknown,
            Rule::Outermost,
            Rule::Frame { from_frame: true, cfa: 16, frame: Some(-16), back: -8 },
            Rule::Frame { from_frame: false, cfa: -8, frame: None, back: -8 },
            Rule::Frame { from_frame: false, cfa: i32::MAX, frame: Some(i16::MIN), back: 0 },
            Rule::Frame { from_frame: true, cfa: 0, frame: Some(-8), back: i16::MIN },
        ] {
            assert_ne!(rule.to_bits(), 0);
            assert_eq!(Rule::from_bits(rule.to_bits()), rule);
        }
    }

    #[test]
    fn a_place_without_code_has_no_rule() {
        assert_eq!(rule(0), Rule::Unknown);
        assert_eq!(rule(&raw const CACHE as u64), Rule::Unknown);
        assert_eq!(rule(u64::MAX), Rule::Unknown);
    }
}
