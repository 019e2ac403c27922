//! Reads the rings of a process: what its threads do now, and cells that are not in the records
//! file yet.
//!
//! A thread overwrites a cell only after it has appended it to the records file and has said so in
//! `flushed`. So cells that were copied are intact if they are not `flushed` afterwards. The others
//! are in the records file, which is read after the rings. What was copied is passed on after that:
//! so the cells of a ring come in order, and one number says which are new. They appear in the
//! records file later, where they are known by it.
//!
//! A ring that passes to another thread has been flushed, and goes on counting.

use super::bytes::{cell, half, number};
use super::records::read_at;
use core::mem::offset_of;
use std::fs::File;
use std::io;
use std::sync::atomic::{Ordering::Acquire, fence};
use waitword_record::format::{
    CELLS, Cell, HELD_TO_READ, MOST_HELD, MOST_THREADS, Object, PAGE, RING_BYTES, Ring,
};

const HEAD: usize = size_of::<Ring>();

/// What a thread does now, as far as its ring says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub thread: u32,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// The locks that it holds, the oldest first, and whether it shares each with other readers.
    pub held: Vec<(u64, bool)>,
}

/// A wait that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What the thread waits for.
    pub object: Object,
    /// Its address.
    pub address: u64,
    /// Since when.
    pub since: u64,
}

/// The head of a ring at some moment.
struct Head<'a>(&'a [u8]);

impl Head<'_> {
    fn thread(&self) -> u32 {
        half(self.0, offset_of!(Ring, thread))
    }

    fn written(&self) -> u64 {
        number(self.0, offset_of!(Ring, written))
    }

    fn flushed(&self) -> u64 {
        number(self.0, offset_of!(Ring, flushed))
    }

    fn name(&self) -> &[u8] {
        &self.0[offset_of!(Ring, name)..][..16]
    }

    fn present(&self) -> Thread {
        let address = number(self.0, offset_of!(Ring, waiting));
        let object = half(self.0, offset_of!(Ring, object)) as usize;
        let object = Object::ALL.get(object.wrapping_sub(1)).copied();
        let since = number(self.0, offset_of!(Ring, since));
        let waiting = object.filter(|_| address != 0);
        let count = half(self.0, offset_of!(Ring, held_count)) as usize;
        let held = (0..count.min(MOST_HELD))
            .map(|n| number(self.0, offset_of!(Ring, held) + 8 * n))
            .filter(|held| *held != 0)
            .map(|held| (held & !HELD_TO_READ, held & HELD_TO_READ != 0));
        Thread {
            thread: self.thread(),
            waiting: waiting.map(|object| Waiting { object, address, since }),
            held: held.collect(),
        }
    }
}

/// What was found in a ring before.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Cells before this one have been passed on.
    until: u64,
    /// The thread whose name is known.
    named: u32,
}

/// All rings of a process.
#[derive(Debug, Default)]
pub(super) struct Rings {
    seen: Vec<Seen>,
    /// Rings whose numbers contradicted each other.
    pub(super) damaged: u64,
}

/// What a poll finds.
pub(super) trait Found {
    /// New cells of a thread; the number of the ring, and of the first one in it. They are to be
    /// passed on after the records file.
    fn cells(&mut self, thread: u32, ring: u64, first: u64, cells: &[Cell]);
    /// A thread has this name.
    fn name(&mut self, thread: u32, name: &[u8]);
    /// What a thread does now.
    fn present(&mut self, thread: Thread);
}

impl Rings {
    /// Looks at `count` rings. Returns whether any has changed.
    pub(super) fn poll(
        &mut self,
        file: &File,
        count: u32,
        found: &mut impl Found,
    ) -> io::Result<bool> {
        let count = (count as usize).min(MOST_THREADS);
        if count > self.seen.len() {
            self.seen.resize(count, Seen::default());
        }
        let mut has_changed = false;
        for ring in 0..count {
            has_changed |= self.poll_ring(ring, file, found)?;
        }
        Ok(has_changed)
    }

    /// Returns how many of so many cells of a ring, from this one, have been passed on before. Now
    /// all have.
    pub(super) fn pass(&mut self, ring: u64, first: u64, count: usize) -> usize {
        if ring >= MOST_THREADS as u64 {
            return 0;
        }
        let ring = ring as usize;
        if ring >= self.seen.len() {
            self.seen.resize(ring + 1, Seen::default());
        }
        let until = &mut self.seen[ring].until;
        let before = until.saturating_sub(first).min(count as u64);
        *until = (*until).max(first.saturating_add(count as u64));
        before as usize
    }

    fn poll_ring(&mut self, ring: usize, file: &File, found: &mut impl Found) -> io::Result<bool> {
        let place = (PAGE + ring * RING_BYTES) as u64;
        let mut bytes = [0; HEAD];
        if read_at(file, &mut bytes, place)? < HEAD {
            // The file is cut off.
            return Ok(false);
        }
        let (before, seen) = (Head(&bytes), self.seen[ring]);
        let (thread, written, flushed) = (before.thread(), before.written(), before.flushed());
        if thread == 0 {
            return Ok(false);
        }
        if written.wrapping_sub(flushed) > CELLS as u64 || written < seen.until {
            self.damaged += 1;
            self.seen[ring].until = written;
            return Ok(false);
        }
        if thread != seen.named {
            found.name(thread, before.name());
            self.seen[ring].named = thread;
        }
        let mut present = before.present();
        let is_new = written != seen.until;
        if is_new {
            let from = flushed.max(seen.until);
            // The head, the cells, the head again, in this order: the other side has a Release for
            // each of the two fences.
            fence(Acquire);
            let cells = copy(file, place + HEAD as u64, from, written)?;
            fence(Acquire);
            if read_at(file, &mut bytes, place)? < HEAD {
                return Ok(false);
            }
            let after = Head(&bytes);
            present = after.present();
            if after.thread() != thread || after.flushed() < flushed {
                // It has passed to another thread: all cells are in the records file.
                return Ok(true);
            }
            let intact = after.flushed().max(from).min(written);
            let cells = &cells[(intact - from) as usize..];
            found.cells(thread, ring as u64, intact, cells);
        }
        found.present(present);
        Ok(is_new)
    }
}

/// Copies the cells `from..until` of the ring whose cells begin at `place`.
fn copy(file: &File, place: u64, from: u64, until: u64) -> io::Result<Vec<Cell>> {
    let count = (until - from) as usize;
    let first = (from % CELLS as u64) as usize;
    let until_the_end = count.min(CELLS - first);
    let mut bytes = vec![0; count * size_of::<Cell>()];
    let (head, tail) = bytes.split_at_mut(until_the_end * size_of::<Cell>());
    read_at(file, head, place + (first * size_of::<Cell>()) as u64)?;
    read_at(file, tail, place)?;
    Ok(bytes.chunks_exact(size_of::<Cell>()).map(cell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_is_passed_on_once() {
        let mut rings = Rings::default();
        // From the ring; and what was flushed later.
        assert_eq!(rings.pass(3, 10, 5), 0);
        assert_eq!(rings.pass(3, 0, 12), 12);
        assert_eq!(rings.pass(3, 12, 8), 3);
        assert_eq!(rings.pass(3, 20, 2), 0);
        // Another ring counts for itself; some blocks between were lost.
        assert_eq!(rings.pass(0, 5, 5), 0);
        assert_eq!(rings.pass(0, 100, 5), 0);
        // Garbage is no reason to end, or to take much memory.
        assert_eq!(rings.pass(u64::MAX, 0, 5), 0);
        assert_eq!(rings.pass(1, u64::MAX, 5), 0);
        assert_eq!(rings.pass(1, u64::MAX - 2, 5), 2);
        assert!(rings.seen.len() <= MOST_THREADS);
    }
}
