//! The formats that other tools read.

pub mod flame;
pub mod folded;
pub mod json;
pub mod page;
pub mod pprof;
pub mod trace;

use crate::profile::Profile;
use crate::read::Process;
use crate::sites::Key;
use crate::symbols::{Files, Frame, Symbols};
use std::rc::Rc;

/// A recording to be shown: each process with its symbols, which all formats share.
#[derive(Debug)]
pub struct Recording<'a> {
    pub(crate) processes: Vec<(&'a Profile, Symbols<'a>)>,
}

impl<'a> Recording<'a> {
    /// Of these processes.
    pub fn new(profiles: &'a [Profile], files: &Rc<Files>) -> Self {
        let symbols = |profile: &'a Profile| Symbols::with(&profile.process, files.clone());
        Self { processes: profiles.iter().map(|profile| (profile, symbols(profile))).collect() }
    }
}

/// The frames of a stack, the innermost first, without the drop-in's own.
pub(crate) fn frames(process: &Process, symbols: &mut Symbols<'_>, stack: u32) -> Vec<Frame> {
    addresses(process, symbols, stack)
        .iter()
        .flat_map(|&address| symbols.frames(address).to_vec())
        .skip_while(|frame| is_ours(&frame.module))
        .collect()
}

/// The return addresses of a stack, the innermost first, without the drop-in's own.
pub(crate) fn addresses<'a>(
    process: &'a Process,
    symbols: &mut Symbols<'_>,
    stack: u32,
) -> &'a [u64] {
    let all = process.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
    let mut is_ours = |&address: &u64| {
        let frames = symbols.frames(address);
        frames.iter().all(|frame| is_ours(&frame.module))
    };
    let ours = all.iter().take_while(|address| is_ours(address)).count();
    &all[ours..]
}

fn is_ours(module: &str) -> bool {
    module.starts_with("libwaitword_pthread")
}

/// What was waited for, as a frame at the end of the waiter's stack.
pub(crate) fn object(key: &Key) -> String {
    format!("[{:?}]", key.object)
}
