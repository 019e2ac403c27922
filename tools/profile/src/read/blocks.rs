//! The records file: blocks of cells, read through a window of fixed size.
//!
//! # What counts twice, or not at all
//!
//! A thread appends a block and then says in its ring that it has. Between the two, the cells are
//! in both places. So a block that does not begin before the ring's `flushed` is passed over: all
//! of it is in the ring, even if the block itself is cut off. This holds for a process that was
//! killed there and for one that still runs, whose rings were read a moment before.
//!
//! When the disk is full, a block is cut off and others may follow. They are found by their magic
//! number; what is missing counts as lost.

use super::rings::Flushed;
use super::{Fold, Reading, cells, half, number};
use core::mem::offset_of;
use memchr::memmem::Finder;
use std::io::{self, Read};
use waitword_record::format::{Block, CELLS, Cell, MAGIC};

/// Room for many blocks. One has half a ring of cells mostly, and a ring at most.
const WINDOW: usize = 1 << 20;
const HEAD: usize = size_of::<Block>();

const _: () = assert!(WINDOW > 4 * (HEAD + CELLS * size_of::<Cell>()));

pub(super) fn read(
    file: impl Read,
    flushed: &Flushed,
    reading: &mut Reading,
    fold: &mut impl Fold,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let magic = Finder::new(&MAGIC);
    let mut window = Window { file, bytes: vec![0; WINDOW], from: 0, to: 0 };
    loop {
        progress(window.fill()? as u64);
        let bytes = window.bytes();
        if bytes.is_empty() {
            return Ok(());
        }
        let Some((head, rest)) = block(bytes, &magic) else {
            // On to the next one, which may begin with the last bytes seen.
            reading.lose(1);
            let next = magic.find(&bytes[1..]).map(|at| at + 1);
            let unseen = if bytes.len() < HEAD { 0 } else { MAGIC.len() - 1 };
            let len = next.unwrap_or(bytes.len() - unseen);
            window.take(len);
            continue;
        };
        let count = half(head, offset_of!(Block, cells)) as usize;
        let wanted = count * size_of::<Cell>();
        let next = magic.find(&rest[..rest.len().min(wanted + MAGIC.len())]);
        let there = &rest[..next.unwrap_or(rest.len()).min(wanted)];
        let ring = usize::try_from(number(head, offset_of!(Block, ring))).ok();
        let marked = ring.and_then(|ring| flushed.get(ring)).copied().unwrap_or(u64::MAX);
        if number(head, offset_of!(Block, first)) < marked {
            let thread = half(head, offset_of!(Block, thread));
            let name = offset_of!(Block, name);
            reading.name(thread, &head[name..name + 16]);
            reading.priority(thread, half(head, offset_of!(Block, priority)));
            reading.lose(count - there.len() / size_of::<Cell>());
            cells::add(reading, fold, thread, cells::of(there));
        }
        let len = HEAD + there.len();
        window.take(len);
    }
}

/// Divides the head of a block from what follows. `None`: this is no whole head.
fn block<'a>(bytes: &'a [u8], magic: &Finder<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let is_head = head.starts_with(&MAGIC)
        && half(head, offset_of!(Block, cells)) as usize <= CELLS
        // A head that is cut off, and then the next one. (A thread may have that name.)
        && magic
            .find(&bytes[1..bytes.len().min(HEAD + MAGIC.len() - 1)])
            .is_none_or(|at| at + 1 == offset_of!(Block, name));
    is_head.then_some((head, rest))
}

/// A part of a file.
struct Window<R> {
    file: R,
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl<R: Read> Window<R> {
    /// What is in the window.
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// Passes over this many bytes.
    fn take(&mut self, len: usize) {
        self.from += len;
    }

    /// If the window may end within a block, moves it on, as far as the file goes. Returns how
    /// many bytes have been read.
    fn fill(&mut self) -> io::Result<usize> {
        if self.to - self.from > HEAD + CELLS * size_of::<Cell>() {
            return Ok(0);
        }
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        let before = self.to;
        while self.to < self.bytes.len() {
            match self.file.read(&mut self.bytes[self.to..]) {
                Ok(0) => break,
                Ok(got) => self.to += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.to - before)
    }
}
