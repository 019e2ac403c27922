//! Folded stacks, as Brendan Gregg's flame graph scripts read them: the functions from the outside
//! in, separated by semicolons, and the microseconds that were waited there.

use super::flame::Waits;
use super::{Recording, frames, object};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The waits of all processes: for locks, or all others.
pub fn folded(recording: &mut Recording<'_>, waits: Waits) -> String {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (profile, symbols) in &mut recording.processes {
        for (key, site) in profile.sites.iter().filter(|(key, _)| waits.has(key)) {
            let mut names: Vec<String> = frames(&profile.process, symbols, key.stack)
                .iter()
                .rev()
                .map(|frame| frame.function.replace([';', '\n'], ":"))
                .collect();
            names.push(object(key));
            let sum = all.entry(names.join(";")).or_default();
            *sum = sum.saturating_add(site.nanoseconds);
        }
    }
    let mut text = String::new();
    for (stack, nanoseconds) in all {
        let _ = writeln!(text, "{stack} {}", nanoseconds / 1000);
    }
    text
}
