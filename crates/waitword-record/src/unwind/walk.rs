//! Walks the calling thread's stack.

use super::processor::{Registers, address, registers};
use super::rules::{Rule, find_mapping, rule};
use core::cell::Cell;
use core::ops::Range;

/// The part of the stack that is known to be mapped: from the stack pointer to here.
#[derive(Debug)]
pub(crate) struct Bounds(Cell<(u64, u64)>);

impl Bounds {
    pub(crate) const fn new() -> Self {
        Self(Cell::new((0, 0)))
    }

    /// The addresses from `stack_pointer` to the end of its mapping.
    fn from(&self, stack_pointer: u64) -> Range<u64> {
        let (start, end) = self.0.get();
        if (start..end).contains(&stack_pointer) {
            return stack_pointer..end;
        }
        // The main thread's stack grows downwards: its mapping begins higher now than later. Then
        // this is done again.
        let mut found = stack_pointer..stack_pointer;
        find_mapping(|mapping| {
            let is_it = (mapping.start..mapping.end).contains(&stack_pointer);
            if is_it {
                self.0.set((mapping.start, mapping.end));
                found.end = mapping.end;
            }
            is_it
        });
        found
    }
}

/// Writes the return addresses of the calling thread's frames, the innermost first, and returns how
/// many. The first one is in this function.
#[inline(never)]
pub(crate) fn walk(bounds: &Bounds, frames: &mut [u64]) -> usize {
    let mut at = registers();
    let stack = bounds.from(at.stack);
    let read = |address: u64| {
        let is_inside = stack.contains(&address) && address % 8 == 0 && stack.end - address >= 8;
        // SAFETY: mapped, since it lies between the stack pointer and the end of the stack's
        // mapping; aligned. What is there may be anything.
        is_inside.then(|| unsafe {
            core::ptr::with_exposed_provenance::<u64>(address as usize).read_volatile()
        })
    };
    let mut len = 0;
    while let Some(frame) = frames.get_mut(len) {
        *frame = at.instruction;
        // A call may be the last instruction of a function: its return address is then in another.
        let place = at.instruction - u64::from(len > 0);
        len += 1;
        let Some(next) = caller(&at, rule(place), read) else {
            break;
        };
        at = next;
    }
    len
}

fn caller(at: &Registers, rule: Rule, read: impl Fn(u64) -> Option<u64>) -> Option<Registers> {
    let (cfa, frame, back) = match rule {
        Rule::Outermost => return None,
        Rule::Frame { from_frame, cfa, frame, back } => {
            let base = if from_frame { at.frame } else { at.stack };
            let cfa = base.wrapping_add_signed(cfa.into());
            let frame = match frame {
                Some(frame) => read(cfa.wrapping_add_signed(frame.into()))?,
                None => at.frame,
            };
            (cfa, frame, cfa.wrapping_add_signed(back.into()))
        }
        // Perhaps code that was generated at run time, with frame pointers.
        Rule::Unknown => (at.frame.wrapping_add(16), read(at.frame)?, at.frame.wrapping_add(8)),
    };
    // Each frame begins above the one before it.
    if cfa <= at.stack {
        return None;
    }
    let instruction = address(read(back)?);
    (instruction != 0).then_some(Registers { instruction, stack: cfa, frame })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack() -> Vec<u64> {
        let (bounds, mut frames) = (Bounds::new(), [0; 64]);
        let len = walk(&bounds, &mut frames);
        frames[..len].to_vec()
    }

    #[inline(never)]
    fn nested(depth: usize, at_the_end: &mut dyn FnMut()) {
        match depth {
            0 => at_the_end(),
            _ => nested(depth - 1, at_the_end),
        }
        // Not a tail call.
        std::hint::black_box(depth);
    }

    #[test]
    fn each_call_has_its_frame() {
        let (mut shallow, mut deep) = (Vec::new(), Vec::new());
        nested(3, &mut || shallow = stack());
        nested(13, &mut || deep = stack());
        assert_eq!(deep.len(), shallow.len() + 10, "{shallow:x?} {deep:x?}");
        // The same frames outside.
        let outside = shallow.len().min(8) - 1;
        let [shallow, deep] = [&shallow, &deep].map(|all| &all[all.len() - outside..]);
        let differ = shallow.iter().zip(deep).filter(|(one, other)| one != other).count();
        assert!(differ <= 1, "{shallow:x?} {deep:x?}");
    }

    #[test]
    fn a_thread_s_outermost_frame_is_found() {
        let in_thread = std::thread::spawn(stack).join().unwrap();
        // The C library's function that starts threads is the last one, or the one before.
        assert!(in_thread.len() > 5 && in_thread.len() < 64, "{in_thread:x?}");
    }

    #[test]
    fn no_more_frames_than_there_is_room_for() {
        let (bounds, mut frames) = (Bounds::new(), [0; 3]);
        assert_eq!(walk(&bounds, &mut frames), 3);
        assert_eq!(walk(&bounds, &mut []), 0);
    }
}
