//! Reads the blocks that have been appended to a records file.
//!
//! Threads append whole blocks. If one is not complete, it is being written (or its process was
//! killed, or the disk is full): the next poll looks again. What is no block is passed over until
//! the next one begins.

use super::bytes::{cell, half, number};
use core::mem::offset_of;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use waitword_record::format::{Block, CELLS, Cell, MAGIC};

/// How much is read at a time: many blocks of the greatest size.
const CHUNK: usize = 1 << 20;
const HEAD: usize = size_of::<Block>();

/// Where the last poll ended.
#[derive(Debug, Default)]
pub(super) struct Records {
    offset: u64,
    /// Pieces of the file that are no blocks.
    pub(super) damaged: u64,
    discarded: u64,
}

/// A block with its cells.
pub(super) struct Read<'a> {
    pub(super) thread: u32,
    pub(super) name: &'a [u8],
    pub(super) ring: u64,
    pub(super) first: u64,
    pub(super) cells: Vec<Cell>,
}

/// What a part of the file begins with.
enum Next<'a> {
    /// A block, and its length in bytes.
    Block(Read<'a>, usize),
    /// The beginning of one.
    Part,
    /// Something else, up to a place where a block may begin.
    Garbage(usize),
}

impl Records {
    /// Calls `each` for the new blocks, until about `most` bytes have been read. Returns whether
    /// there are no more.
    pub(super) fn poll(
        &mut self,
        file: &File,
        most: u64,
        each: &mut dyn FnMut(&Read<'_>),
    ) -> io::Result<bool> {
        let limit = self.offset.saturating_add(most);
        let mut chunk = Vec::new();
        loop {
            let there = file.metadata()?.len().saturating_sub(self.offset);
            if there == 0 {
                return Ok(true);
            }
            chunk.resize(there.min(CHUNK as u64) as usize, 0);
            let len = read_at(file, &mut chunk, self.offset)?;
            let mut rest = &chunk[..len];
            let mut was_garbage = false;
            while !rest.is_empty() {
                let used = match next(rest) {
                    Next::Block(block, used) => {
                        was_garbage = false;
                        each(&block);
                        used
                    }
                    Next::Part => break,
                    Next::Garbage(used) => {
                        // Another reader has given this space back.
                        let is_hole = rest[..used].iter().all(|&byte| byte == 0);
                        self.damaged += u64::from(!was_garbage && !is_hole);
                        was_garbage = !is_hole;
                        used
                    }
                };
                rest = &rest[used..];
            }
            self.offset += (len - rest.len()) as u64;
            if there < CHUNK as u64 {
                return Ok(true);
            }
            if self.offset >= limit {
                return Ok(false);
            }
        }
    }

    /// Gives the disk space of what has been read back. Where the file system cannot do that, the
    /// file keeps it.
    pub(super) fn discard(&mut self, path: &Path) {
        if self.offset - self.discarded < CHUNK as u64 {
            return;
        }
        if let Ok(file) = File::options().write(true).open(path) {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let len = self.offset - self.discarded;
            let _ = rustix::fs::fallocate(&file, flags, self.discarded, len);
            self.discarded = self.offset;
        }
    }
}

fn next(bytes: &[u8]) -> Next<'_> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        let begins = |at: &usize| {
            let rest = &bytes[*at..];
            let known = rest.len().min(MAGIC.len());
            rest[..known] == MAGIC[..known]
        };
        return Next::Garbage((1..bytes.len()).find(begins).unwrap_or(bytes.len()));
    }
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
        return Next::Part;
    };
    let count = half(head, offset_of!(Block, cells)) as usize;
    if count > CELLS {
        return Next::Garbage(MAGIC.len());
    }
    let Some(cells) = rest.get(..count * size_of::<Cell>()) else {
        return Next::Part;
    };
    let block = Read {
        thread: half(head, offset_of!(Block, thread)),
        name: &head[offset_of!(Block, name)..][..16],
        ring: number(head, offset_of!(Block, ring)),
        first: number(head, offset_of!(Block, first)),
        cells: cells.chunks_exact(size_of::<Cell>()).map(cell).collect(),
    };
    Next::Block(block, HEAD + cells.len())
}

/// Reads as much as there is.
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], offset.saturating_add(len as u64)) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    pub(crate) fn block(thread: u32, first: u64, cells: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(thread.to_ne_bytes());
        bytes.extend(cells.to_ne_bytes());
        bytes.extend([0; 16]);
        bytes.extend(first.to_ne_bytes());
        bytes.extend([0; 24]);
        bytes.resize(HEAD + cells as usize * size_of::<Cell>(), 1);
        bytes
    }

    fn polled(records: &mut Records, file: &File) -> Vec<(u32, u64, usize)> {
        let mut all = Vec::new();
        let each = &mut |it: &Read<'_>| all.push((it.thread, it.first, it.cells.len()));
        assert!(records.poll(file, u64::MAX, each).unwrap());
        all
    }

    #[test]
    fn half_a_block_is_read_when_the_rest_is_there() {
        let mut file = tempfile::tempfile().unwrap();
        let mut records = Records::default();
        assert_eq!(polled(&mut records, &file), []);
        let bytes = block(3, 9, 2);
        for cut in [5, 20, 70, bytes.len()] {
            let from = file.metadata().unwrap().len() as usize;
            file.write_all(&bytes[from..cut]).unwrap();
            let expected: &[_] = if cut == bytes.len() { &[(3, 9, 2)] } else { &[] };
            assert_eq!(polled(&mut records, &file), expected, "{cut}");
        }
        assert_eq!((polled(&mut records, &file), records.damaged), (vec![], 0));
    }

    #[test]
    fn what_is_no_block_is_passed_over() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"garbage").unwrap();
        file.write_all(&block(1, 0, 1)).unwrap();
        file.write_all(&block(2, 0, CELLS as u32 + 1)).unwrap();
        file.write_all(&block(3, 0, 1)).unwrap();
        let mut records = Records::default();
        assert_eq!(polled(&mut records, &file), [(1, 0, 1), (3, 0, 1)]);
        assert_eq!(records.damaged, 2);
    }

    #[test]
    fn a_long_file_is_read_in_parts_and_what_was_read_takes_no_space() {
        use std::os::unix::fs::MetadataExt as _;
        let mut named = tempfile::NamedTempFile::new().unwrap();
        for n in 0..100 {
            named.write_all(&block(n, 0, 800)).unwrap();
        }
        let (file, path) = named.into_parts();
        let (mut records, mut count, mut polls) = (Records::default(), 0, 1);
        while !records.poll(&file, 1, &mut |_| count += 1).unwrap() {
            polls += 1;
        }
        assert_eq!((count, polls), (100, 5));
        let before = file.metadata().unwrap();
        records.discard(&path);
        let after = file.metadata().unwrap();
        assert_eq!(before.len(), after.len());
        assert!(after.blocks() < before.blocks() / 10, "{} blocks", after.blocks());
        // Another one, who comes later, finds nothing, and no damage.
        let mut later = Records::default();
        assert_eq!((polled(&mut later, &file).len(), later.damaged), (0, 0));
    }
}
