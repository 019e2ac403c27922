//! The formats that other tools read.

pub mod folded;
pub mod json;
pub mod pprof;

use crate::read::Process;
use crate::sites::Key;
use crate::symbols::{Frame, Symbols};

/// The frames of a stack, the innermost first, without the drop-in's own.
pub(crate) fn frames(process: &Process, symbols: &mut Symbols<'_>, stack: u32) -> Vec<Frame> {
    let addresses = process.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
    let all = addresses.iter().flat_map(|&address| symbols.frames(address).to_vec());
    all.skip_while(|frame| frame.module.starts_with("libwaitword_pthread")).collect()
}

/// What was waited for, as a frame at the end of the waiter's stack.
pub(crate) fn object(key: &Key) -> String {
    format!("[{:?}]", key.object)
}
