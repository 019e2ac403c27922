//! The format of a recording. `recorder.rs` writes it, `waitword report` reads it.
//!
//! A recording is a directory. Each process that records has three files there, named after its
//! process ID and the time when it began (nanoseconds since 1970), because an exec begins another
//! recording under the same ID:
//!
//! | file | contents |
//! |---|---|
//! | `PID.TIME.rings` | a [`Header`] page, then a [`Ring`] for each thread; mapped by the process |
//! | `PID.TIME.records` | blocks of full rings: a [`Block`], then its cells |
//! | `PID.TIME.maps` | copies of `/proc/self/maps`, each after a line `# at N ns` |
//!
//! A copy of the maps is followed by lines `# build-id HEX FILE`, for the files on stacks that have
//! a GNU build ID.
//!
//! A thread writes [cells](Cell) into its ring, and appends them to the records file when the ring
//! is half full. So if the process is killed, its last cells are still in the rings file: those
//! from [`Ring::flushed`] to [`Ring::written`]. If it is killed between appending a block and
//! setting `flushed`, the block (or a part of it) is in the records file too: a block that does not
//! begin before its ring's `flushed` does not count.
//!
//! All numbers are in the byte order of the machine. Times are in nanoseconds of
//! `CLOCK_MONOTONIC`.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The first eight bytes of a rings file.
pub const MAGIC: [u8; 8] = *b"waitring";
/// The format that this file describes.
pub const VERSION: u32 = 3;
/// The size of the header and the alignment of all that follows.
pub const PAGE: usize = 4096;
/// The size of a ring with its head. With the two pages in which the kernel records a thread's
/// switches, and a little, a thread takes 64 KiB.
pub const RING_BYTES: usize = 52 * 1024;
/// The number of cells of a ring.
pub const CELLS: usize = (RING_BYTES - size_of::<Ring>()) / size_of::<Cell>();
/// The most threads that record at once. Those beyond are only counted ([`Header::unheard`]).
pub const MOST_THREADS: usize = 4096;
/// The most locks of a thread that [`Ring::held`] has room for.
pub const MOST_HELD: usize = 40;
/// The bit of an address in [`Ring::held`] that says: held together with other readers. Locks have
/// even addresses.
pub const HELD_TO_READ: u64 = 1;
/// The number of locks of which a thread counts its turns.
pub const MOST_COUNTED: usize = 4;
/// After a wait of this length a thread reads its priority again, in nanoseconds: a thousand times
/// what that takes.
pub const PRIORITY_AGAIN: u64 = 1_000_000;
/// The greatest number of frames in a stack.
pub const MOST_FRAMES: usize = 64;
/// Return addresses in the first cell of a stack, and in each one after it.
const FIRST_FRAMES: usize = 6;
const MORE_FRAMES: usize = 8;

/// The first page of a rings file.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`]; written last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// The process ID, in the process's own namespace.
    pub pid: AtomicU32,
    /// When the recording began.
    pub began: AtomicU64,
    /// The same moment in nanoseconds since 1970.
    pub began_realtime: AtomicU64,
    /// Shorter waits are not recorded.
    pub threshold: AtomicU64,
    /// Cells that could not be written: no space, or a signal handler interrupted a write.
    pub lost: AtomicU64,
    /// Waits of threads that have no ring.
    pub unheard: AtomicU64,
    /// Stacks of which only a part is known: the recording's index was full.
    pub stacks_lost: AtomicU64,
    /// The number of rings that are or were in use.
    pub rings: AtomicU32,
    /// Where the holders' causes come from: a [`Causes`].
    pub causes: AtomicU32,
}

/// How it is known whether a holder ran, was preempted or slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Causes {
    /// It is not known.
    Unknown = 0,
    /// From the kernel's context switches: exact.
    Switches = 1,
    /// From sums in `/proc/PID/task/TID/schedstat`: coarser.
    Sums = 2,
}

/// The head of a ring, in front of its cells. One thread writes it, except where it says otherwise.
///
/// What it says of the present (`waiting` to `held`) is for readers in other processes: which
/// thread waits for which other one. It may be a moment old, and the fields may belong to different
/// moments.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ring {
    /// The thread's number; 0: the ring is free.
    pub thread: AtomicU32,
    /// The ring's place in the file, counted from 0.
    pub number: AtomicU32,
    /// The number of cells written so far. Cell `n` is at place `n % CELLS`.
    pub written: AtomicU64,
    /// The number of those that are in the records file.
    pub flushed: AtomicU64,
    /// The thread's name when it first recorded, ended by zeros.
    pub name: [AtomicU64; 2],
    /// The address of the object that the thread waits for; 0: it does not wait.
    pub waiting: AtomicU64,
    /// Since when, if it waits.
    pub since: AtomicU64,
    /// The number of the [`Object`], if it waits.
    pub object: AtomicU32,
    /// The system call in which another process found the thread asleep, plus one, and when.
    /// Written by that process.
    pub call: AtomicU32,
    /// See `call`.
    pub call_at: AtomicU64,
    /// How many locks the thread holds. More than [`MOST_HELD`] are not in `held`.
    pub held_count: AtomicU32,
    /// 1: the wait has a deadline, so it ends by itself.
    pub has_deadline: AtomicU32,
    /// Their addresses, the oldest first. See [`HELD_TO_READ`].
    pub held: [AtomicU64; MOST_HELD],
    /// How often it has taken these locks.
    pub turns: [CountedTurns; MOST_COUNTED],
    /// Its [`Priority`], read again after each wait of [`PRIORITY_AGAIN`].
    pub priority: AtomicU32,
    _padding: AtomicU32,
}

/// How often a thread has taken a lock, in its [`Ring`].
#[repr(C)]
#[derive(Debug)]
pub struct CountedTurns {
    /// The lock's address; 0: none.
    pub address: AtomicU64,
    /// How often.
    pub count: AtomicU64,
    /// Since when, and [`IS_CONTENDED`].
    pub since: AtomicU64,
}

/// The bit of [`CountedTurns::since`] that says that another thread has wanted the lock.
pub const IS_CONTENDED: u64 = 1;

/// The priority of a thread: the smaller, the more urgent, as in the kernel. 0: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub u32);

/// Precedes the cells of a thread in the records file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// [`MAGIC`].
    pub magic: u64,
    /// The thread's number.
    pub thread: u32,
    /// The number of cells that follow.
    pub cells: u32,
    /// The thread's name.
    pub name: [u8; 16],
    /// The number of cells that were written into the ring before these.
    pub first: u64,
    /// The number of the ring. Thread numbers are used again, and a ring passes from thread to
    /// thread; [`Block::first`] counts on within a ring.
    pub ring: u64,
    /// The thread's [`Priority`] at that time.
    pub priority: u32,
    /// For the size of a cell.
    pub padding: [u32; 3],
}

/// What a cell contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// A [`Wait`].
    Wait = 1,
    /// The beginning of a stack: [`stack_cells`].
    Stack = 2,
    /// More return addresses of the stack before it.
    Frames = 3,
    /// A [`Hold`].
    Hold = 4,
    /// A [`Turns`].
    Turns = 5,
}

/// 64 bytes, a line of the cache.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell(pub [u64; 8]);

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Object {
    /// A mutex.
    Mutex = 1,
    /// An rwlock, to read.
    Read = 2,
    /// An rwlock, to write.
    Write = 3,
    /// A condition variable.
    Condvar = 4,
    /// A semaphore.
    Semaphore = 5,
    /// A barrier.
    Barrier = 6,
    /// A raw futex.
    Futex = 7,
    /// The end of a thread.
    Join = 8,
    /// A once.
    Once = 9,
    /// A spin lock.
    Spin = 10,
}

impl Object {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Mutex,
        Self::Read,
        Self::Write,
        Self::Condvar,
        Self::Semaphore,
        Self::Barrier,
        Self::Futex,
        Self::Join,
        Self::Once,
        Self::Spin,
    ];

    /// Whether a wait for it is contention: another thread holds what this one wants. All others
    /// are waits for work or for an event.
    pub fn is_lock(self) -> bool {
        matches!(self, Self::Mutex | Self::Read | Self::Write | Self::Once | Self::Spin)
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ended {
    /// The thread has what it waited for.
    Got = 0,
    /// The deadline passed.
    TimedOut = 1,
    /// Interrupted, cancelled, or in error.
    Broken = 2,
    /// The thread has what it waited for: it was kept for this thread by the one that released it,
    /// so that no other thread could take it in between.
    HandedOver = 3,
}

/// A wait that lasted longer than the threshold.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// [`Tag::Wait`].
    pub tag: u8,
    /// The number of an [`Object`].
    pub object: u8,
    /// The number of an [`Ended`].
    pub ended: u8,
    /// How many waits this one stands for, as a power of two: sampling.
    pub weight_shift: u8,
    /// The waiter's stack; 0: unknown.
    pub stack: u32,
    /// When the wait began.
    pub began: u64,
    /// How long it took.
    pub took: u64,
    /// The object's address.
    pub address: u64,
    /// The thread that kept the object for the longest part of the wait; 0: unknown. If it waited
    /// for another lock meanwhile, this is the holder of that one, and so on ([`Wait::next`]).
    pub holder: u32,
    /// That thread's stack at its unlock; 0: unknown.
    pub holder_stack: u32,
    /// The thread that ended the wait; 0: unknown.
    pub waker: u32,
    /// How often the thread was woken and had to sleep again.
    pub in_vain: u16,
    /// How often other threads released the lock meanwhile.
    pub passed: u16,
    /// The thousandths of the wait during which the holder ran, ...
    pub running: u16,
    /// ... was runnable, but had no CPU, ...
    pub preempted: u16,
    /// ... and slept. The rest is unknown.
    pub asleep: u16,
    /// The system call in which the holder slept, plus one; 0: unknown.
    pub call: u16,
    /// If the thread that kept this lock waited for another one most of that time, its address; 0:
    /// it did not.
    pub next: u64,
}

/// A lock that a thread kept for longer than the threshold while other threads waited for it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// [`Tag::Hold`].
    pub tag: u8,
    _padding: [u8; 3],
    /// The holder's stack at its unlock; 0: unknown.
    pub stack: u32,
    /// Since when it kept the lock while other threads waited for it.
    pub began: u64,
    /// How long.
    pub took: u64,
    /// The lock's address.
    pub address: u64,
    /// As in [`Wait`].
    pub running: u16,
    /// As in [`Wait`].
    pub preempted: u16,
    /// As in [`Wait`].
    pub asleep: u16,
    /// As in [`Wait`].
    pub call: u16,
    _rest: [u64; 3],
}

/// How often a thread that has ended had taken a lock that threads waited for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// [`Tag::Turns`].
    pub tag: u64,
    /// The lock's address.
    pub address: u64,
    /// How often.
    pub count: u64,
    /// Since when.
    pub since: u64,
    _rest: [u64; 4],
}

const _: () = assert!(size_of::<Header>() <= PAGE);
const _: () = assert!(size_of::<Turns>() == size_of::<Cell>());
const _: () = assert!(size_of::<Ring>() == 8 * size_of::<Cell>());
const _: () = assert!(size_of::<Block>() == size_of::<Cell>());
const _: () = assert!(size_of::<Wait>() == size_of::<Cell>());
const _: () = assert!(size_of::<Hold>() == size_of::<Cell>());

impl Priority {
    /// It is not known.
    pub const UNKNOWN: Self = Self(0);
    /// `SCHED_DEADLINE`.
    pub const DEADLINE: Self = Self(1);
    /// `SCHED_IDLE`.
    pub const IDLE: Self = Self(141);

    /// `SCHED_FIFO` or `SCHED_RR`, with a priority of 1 to 99.
    pub fn real_time(priority: i32) -> Self {
        Self(101 - priority.clamp(1, 99) as u32)
    }

    /// `SCHED_OTHER` or `SCHED_BATCH`, with a niceness of -20 to 19.
    pub fn nice(nice: i32) -> Self {
        Self((121 + nice.clamp(-20, 19)) as u32)
    }

    /// Whether both are known and this one comes first on a CPU.
    pub fn is_before(self, other: Self) -> bool {
        let is_known = |it| (Self::DEADLINE..=Self::IDLE).contains(&it);
        is_known(self) && is_known(other) && self < other
    }
}

impl core::fmt::Display for Priority {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            1 => f.write_str("SCHED_DEADLINE"),
            number @ 2..=100 => write!(f, "real-time priority {}", 101 - number),
            number @ 101..=140 => write!(f, "niceness {}", number as i32 - 121),
            141 => f.write_str("SCHED_IDLE"),
            _ => f.write_str("unknown priority"),
        }
    }
}

impl Turns {
    /// Turns at this lock.
    pub fn new(address: u64, count: u64, since: u64) -> Self {
        Self { tag: Tag::Turns as u64, address, count, since, _rest: [0; 4] }
    }

    /// From what a ring has. `None`: the place is free, or no other thread has wanted the lock.
    pub fn counted(address: u64, count: u64, since: u64) -> Option<Self> {
        let is_shown = address != 0 && since & IS_CONTENDED != 0;
        is_shown.then(|| Self::new(address, count, since & !IS_CONTENDED))
    }

    /// As a cell.
    pub fn to_cell(self) -> Cell {
        let Self { tag, address, count, since, _rest: [a, b, c, d] } = self;
        Cell([tag, address, count, since, a, b, c, d])
    }

    /// From a cell with the tag of turns. Any other numbers are turns.
    pub fn of_cell(Cell([tag, address, count, since, a, b, c, d]): Cell) -> Option<Self> {
        let turns = Self { tag, address, count, since, _rest: [a, b, c, d] };
        (tag & 0xff == Tag::Turns as u64).then_some(turns)
    }
}

impl Hold {
    /// A hold of this lock; its causes are unknown.
    pub fn new(stack: u32, began: u64, took: u64, address: u64) -> Self {
        Self {
            tag: Tag::Hold as u8,
            _padding: [0; 3],
            stack,
            began,
            took,
            address,
            running: 0,
            preempted: 0,
            asleep: 0,
            call: 0,
            _rest: [0; 3],
        }
    }

    /// As a cell.
    pub fn to_cell(self) -> Cell {
        // SAFETY: both are 64 bytes; a hold has no padding of the compiler's, and any bits are
        // eight numbers.
        unsafe { core::mem::transmute(self) }
    }

    /// From a cell with the tag of a hold. Any bits are a hold.
    pub fn of_cell(cell: Cell) -> Option<Self> {
        // SAFETY: both are 64 bytes, and any bits are integers.
        let hold: Self = unsafe { core::mem::transmute(cell) };
        (hold.tag == Tag::Hold as u8).then_some(hold)
    }
}

impl Wait {
    /// As a cell.
    pub fn to_cell(self) -> Cell {
        // SAFETY: both are 64 bytes; a wait has no padding, and any bits are eight numbers.
        unsafe { core::mem::transmute(self) }
    }

    /// From a cell with the tag of a wait. Any bits are a wait: its numbers are checked by the
    /// reader.
    pub fn of_cell(cell: Cell) -> Option<Self> {
        // SAFETY: both are 64 bytes, and any bits are integers.
        let wait: Self = unsafe { core::mem::transmute(cell) };
        (wait.tag == Tag::Wait as u8).then_some(wait)
    }

    /// The object, if its number is known.
    pub fn object(&self) -> Option<Object> {
        Object::ALL.get(usize::from(self.object).wrapping_sub(1)).copied()
    }
}

/// The cells of a stack. Its first cell: the tag, the number of frames and the stack's number; the
/// stack's hash; then return addresses, the innermost first.
pub fn stack_cells(number: u32, hash: u64, frames: &[u64]) -> impl Iterator<Item = Cell> + '_ {
    let frames = &frames[..frames.len().min(MOST_FRAMES)];
    let (first, more) = frames.split_at(frames.len().min(FIRST_FRAMES));
    let mut head = [0; 8];
    head[0] = Tag::Stack as u64 | (frames.len() as u64) << 8 | u64::from(number) << 32;
    head[1] = hash;
    head[2..2 + first.len()].copy_from_slice(first);
    let more = more.chunks(MORE_FRAMES).map(|chunk| {
        let mut cell = [0; 8];
        cell[..chunk.len()].copy_from_slice(chunk);
        Cell(cell)
    });
    core::iter::once(Cell(head)).chain(more)
}

/// The number of cells of a stack with this many frames.
pub fn cells_of_stack(frames: usize) -> usize {
    1 + frames.min(MOST_FRAMES).saturating_sub(FIRST_FRAMES).div_ceil(MORE_FRAMES)
}

/// The number of a stack and of its frames, from its first cell.
pub fn stack_head(cell: Cell) -> Option<(u32, usize)> {
    let [head, ..] = cell.0;
    let frames = (head >> 8 & 0xff) as usize;
    let is_stack = head & 0xff == Tag::Stack as u64 && frames <= MOST_FRAMES;
    is_stack.then_some(((head >> 32) as u32, frames))
}

/// The return addresses of a stack, from its cells.
pub fn stack_frames(cells: &[Cell]) -> impl Iterator<Item = u64> + '_ {
    let frames = cells.first().copied().and_then(stack_head).map_or(0, |(_, frames)| frames);
    let (first, more) = cells.split_at(cells.len().min(1));
    let first = first.iter().flat_map(|cell| cell.0[2..].iter());
    first.chain(more.iter().flat_map(|cell| cell.0.iter())).copied().take(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_comes_back_whatever_its_length() {
        for len in [0, 1, 5, 6, 7, 14, 15, 63, 64, 100] {
            let frames: Vec<u64> = (0..len).map(|n| 0x4000 + n).collect();
            let cells: Vec<Cell> = stack_cells(7, 99, &frames).collect();
            assert_eq!(cells.len(), cells_of_stack(frames.len()));
            let kept = frames.len().min(MOST_FRAMES);
            assert_eq!(stack_head(cells[0]), Some((7, kept)));
            assert_eq!(stack_frames(&cells).collect::<Vec<_>>(), frames[..kept]);
        }
    }

    #[test]
    fn priorities_are_in_the_kernel_s_order() {
        let order = [
            Priority::DEADLINE,
            Priority::real_time(99),
            Priority::real_time(1),
            Priority::nice(-20),
            Priority::nice(0),
            Priority::nice(19),
            Priority::IDLE,
        ];
        assert!(order.windows(2).all(|two| two[0].is_before(two[1]) && !two[1].is_before(two[0])));
        assert!(!Priority::UNKNOWN.is_before(Priority::IDLE));
        assert!(!Priority::DEADLINE.is_before(Priority(142)));
        let shown: Vec<String> = order.iter().map(Priority::to_string).collect();
        assert_eq!(
            shown[1..6],
            [
                "real-time priority 99",
                "real-time priority 1",
                "niceness -20",
                "niceness 0",
                "niceness 19",
            ]
        );
    }

    #[test]
    fn turns_come_back() {
        let turns = Turns::counted(0x40, 7, 100 | IS_CONTENDED).unwrap();
        assert_eq!(turns, Turns::new(0x40, 7, 100));
        assert_eq!(Turns::of_cell(turns.to_cell()), Some(turns));
        assert_eq!(Turns::of_cell(Cell([0; 8])), None);
        assert_eq!(Turns::counted(0x40, 7, 100), None, "nobody wanted it");
        assert_eq!(Turns::counted(0, 7, 1), None);
    }

    #[test]
    fn a_wait_comes_back_and_garbage_is_none() {
        let wait = Wait {
            tag: Tag::Wait as u8,
            object: Object::Condvar as u8,
            ended: Ended::TimedOut as u8,
            weight_shift: 3,
            stack: 4,
            began: 5,
            took: 6,
            address: 7,
            holder: 8,
            holder_stack: 9,
            waker: 15,
            in_vain: 16,
            passed: 17,
            running: 10,
            preempted: 11,
            asleep: 12,
            call: 13,
            next: 14,
        };
        assert_eq!(Wait::of_cell(wait.to_cell()), Some(wait));
        assert_eq!(wait.object(), Some(Object::Condvar));
        assert_eq!(Wait { object: 200, ..wait }.object(), None);
        assert_eq!(Wait { object: 0, ..wait }.object(), None);
        assert_eq!(Wait::of_cell(Cell([0; 8])), None);
        let hold = Hold { asleep: 900, call: 36, ..Hold::new(1, 2, 3, 4) };
        assert_eq!(Hold::of_cell(hold.to_cell()), Some(hold));
        assert_eq!((Hold::of_cell(wait.to_cell()), Wait::of_cell(hold.to_cell())), (None, None));
        assert_eq!(stack_head(Cell([u64::MAX; 8])), None);
    }
}
