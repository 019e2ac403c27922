//! Recordings whose structure is right and whose numbers are not: whatever a file says, it becomes
//! an error or a report in every format, in bounded memory.
//!
//! What is wrong with a recording follows from its seed, so a failure comes again.

use core::mem::offset_of;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::rc::Rc;
use tempfile::TempDir;
use waitword_profile::export::flame::{Waits, flamegraph};
use waitword_profile::export::{
    Recording, folded::folded, json::json, page::page, pprof::pprof, trace::trace,
};
use waitword_profile::profile::Profile;
use waitword_profile::{explain, read, text};
use waitword_record::format::{
    Block, CELLS, Cell, Header, Hold, MAGIC, MOST_THREADS, Object, PAGE, RING_BYTES, Ring, Tag,
    VERSION, Wait, stack_cells,
};
use waitword_testkit::watch;

/// How many recordings are damaged. They take some seconds.
const ROUNDS: u64 = 200;
/// A report in all formats may use so much memory, in bytes.
const MOST_MEMORY: u64 = 500_000_000;

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A number at which something may go wrong.
    fn odd(&mut self) -> u64 {
        match self.below(6) {
            0 | 1 => u64::MAX,
            2 => self.next(),
            3 => 1 << self.below(64),
            4 => self.of(&[0, 1, 2, 5, 63, 64, 65, 255, CELLS as u64 / 2, CELLS as u64 - 1]),
            _ => {
                let edge = [0, u64::MAX, u64::MAX / 2, u64::from(u32::MAX), CELLS as u64];
                self.of(&edge).wrapping_add(self.below(3) as u64).wrapping_sub(1)
            }
        }
    }
}

/// The files of a recording.
#[derive(Clone, Default)]
struct Files {
    rings: Vec<u8>,
    records: Vec<u8>,
    maps: Vec<u8>,
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + what.len()) {
        to.copy_from_slice(what);
    }
}

fn header() -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    put(&mut bytes, 0, &MAGIC);
    put(&mut bytes, offset_of!(Header, version), &VERSION.to_ne_bytes());
    put(&mut bytes, offset_of!(Header, pid), &7_u32.to_ne_bytes());
    put(&mut bytes, offset_of!(Header, began), &1000_u64.to_ne_bytes());
    put(&mut bytes, offset_of!(Header, threshold), &10_000_u64.to_ne_bytes());
    put(&mut bytes, offset_of!(Header, causes), &1_u32.to_ne_bytes());
    bytes
}

fn wait(number: u64, object: Object) -> Wait {
    Wait {
        tag: Tag::Wait as u8,
        object: object as u8,
        ended: (number % 4) as u8,
        weight_shift: (number % 3) as u8,
        stack: 1 + (number % 4) as u32,
        began: 2000 + 50_000 * number,
        took: 20_000 + number,
        address: 0x7000 + 64 * (number % 5),
        holder: 1 + (number % 3) as u32,
        holder_stack: 1 + (number % 5) as u32,
        waker: 1 + (number % 3) as u32,
        in_vain: 1,
        passed: 2,
        running: 300,
        preempted: 200,
        asleep: 500,
        call: 1 + number as u16 % 9,
        next: 0x7000 * (number % 2),
    }
}

/// Stacks, waits of every kind and holds.
fn cells(from: u64, count: u64) -> Vec<Cell> {
    let mut all = Vec::new();
    for number in 1..=4_u32 {
        let frames: Vec<u64> = (0..12 * u64::from(number)).map(|n| 0x1010 + 16 * n).collect();
        all.extend(stack_cells(number, number.into(), &frames));
    }
    for number in from..from + count {
        let object = Object::ALL[number as usize % Object::ALL.len()];
        all.push(wait(number, object).to_cell());
        if number % 5 == 0 {
            all.push(Hold::new(2, 2000, 30_000, 0x7000).to_cell());
        }
    }
    all
}

fn bytes(cells: &[Cell]) -> impl Iterator<Item = u8> {
    cells.iter().flat_map(|cell| cell.0).flat_map(u64::to_ne_bytes)
}

/// Two threads, each with cells in its ring and in two blocks.
fn recording() -> Files {
    let mut files = Files { rings: header(), ..Files::default() };
    for ring in 0..2_u64 {
        let all = cells(100 * ring, 60);
        let (appended, rest) = all.split_at(all.len() / 2);
        let (first, second) = appended.split_at(appended.len() / 2);
        for (cells, before) in [(first, 0), (second, first.len())] {
            let mut head = [0; size_of::<Block>()];
            put(&mut head, 0, &MAGIC);
            put(&mut head, offset_of!(Block, thread), &(ring as u32 + 1).to_ne_bytes());
            put(&mut head, offset_of!(Block, cells), &(cells.len() as u32).to_ne_bytes());
            put(&mut head, offset_of!(Block, name), b"worker");
            put(&mut head, offset_of!(Block, first), &before.to_ne_bytes());
            put(&mut head, offset_of!(Block, ring), &ring.to_ne_bytes());
            files.records.extend(head);
            files.records.extend(bytes(cells));
        }
        let start = files.rings.len();
        files.rings.resize(start + RING_BYTES, 0);
        let to = &mut files.rings[start..];
        put(to, offset_of!(Ring, thread), &(ring as u32 + 1).to_ne_bytes());
        put(to, offset_of!(Ring, number), &(ring as u32).to_ne_bytes());
        put(to, offset_of!(Ring, written), &all.len().to_ne_bytes());
        put(to, offset_of!(Ring, flushed), &appended.len().to_ne_bytes());
        let rest: Vec<u8> = bytes(rest).collect();
        put(to, size_of::<Ring>() + size_of_val(appended), &rest);
    }
    files.maps = b"# at 1000 ns\n\
        1000-2000 r-xp 00000000 fd:00 1   /no/such/program\n\
        2000-3000 r-xp 00001000 fd:00 1   /no/such/program\n\
        5000-6000 r-xp 00000000 fd:00 2   /no/such/library.so\n\
        # build-id 0123456789abcdef /no/such/program\n"
        .to_vec();
    files
}

/// Where numbers are, with their lengths.
type Fields = Vec<(usize, usize)>;

/// The fields of a wait, of a hold and of a stack's first cell.
const OF_CELL: [(usize, usize); 18] = [
    (0, 1),
    (1, 1),
    (2, 1),
    (3, 1),
    (4, 4),
    (8, 8),
    (16, 8),
    (24, 8),
    (32, 4),
    (36, 4),
    (40, 4),
    (44, 2),
    (46, 2),
    (48, 2),
    (50, 2),
    (52, 2),
    (54, 2),
    (56, 8),
];

/// These fields of each part that begins there.
fn at_each(starts: impl Iterator<Item = usize>, fields: &[(usize, usize)]) -> Fields {
    starts.flat_map(|start| fields.iter().map(move |(at, len)| (start + at, *len))).collect()
}

/// The fields of the header, of the heads of rings, and of cells in rings.
fn in_rings(rings: &[u8]) -> [Fields; 3] {
    let header = [(0, 8), (8, 4), (12, 4), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8), (56, 8)];
    let head = [(0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8)];
    let starts = || (PAGE..rings.len()).step_by(RING_BYTES);
    let cells = starts().flat_map(|ring| (0..150).map(move |n| ring + size_of::<Ring>() + 64 * n));
    [header.to_vec(), at_each(starts(), &head), at_each(cells, &OF_CELL)]
}

/// The fields of the heads of blocks, and of cells in blocks.
fn in_records(records: &[u8]) -> [Fields; 2] {
    let head = [(0, 8), (8, 4), (12, 4), (32, 8), (40, 8)];
    let blocks = memchr::memmem::find_iter(records, &MAGIC);
    let cells = (0..records.len()).step_by(size_of::<Cell>());
    [at_each(blocks, &head), at_each(cells, &OF_CELL)]
}

/// Changes a field of some kind.
fn change(bytes: &mut [u8], kinds: &[Fields], random: &mut Random) {
    let fields = &kinds[random.below(kinds.len())];
    if !fields.is_empty() {
        let (at, len) = random.of(fields);
        put(bytes, at, &random.odd().to_ne_bytes()[..len]);
    }
}

/// Makes one thing wrong.
fn damage(files: &mut Files, random: &mut Random) {
    match random.below(12) {
        0..4 => {
            let kinds = in_rings(&files.rings);
            change(&mut files.rings, &kinds, random);
        }
        4..7 => {
            let kinds = in_records(&files.records);
            change(&mut files.records, &kinds, random);
        }
        7 => {
            let file = if random.below(2) == 0 { &mut files.rings } else { &mut files.records };
            let len = random.below(file.len());
            file.truncate(len);
        }
        8 => {
            // A part of the records once more, or instead of another one, in cells or in bytes.
            let unit = random.of(&[1, 8, size_of::<Cell>()]);
            let place = |random: &mut Random, len: usize| random.below(len / unit + 1) * unit;
            let len = files.records.len();
            let (a, b) = (place(random, len), place(random, len));
            let part = files.records[a.min(b)..a.max(b)].to_vec();
            let to = place(random, len);
            let end = if random.below(2) == 0 { to } else { (to + part.len()).min(len) };
            files.records.splice(to..end, part);
        }
        9 => files.rings.resize(PAGE + RING_BYTES * random.below(5), 0),
        _ => damage_maps(&mut files.maps, random),
    }
}

fn damage_maps(maps: &mut Vec<u8>, random: &mut Random) {
    let (a, b) = (random.odd(), random.odd());
    let path = random.of(&[
        "/",
        "",
        "//",
        "/dev/zero",
        "/proc/self/mem",
        "/bin/true",
        "/no/such (deleted)",
        "[vdso]",
        "relative",
        "/no/\u{202e}\u{1}such",
        "/usr/lib",
        "/.",
        "/..",
        "\u{fffd}",
        "/<script>alert(1)</script>",
        "/a;b c",
        "]]>",
    ]);
    let line = match random.below(5) {
        0 => format!("{a:x}-{b:x} r-xp {:x} 0:0 1 {path}\n", random.odd()).into_bytes(),
        1 => format!("1000-{:x} r-xp {a:x} 0:0 1 {path}\n", 0x1001 + random.below(1 << 20))
            .into_bytes(),
        2 => format!("# build-id {a:x}{b:016x} {}\n", random.of(&["/no/such/program", path]))
            .into_bytes(),
        3 => [&b"1000-9000 r-xp 0 0:0 1 /\xff\xfe"[..], &vec![b'x'; random.below(9000)], b"\n"]
            .concat(),
        _ => {
            let at = random.below(maps.len());
            if let Some(byte) = maps.get_mut(at) {
                *byte = random.next() as u8;
            }
            return;
        }
    };
    // In front of a line, or within one.
    let at = random.below(maps.len() + 1);
    let at = if random.below(3) == 0 {
        at
    } else {
        maps[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    };
    maps.splice(at..at, line);
}

fn write(place: &Path, files: &Files) {
    let all = [("rings", &files.rings), ("records", &files.records), ("maps", &files.maps)];
    for (ending, contents) in all {
        fs::write(place.join(format!("7.1.{ending}")), contents).unwrap();
    }
}

/// Writes a format, and checks it.
type Format = fn(&mut Recording<'_>);

const FORMATS: [Format; 8] = [
    |recording| {
        let text = text::summary(recording);
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
    },
    |recording| {
        let mut written = Vec::new();
        json(recording, &mut written).unwrap();
        serde_json::from_slice::<serde_json::Value>(&written).unwrap();
    },
    |recording| {
        trace(recording, &mut io::sink()).unwrap();
    },
    |recording| assert!(!pprof(recording).unwrap().is_empty()),
    |recording| assert!(folded(recording, Waits::Locks).lines().all(|line| line.contains(' '))),
    |recording| is_well_formed(&flamegraph(recording, Waits::Locks)),
    |recording| is_well_formed(&flamegraph(recording, Waits::Work)),
    |recording| {
        let page = page(recording);
        assert_eq!(page.matches("<script>").count(), 2, "no name has become a script");
    },
];

/// The place of JSON among them.
const JSON: usize = 1;

fn is_well_formed(svg: &str) {
    roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
}

/// Reads a recording and writes these formats. Returns whether it could be read.
fn report(place: &Path, formats: &[Format]) -> bool {
    let profiles = match Profile::read(place, 100, &mut |_| {}) {
        Ok(profiles) => profiles,
        Err(error) => {
            let said = format!("{error:#}");
            assert!(said.contains("7.1.rings"), "it names the file: {said}");
            return false;
        }
    };
    let mut recording = Recording::new(&profiles, &Rc::default());
    formats.iter().for_each(|write| write(&mut recording));
    true
}

#[test]
fn whatever_a_recording_says_it_is_shown_or_refused() {
    let watchdog = watch();
    let place = TempDir::new().unwrap();
    let whole = recording();
    write(place.path(), &whole);
    assert!(report(place.path(), &FORMATS));
    let process = read::read(place.path()).unwrap().remove(0);
    assert_eq!((process.waits.len(), process.lost), (120, 0), "the whole one is understood");
    let (mut shown, mut refused) = (0, 0);
    for seed in 1..=ROUNDS {
        // What is said if a check fails.
        let _seed = Seed(seed);
        let mut random = Random::new(seed);
        let mut files = whole.clone();
        for _ in 0..=random.below(9) {
            damage(&mut files, &mut random);
        }
        write(place.path(), &files);
        let format = seed as usize % FORMATS.len();
        match report(place.path(), &FORMATS[format..=format]) {
            true => shown += 1,
            false => refused += 1,
        }
        if let Ok(processes) = read::read(place.path()) {
            let len = files.rings.len() + files.records.len();
            let cells = processes[0].waits.len() + processes[0].holds.len();
            assert!(cells * size_of::<Cell>() <= len, "{cells} cells in {len} bytes");
            let explained = explain::explain(place.path(), &mut |_| ()).unwrap();
            assert!(!explain::text(&explained).is_empty());
        }
        watchdog.pat();
    }
    assert!(shown > ROUNDS / 2 && refused > 0, "{shown} were shown, {refused} refused");
}

/// Says which recording it was.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed is {}", self.0);
        }
    }
}

/// The most memory that this process has used, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// All that is told apart differs: stacks, addresses, threads, locks, mappings.
#[test]
fn many_of_everything_fit_into_memory() {
    let watchdog = watch();
    let place = TempDir::new().unwrap();
    let create = |ending: &str| {
        let file = fs::File::create(place.path().join(format!("7.1.{ending}"))).unwrap();
        io::BufWriter::new(file)
    };
    create("rings").write_all(&header()).unwrap();
    const BLOCKS: u64 = 500;
    let mut records = create("records");
    for block in 0..BLOCKS {
        let mut these = Vec::new();
        for number in 0..30 {
            let stack = block * 30 + number;
            let frames: Vec<u64> =
                (0..64).map(|n| 0x1000_0000 + 0x1_0000 * ((stack * 64 + n) % 200_000)).collect();
            these.extend(stack_cells(stack as u32 + 1, 0, &frames));
        }
        for number in 0..15 {
            let number = block * 15 + number;
            let (stack, holder_stack) = (number as u32, (number as u32).wrapping_mul(7));
            let address = 64 * number;
            let wait = Wait { stack, holder_stack, address, ..wait(number, Object::Mutex) };
            these.push(wait.to_cell());
        }
        let mut head = [0; size_of::<Block>()];
        put(&mut head, 0, &MAGIC);
        put(&mut head, offset_of!(Block, thread), &(block as u32 + 1).to_ne_bytes());
        put(&mut head, offset_of!(Block, cells), &(these.len() as u32).to_ne_bytes());
        put(&mut head, offset_of!(Block, ring), &(MOST_THREADS as u64).to_ne_bytes());
        records.write_all(&head).unwrap();
        records.write_all(&bytes(&these).collect::<Vec<u8>>()).unwrap();
    }
    records.flush().unwrap();
    let mut maps = create("maps");
    let name = "n".repeat(200);
    for number in 0..100_000_u64 {
        let start = 0x1000_0000 + 0x2_0000 * number;
        let end = start + 0x2_0000;
        writeln!(maps, "{start:x}-{end:x} r-xp 0 0:0 1 /{number}-{name}").unwrap();
        writeln!(maps, "# build-id 00{number:06x} /{number}-{name}").unwrap();
    }
    maps.flush().unwrap();
    watchdog.pat();
    let before = peak();
    let profiles = Profile::read(place.path(), 100, &mut |_| {}).unwrap();
    assert!(profiles[0].process.lost > 0, "not all of it is kept");
    let mut recording = Recording::new(&profiles, &Rc::default());
    // Parsed, the JSON would need more memory than all that is measured here.
    let to_sink: Format = |recording| json(recording, &mut io::sink()).unwrap();
    for (number, format) in FORMATS.into_iter().enumerate() {
        watchdog.pat();
        if number == JSON {
            to_sink(&mut recording)
        } else {
            format(&mut recording)
        }
        let after = peak();
        assert!(after < MOST_MEMORY, "format {number}: {before} bytes before, {after} after it");
    }
}
