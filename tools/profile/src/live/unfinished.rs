//! Where threads wait whose waits do not end.
//!
//! A recording has the stack of a wait once that has ended. So the stack of a long one is read from
//! outside, as `waitword deadlock` does, if the kernel lets this user do that. The thread may leave
//! its wait during the look; so the stack counts if the ring says afterwards that the thread is
//! still in the same wait.

use super::process::{Followed, Waiting};
use crate::remote::Remote;
use std::collections::HashMap;

/// Shorter waits are not looked at, in nanoseconds.
const LONG: u64 = 1_000_000_000;
/// The most looks after one poll.
const MOST_LOOKS: usize = 8;

/// The stacks of the long waits of a process.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// `Some(None)`: it may not be looked into, or is not seen under its ID here.
    remote: Option<Option<Remote>>,
    /// Of each thread.
    stacks: HashMap<u32, Look>,
}

/// What a look has found.
#[derive(Debug)]
struct Look {
    /// When the wait began.
    since: u64,
    /// The return addresses.
    stack: Vec<u64>,
    /// The thread was in the same wait afterwards.
    is_confirmed: bool,
}

impl Unfinished {
    /// Looks at waits for locks that are new here, and confirms what was found before. Call it
    /// after a poll. Returns whether there is anything new.
    pub(super) fn look(&mut self, process: &Followed, now: u64) -> bool {
        let waits: HashMap<u32, Waiting> = waits(process).collect();
        self.stacks.retain(|thread, look| {
            look.is_confirmed = waits.get(thread).is_some_and(|it| it.since == look.since);
            look.is_confirmed
        });
        let new = waits.into_iter().filter(|(thread, waiting)| {
            now.saturating_sub(waiting.since) >= LONG && !self.stacks.contains_key(thread)
        });
        let new: Vec<_> = new.take(MOST_LOOKS).collect();
        if new.is_empty() {
            return false;
        }
        let Some(remote) = self.remote.get_or_insert_with(|| open(process)) else {
            return false;
        };
        for (number, waiting) in new {
            let thread = remote.thread(number);
            let stack = thread.map(|it| remote.stack(&it).frames).unwrap_or_default();
            let look = Look { since: waiting.since, stack, is_confirmed: false };
            self.stacks.insert(number, look);
        }
        true
    }

    /// The stack of the thread that waits longest for the lock at this address, if one is known.
    pub(super) fn stack(&self, process: &Followed, address: u64) -> &[u64] {
        let here = waits(process).filter(|(_, waiting)| waiting.address == address);
        let known = here.filter_map(|(thread, _)| self.stacks.get(&thread));
        let known = known.filter(|look| look.is_confirmed && !look.stack.is_empty());
        known.min_by_key(|look| look.since).map_or(&[], |look| &look.stack)
    }
}

fn waits(process: &Followed) -> impl Iterator<Item = (u32, Waiting)> {
    let waits = process.threads.iter().filter_map(|it| Some((it.thread, it.waiting?)));
    waits.filter(|(_, waiting)| waiting.object.is_lock())
}

/// The process, if it has the same ID here, and if stacks of it may be read.
fn open(process: &Followed) -> Option<Remote> {
    let remote = Remote::open(process.recorded.pid).ok()?;
    let own = process.rings_file().file_name();
    let is_it = remote.files().any(|file| file.file_name() == own);
    (is_it && remote.denied().is_none()).then_some(remote)
}
