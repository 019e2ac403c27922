//! A thread's ring: writing cells, and appending them to the records file.
//!
//! Another process of the same user may write anything into the file that a ring is in. So no
//! number from there is used as an index or a length without a limit.

use crate::files::{File, Names};
use crate::format::{Block, CELLS, Cell, Header, MAGIC, Ring};
use core::sync::atomic::{Ordering, fence};

impl Ring {
    /// Begins to belong to this thread. What it contains must have been flushed.
    pub(crate) fn begin(&self, thread: u32) {
        let mut name = [0_u8; 16];
        // SAFETY: room for the longest name, which the call writes with a zero at its end.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        for (number, to) in self.name.iter().enumerate() {
            let mut part = [0; 8];
            part.copy_from_slice(&name[8 * number..8 * (number + 1)]);
            to.store(u64::from_ne_bytes(part), Ordering::Relaxed);
        }
        self.forget_present();
        self.note_priority();
        // Release: a reader that finds the thread finds its name.
        self.thread.store(thread, Ordering::Release);
    }
}

/// Writes into the ring of the calling thread.
pub(crate) struct Writer<'a> {
    ring: &'a Ring,
    cells: *mut Cell,
    names: &'a Names,
    header: &'a Header,
}

impl<'a> Writer<'a> {
    /// # Safety
    /// `ring` is followed by its cells, all mapped for as long as `'a`. Only the calling thread
    /// writes them, by this writer.
    pub(crate) unsafe fn new(ring: *const Ring, names: &'a Names, header: &'a Header) -> Self {
        // SAFETY: mapped, by this function's contract; the cells follow.
        unsafe { Self { ring: &*ring, cells: ring.add(1).cast_mut().cast(), names, header } }
    }

    /// The number of the calling thread.
    pub(crate) fn thread(&self) -> u32 {
        self.ring.thread.load(Ordering::Relaxed)
    }

    /// The head of the calling thread's ring.
    pub(crate) fn ring(&self) -> &'a Ring {
        self.ring
    }

    pub(crate) fn header(&self) -> &'a Header {
        self.header
    }

    /// Writes a cell.
    pub(crate) fn write(&mut self, cell: Cell) {
        self.write_all(1, core::iter::once(cell));
    }

    /// Writes this many cells, all or none.
    pub(crate) fn write_all(&mut self, count: usize, cells: impl Iterator<Item = Cell>) {
        let written = self.ring.written.load(Ordering::Relaxed);
        if self.waiting() + count > CELLS {
            self.flush();
        }
        let mut at = written;
        for cell in cells.take(count) {
            // SAFETY: one of the ring's cells, which only this thread writes. A reader in another
            // process reads a cell only once `written` says that it is there.
            unsafe { self.cells.add((at % CELLS as u64) as usize).write_volatile(cell) };
            at = at.wrapping_add(1);
        }
        // Release: a reader that finds the number finds the cells.
        self.ring.written.store(at, Ordering::Release);
    }

    /// The number of cells that are only in the ring.
    fn waiting(&self) -> usize {
        let (written, flushed) = (&self.ring.written, &self.ring.flushed);
        let waiting = written.load(Ordering::Relaxed).wrapping_sub(flushed.load(Ordering::Relaxed));
        waiting.min(CELLS as u64) as usize
    }

    pub(crate) fn flush_if_half_full(&mut self) {
        if self.waiting() >= CELLS / 2 {
            self.flush();
        }
    }

    /// The thread has ended: writes what is in the head only.
    pub(crate) fn write_turns(&mut self) {
        for turns in self.ring.take_turns() {
            self.write(turns.to_cell());
        }
    }

    /// Appends the cells that are not there yet to the records file. If that fails, they are lost.
    pub(crate) fn flush(&mut self) {
        let ring = self.ring;
        let (flushed, count) = (ring.flushed.load(Ordering::Relaxed), self.waiting());
        if count == 0 {
            return;
        }
        let mut name = [0; 16];
        for (to, from) in name.chunks_mut(8).zip(&ring.name) {
            to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
        }
        let block = Block {
            magic: u64::from_ne_bytes(MAGIC),
            thread: ring.thread.load(Ordering::Relaxed),
            cells: count as u32,
            name,
            first: flushed,
            ring: ring.number.load(Ordering::Relaxed).into(),
            priority: ring.priority.load(Ordering::Relaxed),
            padding: [0; 3],
        };
        let first = (flushed % CELLS as u64) as usize;
        let until_the_end = count.min(CELLS - first);
        let bytes_of = |from: usize, len: usize| {
            // SAFETY: cells of the ring that have been written; only this thread writes them.
            unsafe {
                core::slice::from_raw_parts(
                    self.cells.add(from).cast::<u8>().cast_const(),
                    len * size_of::<Cell>(),
                )
            }
        };
        // SAFETY: plain data without padding.
        let head = unsafe {
            core::slice::from_raw_parts((&raw const block).cast::<u8>(), size_of::<Block>())
        };
        let pieces = [head, bytes_of(first, until_the_end), bytes_of(0, count - until_the_end)];
        let is_kept = self.names.open(File::Records).is_some_and(|file| file.write_all(pieces));
        if !is_kept {
            self.header.lost.fetch_add(count as u64, Ordering::Relaxed);
        }
        // Release: a reader that finds the number finds the cells in the other file.
        ring.flushed.store(flushed.wrapping_add(count as u64), Ordering::Release);
        // The cells are overwritten from here on. A reader that has copied one of the new ones must
        // find the number (`models/litmus/ring.litmus`).
        fence(Ordering::Release);
    }
}
