//! Reads a recording while it grows, for `waitword top` and `waitword metrics`.
//!
//! ```text
//!   source ─▶ Follower ─▶ one `process` for each .rings file
//!                               rings     what threads do now; cells not in the records file yet
//!                               records   blocks of cells, from where the last poll ended
//!                               maps      mappings, from there too
//!                             ─▶ waits ─▶ Rates: sums by site and by lock, lately and since begin
//! ```
//!
//! [`Live`] puts these together with the symbols, and with what `unfinished` sees of long waits.
//! The files may change during a read, be cut off anywhere, or be anything else: what is read is
//! checked before it is used, and every collection has a limit.

mod bytes;
pub mod follower;
mod process;
pub mod rates;
mod records;
mod rings;
pub mod source;
mod unfinished;

use crate::export::pprof::pprof_of;
use crate::sites::{Key, Site};
use crate::symbols::{Files, Frame, Symbols};
use crate::text::is_between;
use anyhow::Result;
use follower::{Follower, Polled};
use rates::{Lock, Rates};
use rustix::time::{ClockId, clock_gettime};
use source::Source;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use unfinished::Unfinished;
use waitword_record::format::{Hold, Wait};

pub use process::{Followed, Thread, Waiting};

/// The number of a process in a [`Follower`]: it stays the same, and is not used again.
pub type ProcessId = u32;

/// What a thread has recorded.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A wait that has ended.
    Wait(&'a Wait),
    /// A lock that it kept while other threads waited.
    Hold(&'a Hold),
}

/// `CLOCK_MONOTONIC` in nanoseconds, as in a recording.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// A recording that grows, its sums, and the names of its functions.
#[derive(Debug)]
pub struct Live {
    follower: Follower,
    rates: Rates,
    files: Rc<Files>,
    known: HashMap<ProcessId, Known>,
    unfinished: HashMap<ProcessId, Unfinished>,
}

/// The functions of addresses, and the state of the process's mappings that they are for.
#[derive(Debug, Default)]
struct Known {
    version: u64,
    frames: HashMap<u64, Vec<Frame>>,
}

impl Live {
    /// Follows the recordings of this source, of which there may be none yet.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn open(source: Source) -> Result<Self> {
        Ok(Self {
            follower: Follower::open(source)?,
            rates: Rates::new(now()),
            files: Rc::default(),
            known: HashMap::new(),
            unfinished: HashMap::new(),
        })
    }

    /// See [`Follower::discard`].
    pub fn discard(&mut self) {
        self.follower.discard();
    }

    /// From now on, looks for programs and libraries below this directory first: the root of a
    /// process that may see other files than this one.
    pub fn look_below(&mut self, root: PathBuf) {
        self.files = Rc::new(Files::below(root.clone()));
        self.follower.look_below(root);
    }

    /// Reads what is new. `each` gets every new record.
    ///
    /// # Errors
    /// The directory cannot be read any more.
    pub fn poll(&mut self, mut each: impl FnMut(&Followed, u32, Record<'_>)) -> Result<Polled> {
        let rates = &mut self.rates;
        let polled = self.follower.poll(&mut |process, thread, record| {
            if let Record::Wait(wait) = record {
                rates.add(process.id, thread, wait);
            }
            each(process, thread, record);
        })?;
        for id in &polled.forgotten {
            self.rates.forget(*id);
            self.known.remove(id);
            self.unfinished.remove(id);
        }
        self.rates.end_slot(now(), self.follower.processes());
        Ok(polled)
    }

    /// Looks from outside where threads have waited for locks for more than a second. Returns
    /// whether anything is new: then [`Live::frames_of_waiter`] knows it after another
    /// [`Live::poll`] and look.
    pub fn look_at_long_waits(&mut self) -> bool {
        let mut is_new = false;
        for process in self.follower.processes() {
            is_new |= self.unfinished.entry(process.id).or_default().look(process, now());
        }
        is_new
    }

    /// The processes, in the order in which they were found.
    pub fn processes(&self) -> impl Iterator<Item = &Followed> {
        self.follower.processes()
    }

    /// One of them.
    pub fn process(&self, id: ProcessId) -> Option<&Followed> {
        self.follower.process(id)
    }

    /// The sums.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Why a file in the directory is not followed, if there is one.
    pub fn problem(&self) -> Option<&str> {
        self.follower.problem()
    }

    /// The program's own functions on a stack, the innermost first: without the drop-in and the
    /// libraries that only pass a wait on. Empty if the stack is unknown.
    pub fn frames(&mut self, id: ProcessId, stack: u32) -> Vec<Frame> {
        let process = self.follower.process(id);
        let stack = process.and_then(|process| process.recorded.stacks.get(&stack)).cloned();
        self.named(id, &stack.unwrap_or_default())
    }

    /// The same of a thread that has waited for this lock for long, if that has been looked for.
    pub fn frames_of_waiter(&mut self, lock: Lock) -> Vec<Frame> {
        let process = self.follower.process(lock.process);
        let stack = process.and_then(|process| {
            Some(self.unfinished.get(&lock.process)?.stack(process, lock.address).to_vec())
        });
        self.named(lock.process, &stack.unwrap_or_default())
    }

    fn named(&mut self, id: ProcessId, addresses: &[u64]) -> Vec<Frame> {
        let Some(process) = self.follower.process(id) else {
            return Vec::new();
        };
        let known = self.known.entry(id).or_default();
        if known.version != process.maps_version {
            *known = Known { version: process.maps_version, frames: HashMap::new() };
        }
        let mut symbols = Symbols::with(&process.recorded, self.files.clone());
        let mut all: Vec<Frame> = Vec::new();
        for &address in addresses {
            let find = || symbols.frames(address).to_vec();
            all.extend_from_slice(known.frames.entry(address).or_insert_with(find));
        }
        let own = all.iter().position(|frame| !is_between(frame)).unwrap_or(0);
        // The C library's part of a thread's beginning is on all stacks.
        let end = all.iter().rposition(|frame| !is_between(frame)).map_or(all.len(), |at| at + 1);
        all.into_iter().take(end).skip(own).collect()
    }

    /// The waits for locks as a compressed profile, as `waitword report --pprof` writes it: those
    /// that ended within the last `nanoseconds`, or all.
    ///
    /// # Errors
    /// The compression fails.
    pub fn pprof(&self, nanoseconds: Option<u64>) -> Result<Vec<u8>> {
        let mut sites: HashMap<ProcessId, HashMap<Key, Site>> = HashMap::new();
        for (key, sums) in self.rates.sites(nanoseconds) {
            let site = sites.entry(key.process).or_default().entry(key.site()).or_default();
            sums.add_to(site);
        }
        let mut parts = Vec::new();
        for process in self.follower.processes() {
            if let Some(sites) = sites.remove(&process.id) {
                let symbols = Symbols::with(&process.recorded, self.files.clone());
                parts.push((&process.recorded, symbols, sites.into_iter().collect::<Vec<_>>()));
            }
        }
        let parts = parts.iter_mut().map(|(process, symbols, sites)| (*process, symbols, &**sites));
        Ok(pprof_of(parts)?)
    }
}

/// A text from a recording or a program's file, safe for a terminal: control characters (which may
/// be escape sequences), and those that are invisible or change the direction of the text, become
/// question marks.
pub fn printable(text: &str) -> String {
    let is_safe = |letter: char| {
        !letter.is_control()
            && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            && !matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|letter| if is_safe(letter) { letter } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{9b}c\n"), "a?[2Jb?c?");
        assert_eq!(printable("x\u{202e}y\u{2066}z\u{200b}"), "x?y?z?");
        assert_eq!(printable("größe::<λ>"), "größe::<λ>");
    }
}
