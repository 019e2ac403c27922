//! A thread that says again and again that a recording is still wanted, and at last that it is not.
//!
//! Forked children record into the same directory. They are found by their files, and get the same
//! beats, if they see the same process IDs as this process.

use super::block::Block;
use super::place::Place;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;
use waitword_record::control::{END, ON, PATIENCE};

/// Several beats in the time after which a process ends the recording.
const BETWEEN: Duration = Duration::from_nanos(PATIENCE / 10);
/// For how long a process is waited for that is to end its recording.
const FOR_THE_END: Duration = Duration::from_secs(1);

/// The thread.
#[derive(Debug)]
pub(super) struct Beats {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Beats {
    pub(super) fn begin(pid: u32, blocks: Vec<Block>, place: Arc<Place>, first: u64) -> Self {
        let (stop, stopped) = channel();
        let sees_children =
            namespace("self").is_some_and(|it| namespace(pid).as_ref() == Some(&it));
        let thread = std::thread::spawn(move || {
            let mut children = Children::new();
            let mut beat = first;
            while stopped.recv_timeout(BETWEEN) == Err(RecvTimeoutError::Timeout) {
                beat += 1;
                if sees_children {
                    find_children(pid, &blocks, &place, &mut children);
                }
                for block in children.values().flatten().chain(&blocks) {
                    // An error: it has ended.
                    _ = block.beat(beat);
                }
            }
            if sees_children {
                find_children(pid, &blocks, &place, &mut children);
            }
            end(children.values().flatten().chain(&blocks));
        });
        Self { stop, thread }
    }

    /// Ends the recording.
    pub(super) fn end(self) {
        drop(self.stop);
        // An error: it has panicked, and there is nothing to be done.
        _ = self.thread.join();
    }
}

fn end<'a>(blocks: impl Iterator<Item = &'a Block> + Clone) {
    let began = Instant::now();
    // One that has not begun, because its locks are not used, would not end either.
    let is_on = |block: &&Block| block.state().is_ok_and(|state| state == ON);
    let mut waiting: Vec<&Block> = blocks.clone().filter(is_on).collect();
    // Errors: they have ended.
    blocks.for_each(|block| _ = block.ask_to_end());
    loop {
        waiting.retain(|block| block.state().is_ok_and(|state| state == END));
        if waiting.is_empty() || began.elapsed() >= FOR_THE_END {
            return;
        }
        // Once more: the process may have set a switch at the same moment.
        waiting.iter().for_each(|block| _ = block.turn_switches());
        std::thread::sleep(super::BETWEEN);
    }
}

/// The namespace of a process's IDs.
fn namespace(pid: impl core::fmt::Display) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// The blocks of each.
type Children = HashMap<u32, Vec<Block>>;

fn find_children(pid: u32, blocks: &[Block], place: &Place, children: &mut Children) {
    for process in place.processes().filter(|&process| process != pid) {
        let its: Vec<Block> = blocks.iter().filter_map(|block| block.of_child(process)).collect();
        if its.len() > children.get(&process).map_or(0, Vec::len) {
            children.insert(process, its);
        }
    }
}
