//! Recordings that are whole, cut off, or garbage.

use super::*;
use core::mem::offset_of;
use waitword_record::format::{
    Block, CELLS, Cell, MAGIC, PAGE, RING_BYTES, Ring, Tag, VERSION, stack_cells,
};

/// A rings file in the making.
pub(crate) struct Rings(Vec<u8>);

impl Rings {
    pub(crate) fn new() -> Self {
        let mut bytes = vec![0; PAGE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = VERSION as u8;
        Self(bytes)
    }

    /// Adds a ring with these cells of its thread, of which the first `flushed` are appended.
    pub(crate) fn ring(&mut self, thread: u32, flushed: usize, cells: &[Cell]) {
        let start = self.0.len();
        self.0.resize(start + RING_BYTES, 0);
        let ring = &mut self.0[start..];
        ring[..4].copy_from_slice(&thread.to_ne_bytes());
        let mut set = |at: usize, to: usize| {
            ring[at..at + 8].copy_from_slice(&to.to_ne_bytes());
        };
        set(offset_of!(Ring, written), cells.len());
        set(offset_of!(Ring, flushed), flushed);
        for (number, cell) in cells.iter().enumerate().skip(flushed) {
            let at = size_of::<Ring>() + number % CELLS * size_of::<Cell>();
            ring[at..at + size_of::<Cell>()].copy_from_slice(&bytes(cell));
        }
    }

    pub(crate) fn write(&self, directory: &Path) {
        fs::write(directory.join("1.2.rings"), &self.0).unwrap();
    }
}

fn bytes(cell: &Cell) -> Vec<u8> {
    cell.0.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// A block of a ring's cells.
pub(crate) fn block(ring: u64, thread: u32, first: usize, cells: &[Cell]) -> Vec<u8> {
    let mut head = vec![0; size_of::<Block>()];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&thread.to_ne_bytes());
    head[12..16].copy_from_slice(&(cells.len() as u32).to_ne_bytes());
    head[16..20].copy_from_slice(b"name");
    head[32..40].copy_from_slice(&first.to_ne_bytes());
    head[40..48].copy_from_slice(&ring.to_ne_bytes());
    head.extend(cells.iter().flat_map(bytes));
    head
}

fn wait(number: u64) -> Cell {
    Cell([u64::from(Tag::Wait as u8) | 1 << 8, number, 1, 0, 0, 0, 0, 0])
}

/// When the waits in this recording began, and how many are lost.
fn found(directory: &Path) -> (Vec<u64>, u64) {
    let process = read(directory).unwrap().remove(0);
    let mut began: Vec<u64> = process.waits.iter().map(|(_, wait)| wait.began).collect();
    began.sort_unstable();
    (began, process.lost)
}

/// A thread is killed after it has appended a block, or a part of one, and before it says so.
#[test]
fn what_is_in_a_block_and_in_the_ring_counts_once() {
    let place = tempfile::tempdir().unwrap();
    let cells: Vec<Cell> = (0..9).map(wait).collect();
    let mut rings = Rings::new();
    rings.ring(7, 3, &cells[..6]);
    // Another ring has a thread with the same number: it began when the first one had ended.
    rings.ring(7, 3, &cells[6..]);
    rings.write(place.path());
    let records = place.path().join("1.2.records");
    let marked = [block(0, 7, 0, &cells[..3]), block(1, 7, 0, &cells[6..])].concat();
    let unmarked = [marked.clone(), block(0, 7, 3, &cells[3..6])].concat();
    for len in marked.len()..=unmarked.len() {
        fs::write(&records, &unmarked[..len]).unwrap();
        let (waits, lost) = found(place.path());
        assert_eq!(waits, (0..9).collect::<Vec<_>>(), "{len} bytes");
        // A head that is cut off cannot be told from garbage.
        let is_cut = (1..size_of::<Block>()).contains(&(len - marked.len()));
        assert_eq!(lost, u64::from(is_cut), "{len} bytes");
    }
}

/// When the disk was full, a block is cut off. Others follow when there is room again.
#[test]
fn blocks_after_one_that_is_cut_off_are_found() {
    let place = tempfile::tempdir().unwrap();
    Rings::new().write(place.path());
    let cells: Vec<Cell> = (0..6).map(wait).collect();
    let (cut, next) = (block(0, 7, 0, &cells[..3]), block(1, 8, 0, &cells[3..]));
    let records = place.path().join("1.2.records");
    // After 16 bytes, the next head's magic number looks like the name of a thread.
    for len in (0..cut.len()).filter(|len| *len != offset_of!(Block, name)) {
        fs::write(&records, [&cut[..len], &next].concat()).unwrap();
        let (waits, lost) = found(place.path());
        let whole = (len.saturating_sub(size_of::<Block>()) / size_of::<Cell>()) as u64;
        let expected: Vec<u64> = (0..whole).chain(3..6).collect();
        assert_eq!(waits, expected, "{len} bytes");
        assert!(len == 0 || lost > 0, "{len} bytes");
    }
}

/// The window moves on over many blocks, and a stack is found in each.
#[test]
fn a_long_file_is_read_to_its_end() {
    let place = tempfile::tempdir().unwrap();
    Rings::new().write(place.path());
    let frames: Vec<u64> = (0..20).collect();
    let mut all = Vec::new();
    const BLOCKS: u64 = 100;
    const WAITS: u64 = 400;
    for number in 0..BLOCKS {
        let waits = (number * WAITS..(number + 1) * WAITS).map(wait);
        let cells: Vec<Cell> = stack_cells(number as u32, 0, &frames).chain(waits).collect();
        all.extend(block(0, 7, 0, &cells));
    }
    fs::write(place.path().join("1.2.records"), &all).unwrap();
    let mut seen = 0;
    let read = scan_with(place.path(), |_| Vec::new(), &mut |bytes| seen += bytes).unwrap();
    assert_eq!(seen, size(place.path()).unwrap());
    let (process, waits) = &read[0];
    let began: Vec<u64> = waits.iter().map(|(_, wait)| wait.began).collect();
    assert_eq!(began, (0..BLOCKS * WAITS).collect::<Vec<_>>());
    assert_eq!((process.stacks.len() as u64, process.lost), (BLOCKS, 0));
    assert!(process.stacks.values().all(|stack| *stack == frames));
    assert_eq!(process.threads[&7], "name");
}

/// Whatever a file contains, reading it ends, with an error or with what was understood.
#[test]
fn a_damaged_recording_is_read_as_far_as_it_goes() {
    let place = tempfile::tempdir().unwrap();
    let rings = place.path().join("1.2.rings");
    assert!(read(place.path()).unwrap_err().to_string().contains("no recording"));
    fs::write(&rings, b"short").unwrap();
    assert!(format!("{:#}", read(place.path()).unwrap_err()).contains("not a recording"));
    let mut bytes = vec![0; PAGE + RING_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8] = 99;
    fs::write(&rings, &bytes).unwrap();
    assert!(format!("{:#}", read(place.path()).unwrap_err()).contains("another version"));
    bytes[8] = VERSION as u8;
    let mut random = 1_u64;
    for round in 0..200 {
        for byte in &mut bytes[PAGE..] {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            *byte = (random >> 32) as u8 & if round % 2 == 0 { 0xff } else { 0x03 };
        }
        if round % 3 == 0 {
            // A plausible count.
            bytes[PAGE + 8..PAGE + 24].fill(0);
            bytes[PAGE + 8] = 200;
        }
        fs::write(&rings, &bytes[..PAGE + RING_BYTES - round]).unwrap();
        let mut records = bytes[PAGE + 13 * round..].to_vec();
        for at in (0..records.len()).step_by(999) {
            // Heads with any numbers.
            let end = records.len().min(at + 8);
            records[at..end].copy_from_slice(&MAGIC[..end - at]);
        }
        fs::write(place.path().join("1.2.records"), &records).unwrap();
        fs::write(place.path().join("1.2.maps"), &bytes[PAGE..PAGE + 999]).unwrap();
        read(place.path()).unwrap();
    }
}
