//! Folded stacks, as Brendan Gregg's flame graph scripts read them: the functions from the outside
//! in, separated by semicolons, and the microseconds that were waited there.

use super::{frames, object};
use crate::read::Process;
use crate::sites::sites;
use crate::symbols::Symbols;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The waits for locks of all processes.
pub fn folded(processes: &[Process]) -> String {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for process in processes {
        let mut symbols = Symbols::of(process);
        for (key, site) in sites(process) {
            if !key.object.is_lock() {
                continue;
            }
            let mut names: Vec<String> = frames(process, &mut symbols, key.stack)
                .iter()
                .rev()
                .map(|frame| frame.function.replace([';', '\n'], ":"))
                .collect();
            names.push(object(&key));
            *all.entry(names.join(";")).or_default() += site.nanoseconds / 1000;
        }
    }
    let mut text = String::new();
    for (stack, microseconds) in all {
        let _ = writeln!(text, "{stack} {microseconds}");
    }
    text
}
