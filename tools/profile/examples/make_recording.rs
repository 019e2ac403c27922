//! Writes a large recording, to measure `waitword report` with: `scripts/report-load`.
//!
//! ```text
//! make_recording DIR WAITS
//! ```
//!
//! 64 threads wait for 10,000 locks, some of them much more often than others, at 500 places.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use waitword_record::format::{
    Block, CELLS, Cell, MAGIC, Object, PAGE, Tag, VERSION, Wait, stack_cells,
};

const THREADS: u64 = 64;
const LOCKS: u64 = 10_000;
const PLACES: u64 = 500;
/// As many cells as a ring appends at once.
const APPENDED: usize = CELLS / 2;

fn bytes(cell: &Cell) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (to, number) in bytes.chunks_mut(8).zip(cell.0) {
        to.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

fn wait(number: u64) -> Wait {
    let random = |of: u64, salt: u64| {
        let mixed = (number ^ salt << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) % of
    };
    // Half of the waits are for a few locks.
    let locks = if random(2, 1) == 0 { 4 } else { LOCKS };
    let objects = [Object::Mutex, Object::Read, Object::Write, Object::Condvar];
    Wait {
        tag: Tag::Wait as u8,
        object: objects[random(4, 2) as usize] as u8,
        ended: 0,
        weight_shift: 0,
        stack: 1 + random(PLACES, 3) as u32,
        began: 1000 * number,
        took: 10_000 + random(1 << (10 + random(16, 4)), 5),
        address: 0x7f00_0000_0000 + 64 * random(locks, 6),
        holder: 1 + random(THREADS, 7) as u32,
        holder_stack: 1 + random(PLACES, 8) as u32,
        waker: 1 + random(THREADS, 9) as u32,
        in_vain: random(3, 10) as u16,
        passed: random(5, 11) as u16,
        running: 300,
        preempted: 100,
        asleep: 600,
        call: 1 + random(300, 12) as u16,
        next: 0,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, waits] = arguments.as_slice() else {
        return Err("usage: make_recording DIR WAITS".into());
    };
    let (directory, waits): (&Path, u64) = (directory.as_ref(), waits.parse()?);
    fs::create_dir_all(directory)?;
    let mut header = vec![0; PAGE];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[12..16].copy_from_slice(&1_u32.to_ne_bytes());
    header[32..40].copy_from_slice(&10_000_u64.to_ne_bytes());
    fs::write(directory.join("1.1.rings"), header)?;
    let mut records = BufWriter::new(File::create(directory.join("1.1.records"))?);
    let stacks = (1..=PLACES as u32).flat_map(|number| {
        let frames: Vec<u64> = (0..32).map(|n| 0x1000 * u64::from(number) + 16 * n).collect();
        stack_cells(number, number.into(), &frames).collect::<Vec<_>>()
    });
    let mut cells = stacks.chain((0..waits).map(|number| wait(number).to_cell()));
    let mut first = 0;
    for block in 0.. {
        // A stack of 32 frames has 5 cells: none is divided.
        let these: Vec<Cell> = cells.by_ref().take(APPENDED / 5 * 5).collect();
        if these.is_empty() {
            break;
        }
        let mut head = [0; size_of::<Block>()];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&(1 + block % THREADS as u32).to_ne_bytes());
        head[12..16].copy_from_slice(&(these.len() as u32).to_ne_bytes());
        head[16..22].copy_from_slice(b"thread");
        head[32..40].copy_from_slice(&u64::to_ne_bytes(first));
        head[40..48].copy_from_slice(&u64::from(block % THREADS as u32).to_ne_bytes());
        records.write_all(&head)?;
        for cell in &these {
            records.write_all(&bytes(cell))?;
        }
        first += these.len() as u64;
    }
    records.flush()?;
    Ok(())
}
