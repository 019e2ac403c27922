//! The board: what each thread of a scenario is doing, and how much it has done.
//!
//! It lies in memory shared with forked processes, so that one watchdog sees all of them, and a
//! killed process leaves its last entry behind. A thread writes only its own place. Nothing here
//! waits or locks, so a signal handler may write too.

use crate::count::{COUNTS, Count, Totals};
use crate::memory;
use clap::ValueEnum;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};

/// Places for threads.
pub(crate) const PLACES: usize = 4096;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[repr(u8)]
pub(crate) enum Doing {
    Other = 0,
    Waiting,
    WaitingUntil,
    WaitingAny,
    Waking,
    Requeueing,
    /// In a call that may wait for an object.
    Entering,
    EnteringUntil,
    /// Never releases what it holds: sabotage.
    Keeping,
}

const NAME: usize = 32;
/// How many locks of one thread are recorded. The report shows no more.
const HELD: usize = 6;
/// How many words of a wait on several are recorded, besides the first.
const OTHERS: usize = 15;

/// One thread's place. All zeros: free.
#[repr(C, align(128))]
pub(crate) struct Place {
    /// 0: free.
    process: AtomicU32,
    doing: AtomicU8,
    /// The number of the word.
    word: AtomicU32,
    /// The numbers of the other words, if it waits on several; 0: none.
    others: [AtomicU32; OTHERS],
    /// `pthread_self()`.
    handle: AtomicUsize,
    /// The kernel's ID of the thread.
    thread: AtomicU32,
    /// The value that a wait expects there, or that was there when a call began.
    seen: AtomicU64,
    /// The numbers of the words of locks that it holds; 0: none.
    held: [AtomicU32; HELD],
    name: [AtomicU8; NAME],
    counts: [AtomicU64; COUNTS],
}

/// A copy of a place, to be printed.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) process: u32,
    pub(crate) handle: usize,
    pub(crate) thread: u32,
    pub(crate) name: String,
    pub(crate) doing: Doing,
    pub(crate) word: u32,
    /// The other words that it waits on.
    pub(crate) others: Vec<u32>,
    pub(crate) seen: u64,
    /// The words of the locks that it holds.
    pub(crate) held: Vec<u32>,
}

/// See the module documentation.
pub(crate) struct Board {
    places: [Place; PLACES],
    cursor: AtomicUsize,
    /// A thread has found a violation. Other threads may now wait for it forever.
    violated: AtomicBool,
    /// The counts of threads that have no place.
    apart: [AtomicU64; COUNTS],
    /// How long the scenario's process has run so far, in milliseconds, without the time that it
    /// was stopped.
    pub(crate) ran: AtomicU64,
    /// Not 0: all threads pause (see [`crate::fault::stutter`]).
    pub(crate) pause: AtomicU32,
}

impl Board {
    /// A new board's file.
    pub(crate) fn new_file() -> i32 {
        memory::file_in_memory(size_of::<Self>())
    }

    /// The board in this file, shared with all processes that map it, and with those forked from
    /// now on.
    pub(crate) fn of_file(file: i32) -> &'static Self {
        let memory = memory::map_file(file, size_of::<Self>());
        // SAFETY: page-aligned, large enough and never unmapped. The zeros of a new file are an
        // empty board, and everything in it is atomic.
        unsafe { &*memory.cast::<Self>() }
    }

    /// Takes a free place for the calling thread.
    pub(crate) fn join(&'static self, name: &str) -> &'static Place {
        let start = self.cursor.fetch_add(1, Relaxed);
        let process = std::process::id();
        let place = (0..PLACES)
            .map(|step| &self.places[(start + step) % PLACES])
            .find(|place| place.process.compare_exchange(0, process, Relaxed, Relaxed).is_ok())
            .expect("the board has a place for every thread");
        let padded = name.bytes().chain(std::iter::repeat(0));
        for (to, from) in place.name.iter().zip(padded) {
            to.store(from, Relaxed);
        }
        // SAFETY: both only return a number.
        let (handle, thread) = unsafe { (libc::pthread_self(), libc::gettid()) };
        place.handle.store(handle as usize, Relaxed);
        place.thread.store(thread as u32, Relaxed);
        place.held.iter().for_each(|held| held.store(0, Relaxed));
        place.set(Doing::Other, 0, 0);
        place
    }

    /// Records that the thread has found a violation.
    pub(crate) fn violate(&self) {
        self.violated.store(true, Relaxed);
    }

    pub(crate) fn is_violated(&self) -> bool {
        self.violated.load(Relaxed)
    }

    /// Frees the places of a process that has ended.
    pub(crate) fn forget(&self, process: u32) {
        for place in &self.places {
            // A failure means that the place is another process's.
            let _ = place.process.compare_exchange(process, 0, Relaxed, Relaxed);
        }
    }

    /// Everything counted so far, also by threads that have left.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let places = self.places.iter().map(|place| &place.counts);
        for counts in places.chain([&self.apart]) {
            for (total, count) in totals.0.iter_mut().zip(counts) {
                *total += count.load(Relaxed);
            }
        }
        totals
    }

    /// The thread that has done most, of those that have a place now.
    pub(crate) fn busiest(&self) -> (String, u64) {
        let steps = |place: &&Place| place.counts[Count::Operations as usize].load(Relaxed);
        let there = self.places.iter().filter(|place| place.process.load(Relaxed) != 0);
        let busiest = there.max_by_key(steps);
        busiest.map_or_else(Default::default, |place| (place.entry().name, steps(&place)))
    }

    /// Counts for a thread that has no place. Async-signal-safe.
    pub(crate) fn count(&self, what: Count, by: usize) {
        self.apart[what as usize].fetch_add(by as u64, Relaxed);
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.places.iter().filter(|place| place.process.load(Relaxed) != 0).map(Place::entry)
    }
}

impl Place {
    pub(crate) fn leave(&self) {
        self.process.store(0, Relaxed);
    }

    pub(crate) fn set(&self, doing: Doing, word: u32, seen: u64) {
        self.word.store(word, Relaxed);
        self.seen.store(seen, Relaxed);
        self.doing.store(doing as u8, Relaxed);
    }

    /// Like `set`, for a wait on several words.
    pub(crate) fn set_several(&self, first: u32, seen: u64, others: impl Iterator<Item = u32>) {
        let others = others.chain(std::iter::repeat(0));
        for (place, other) in self.others.iter().zip(others) {
            place.store(other, Relaxed);
        }
        self.set(Doing::WaitingAny, first, seen);
    }

    /// Records that the thread has taken the lock with this word.
    pub(crate) fn hold(&self, word: u32) {
        self.change_held(0, word);
    }

    pub(crate) fn release(&self, word: u32) {
        self.change_held(word, 0);
    }

    fn change_held(&self, from: u32, to: u32) {
        // Only the thread itself writes here. With no slot free, the lock is not recorded, and then
        // not found.
        if let Some(held) = self.held.iter().find(|held| held.load(Relaxed) == from) {
            held.store(to, Relaxed);
        }
    }

    pub(crate) fn count(&self, what: Count, by: usize) {
        // One atomic step, because a signal handler counts here too. Counts stay when the place
        // changes hands.
        self.counts[what as usize].fetch_add(by as u64, Relaxed);
    }

    fn entry(&self) -> Entry {
        let name = self.name.iter().map(|byte| byte.load(Relaxed));
        let name = name.take_while(|&byte| byte != 0).collect();
        Entry {
            process: self.process.load(Relaxed),
            handle: self.handle.load(Relaxed),
            name: String::from_utf8(name).unwrap_or_default(),
            doing: Doing::value_variants()[usize::from(self.doing.load(Relaxed))],
            word: self.word.load(Relaxed),
            seen: self.seen.load(Relaxed),
            thread: self.thread.load(Relaxed),
            others: numbers(&self.others),
            held: numbers(&self.held),
        }
    }
}

/// The numbers that are not 0.
fn numbers(places: &[AtomicU32]) -> Vec<u32> {
    let all = places.iter().map(|place| place.load(Relaxed));
    all.filter(|&number| number != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_when_a_thread_leaves() {
        let board = Board::of_file(Board::new_file());
        let place = board.join("first");
        place.count(Count::Waits, 3);
        place.set(Doing::Waiting, 7, 9);
        let entry = board.entries().next().expect("an entry");
        assert_eq!((entry.name.as_str(), entry.word, entry.seen), ("first", 7, 9));
        assert_eq!(entry.doing, Doing::Waiting);
        place.leave();
        assert_eq!(board.entries().count(), 0);
        assert_eq!(board.totals().of(Count::Waits), 3);
    }
}
