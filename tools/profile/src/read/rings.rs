//! The rings file: the header, and the cells that are in a ring only.

use super::{Fold, Process, Reading, cells, half, number};
use anyhow::{Result, bail};
use core::mem::offset_of;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use waitword_record::format::{
    CELLS, Causes, Cell, CountedTurns, Header, MAGIC, MOST_COUNTED, MOST_THREADS, PAGE, RING_BYTES,
    Ring, Turns, VERSION,
};

/// How often a ring is read again because its thread has written over what was being read.
const TRIES: usize = 3;

/// How many cells of each ring count as appended to the records file.
pub(super) type Flushed = Vec<u64>;

pub(super) fn header(file: &mut File) -> Result<Process> {
    let mut bytes = [0; PAGE];
    let len = read_at(file, &mut bytes, 0)?;
    if len < PAGE || bytes[..8] != MAGIC {
        bail!("not a recording");
    }
    let version = half(&bytes, offset_of!(Header, version));
    if version != VERSION {
        bail!(
            "recorded by another version of waitword (format {version}; this one reads {VERSION})"
        );
    }
    let causes = half(&bytes, offset_of!(Header, causes));
    Ok(Process {
        pid: half(&bytes, offset_of!(Header, pid)),
        began: number(&bytes, offset_of!(Header, began)),
        began_realtime: number(&bytes, offset_of!(Header, began_realtime)),
        threshold: number(&bytes, offset_of!(Header, threshold)),
        causes: [Causes::Switches, Causes::Sums].into_iter().find(|it| *it as u32 == causes),
        lost: number(&bytes, offset_of!(Header, lost))
            .saturating_add(number(&bytes, offset_of!(Header, unheard)))
            .saturating_add(number(&bytes, offset_of!(Header, stacks_lost))),
        ..Process::default()
    })
}

/// Adds what is in the rings only.
pub(super) fn read(
    file: &mut File,
    reading: &mut Reading,
    fold: &mut impl Fold,
    progress: &mut dyn FnMut(u64),
) -> Result<Flushed> {
    let mut flushed = Flushed::new();
    let mut ring = vec![0; RING_BYTES];
    progress(PAGE as u64);
    for index in 0..MOST_THREADS {
        let at = (PAGE + index * RING_BYTES) as u64;
        if !snapshot(file, &mut ring, at)? {
            break;
        }
        flushed.push(add(reading, fold, &ring));
        progress(RING_BYTES as u64);
    }
    Ok(flushed)
}

/// Reads a ring. Returns whether it is there. The thread may be writing meanwhile, so the ring is
/// read again if cells that have not been appended were replaced.
fn snapshot(file: &File, ring: &mut [u8], at: u64) -> io::Result<bool> {
    for _ in 0..TRIES {
        if read_at(file, ring, at)? < RING_BYTES {
            return Ok(false);
        }
        let mut now = [0; 8];
        read_at(file, &mut now, at + offset_of!(Ring, written) as u64)?;
        let from = number(ring, offset_of!(Ring, flushed));
        if u64::from_ne_bytes(now).wrapping_sub(from) <= CELLS as u64 {
            break;
        }
    }
    Ok(true)
}

/// Returns how many of the ring's cells are in the records file.
fn add(reading: &mut Reading, fold: &mut impl Fold, ring: &[u8]) -> u64 {
    let thread = half(ring, offset_of!(Ring, thread));
    let written = number(ring, offset_of!(Ring, written));
    let flushed = number(ring, offset_of!(Ring, flushed));
    let count = written.wrapping_sub(flushed);
    if count > CELLS as u64 {
        // Garbage: nothing is in this ring that a block could repeat.
        reading.lose(1);
        return u64::MAX;
    }
    let name = offset_of!(Ring, name);
    reading.name(thread, &ring[name..name + 16]);
    reading.priority(thread, half(ring, offset_of!(Ring, priority)));
    for at in 0..MOST_COUNTED {
        let field = |field| {
            let at = offset_of!(Ring, turns) + at * size_of::<CountedTurns>() + field;
            number(ring, at)
        };
        let turns = Turns::counted(
            field(offset_of!(CountedTurns, address)),
            field(offset_of!(CountedTurns, count)),
            field(offset_of!(CountedTurns, since)),
        );
        if let Some(turns) = turns.filter(|_| thread != 0) {
            reading.turns(thread, turns);
        }
    }
    let first = (flushed % CELLS as u64) as usize;
    let all = &ring[size_of::<Ring>()..size_of::<Ring>() + CELLS * size_of::<Cell>()];
    let (before, from) = all.split_at(first * size_of::<Cell>());
    let in_order = cells::of(from).chain(cells::of(before)).take(count as usize);
    cells::add(reading, fold, thread, in_order);
    flushed
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read_at(&mut buffer[len..], at + len as u64) {
            Ok(0) => break,
            Ok(got) => len += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
