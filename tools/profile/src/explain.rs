//! Says in plain sentences why threads waited, with the evidence, and what to do about it.
//!
//! Each kind of finding has a `Detector` in a file of its own. It sees each wait once, in any
//! order of the threads, keeps sums in bounded memory (`sums.rs`), and judges at the end. So a
//! recording of any length is read once.
//!
//! # When something is a finding
//!
//! A detector needs evidence of its own kind; its file says which, and why. In addition a cause has
//! to matter (`Run::matters`): it cost at least 1 % of the length of the run, in at least ten
//! waits, or in fewer that took 10 % of it. Below 1 % the cure would hardly be measurable: two runs
//! of one program differ by more. From fewer than ten waits no share can be told (ten independent
//! ones determine it to about a third), unless they are long.

mod asleep;
mod chain;
mod computes;
mod convoy;
mod herd;
mod in_vain;
mod inversion;
mod kind;
mod order;
mod preempted;
mod starved;
mod sums;
#[cfg(test)]
mod tests;
mod text;
mod unfair;
mod writers;

pub use kind::Kind;
pub use text::text;

use crate::read::{self, Fold, Process};
use crate::text::{count, escaped};
use anyhow::Result;
use std::collections::HashMap;
use std::path::Path;
use waitword_record::format::{Causes, Object, Priority, Turns, Wait};

/// Sees the waits of a process, and finds one kind of cause.
trait Detector {
    /// A wait of this thread.
    fn add(&mut self, thread: u32, object: Object, wait: &Wait);

    /// What was found.
    fn findings(&self, run: &Run<'_>) -> Vec<Finding>;
}

/// A cause of lost time, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The time that it cost, in nanoseconds.
    pub lost: u64,
    /// The evidence.
    pub said: Vec<Line>,
    /// What to do about it.
    pub advice: &'static str,
}

/// A sentence, or one that ends with a place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The text.
    pub text: String,
    /// The stack of the place.
    pub stack: Option<u32>,
}

impl Line {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), stack: None }
    }

    fn at(text: impl Into<String>, stack: u32) -> Self {
        Self { text: text.into(), stack: Some(stack) }
    }
}

/// What the detectors know of the whole run when they judge.
#[derive(Clone, Copy, Debug)]
struct Run<'a> {
    /// Its length in nanoseconds.
    length: u64,
    /// How many threads waited.
    waiters: usize,
    /// Whether what the holders did is from sums in `/proc`.
    has_sums: bool,
    /// The names of threads.
    names: &'a HashMap<u32, String>,
    /// Their priorities.
    priorities: &'a HashMap<u32, Priority>,
    /// How often they took locks, by lock.
    turns: &'a HashMap<u64, Vec<(u32, Turns)>>,
}

impl Run<'_> {
    /// Whether so much time in so many waits is worth a finding: see the head of this file.
    fn matters(&self, lost: u64, waits: u64) -> bool {
        lost >= self.length / 100 && (waits >= 10 || lost >= self.length / 10) && lost > 0
    }

    /// Whether what the holders did in this part of the lost time was so at least for this share of
    /// it.
    ///
    /// Sums in `/proc` are of a time that may be four times as long as the one in question. Of a
    /// share `s` of that time, three parts of four may be outside, so `4 s - 3` is certain.
    fn is_certain(&self, part: u64, lost: u64, share: f64) -> bool {
        let share = if self.has_sums { (3.0 + share) / 4.0 } else { share };
        part > 0 && part as f64 >= share * lost as f64
    }

    /// A thread, as a reader knows it.
    fn thread(&self, number: u32) -> String {
        match self.names.get(&number) {
            Some(name) if !name.is_empty() => format!("thread {number} ({})", escaped(name)),
            _ => format!("thread {number}"),
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// More threads are not told apart.
const MOST_THREADS: usize = 1 << 16;

/// What was found in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// The findings, those that cost the most first.
    pub findings: Vec<Finding>,
    /// The time from the beginning of the recording to the end of its last wait, in nanoseconds; 0:
    /// there is no wait.
    length: u64,
    /// Whether a holder is known, ...
    has_holders: bool,
    /// ... and whether something is known of what one did.
    has_causes: bool,
}

/// All detectors.
struct Explaining {
    detectors: Vec<Box<dyn Detector>>,
    waiters: std::collections::HashSet<u32>,
    between: Option<(u64, u64)>,
    has_holders: bool,
    has_causes: bool,
}

impl Default for Explaining {
    fn default() -> Self {
        Self {
            detectors: vec![
                Box::<asleep::Asleep>::default(),
                Box::<computes::Computes>::default(),
                Box::<chain::Chain>::default(),
                Box::<preempted::Preempted>::default(),
                Box::<inversion::Inversion>::default(),
                Box::<convoy::Convoy>::default(),
                Box::<unfair::Unfair>::default(),
                Box::<writers::Writers>::default(),
                Box::<starved::Starved>::default(),
                Box::<herd::Herd>::default(),
                Box::<in_vain::InVain>::default(),
                Box::<order::Order>::default(),
            ],
            waiters: std::collections::HashSet::new(),
            between: None,
            has_holders: false,
            has_causes: false,
        }
    }
}

impl Fold for Explaining {
    fn add(&mut self, thread: u32, wait: &Wait) {
        let Some(object) = wait.object() else {
            return;
        };
        self.has_holders |= wait.holder != 0 && object.is_lock();
        self.has_causes |= wait.running | wait.preempted | wait.asleep != 0;
        if self.waiters.len() < MOST_THREADS {
            self.waiters.insert(thread);
        }
        let ended = wait.began.saturating_add(wait.took);
        self.between = Some(match self.between {
            None => (wait.began, ended),
            Some((first, last)) => (first.min(wait.began), last.max(ended)),
        });
        for detector in &mut self.detectors {
            detector.add(thread, object, wait);
        }
    }
}

impl Explaining {
    fn finish(self, process: &Process) -> Explained {
        let Some((first, last)) = self.between else {
            return Explained::default();
        };
        let began = if process.began == 0 { first } else { process.began.min(first) };
        let mut turns: HashMap<u64, Vec<(u32, Turns)>> = HashMap::new();
        for (thread, of_lock) in &process.turns {
            turns.entry(of_lock.address).or_default().push((*thread, *of_lock));
        }
        let run = Run {
            length: last.saturating_sub(began).max(1),
            waiters: self.waiters.len(),
            has_sums: process.causes == Some(Causes::Sums),
            names: &process.threads,
            priorities: &process.priorities,
            turns: &turns,
        };
        let mut all: Vec<Finding> =
            self.detectors.iter().flat_map(|detector| detector.findings(&run)).collect();
        all.sort_by_key(|finding| core::cmp::Reverse(finding.lost));
        Explained {
            findings: all,
            length: run.length,
            has_holders: self.has_holders,
            has_causes: self.has_causes || process.causes.is_some(),
        }
    }
}

/// Explains the processes of a recording, in the order in which they began. `progress` is called as
/// in [`read::scan_with`].
///
/// # Errors
/// The directory or a file in it cannot be read, or is no recording.
pub fn explain(
    directory: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<(Process, Explained)>> {
    let all = read::scan_with(directory, |_| Explaining::default(), progress)?;
    let explained = |(process, explaining): (Process, Explaining)| {
        let explained = explaining.finish(&process);
        (process, explained)
    };
    Ok(all.into_iter().map(explained).collect())
}

/// Explains a process that was read with its waits.
pub fn explain_process(process: &Process) -> Explained {
    let mut explaining = Explaining::default();
    for (thread, wait) in &process.waits {
        explaining.add(*thread, wait);
    }
    explaining.finish(process)
}
