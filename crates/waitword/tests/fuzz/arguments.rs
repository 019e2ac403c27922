//! A call as the numbers that are passed to the kernel.

use super::kinds::{goes_by_wall_clock, inherits, waits_inheriting};
use super::memory::Memory;
use super::program::{Address, Call, List, Said, Time, Value};
use rustix::time::{ClockId, clock_gettime};
use syscalls::Sysno;
use waitword::raw::Timespec;
use waitword::raw::Waitv;
use waitword_testkit::raw::op::*;

const CLOCK_REALTIME_FLAG: i32 = 256;
const PRIVATE: u32 = 128;

/// A call, and the data that its arguments point to.
pub(crate) struct Prepared {
    pub(crate) call: Sysno,
    pub(crate) arguments: [usize; 6],
    time: Box<[Timespec; 2]>,
    _list: Vec<Waitv>,
}

impl Call {
    pub(crate) fn prepare(&self, memory: &Memory) -> Prepared {
        let mut time = Box::new([ZERO; 2]);
        let mut entries = Vec::new();
        let (call, arguments) = match *self {
            Self::Futex { op, word, val, time: limit, second, val3 } => {
                let clock = match op & !(PRIVATE as i32 | CLOCK_REALTIME_FLAG) {
                    WAIT => Clock::Relative,
                    _ if goes_by_wall_clock(op) => Clock::Absolute(ClockId::Realtime),
                    _ if op & CLOCK_REALTIME_FLAG != 0 => Clock::Absolute(ClockId::Realtime),
                    _ => Clock::Absolute(ClockId::Monotonic),
                };
                let arguments = [
                    memory.number(word),
                    op as usize,
                    val.number(word, memory) as u32 as usize,
                    limit.argument(clock, memory, &mut time),
                    memory.number(second),
                    val3.number(word, memory) as u32 as usize,
                ];
                (Sysno::futex, arguments)
            }
            Self::Futex2Wait { word, val, mask, flags, time: limit, clock } => {
                let arguments = [
                    memory.number(word),
                    val.number(word, memory) as usize,
                    mask as usize,
                    flags as usize,
                    limit.argument(Clock::of_id(clock), memory, &mut time),
                    clock as usize,
                ];
                (Sysno::futex_wait, arguments)
            }
            Self::Futex2Wake { word, mask, count, flags } => {
                let arguments =
                    [memory.number(word), mask as usize, count as usize, flags as usize, 0, 0];
                (Sysno::futex_wake, arguments)
            }
            Self::Futex2Requeue { ref list, flags, wake, moved } => {
                let (address, _) = list.put(memory, &mut entries);
                let arguments = [address, flags as usize, wake as usize, moved as usize, 0, 0];
                (Sysno::futex_requeue, arguments)
            }
            Self::Futex2Waitv { ref list, flags, time: limit, clock } => {
                let (address, length) = list.put(memory, &mut entries);
                let time = limit.argument(Clock::of_id(clock), memory, &mut time);
                let arguments = [address, length as usize, flags as usize, time, clock as usize, 0];
                (Sysno::futex_waitv, arguments)
            }
        };
        Prepared { call, arguments, time, _list: entries }
    }

    /// How many entries its thread has in our table while it waits.
    pub(crate) fn private_words(&self) -> usize {
        match self {
            Self::Futex { op, .. } => usize::from(*op as u32 & PRIVATE != 0 && !inherits(*op)),
            Self::Futex2Wait { flags, .. } => usize::from(flags & PRIVATE != 0),
            Self::Futex2Waitv { list, .. } => {
                let is_private = |entry: &&super::program::Entry| entry.flags & PRIVATE != 0;
                list.entries.iter().filter(is_private).count()
            }
            _ => 0,
        }
    }

    /// Whether a wait will have ended by the next step, whatever it waits for.
    pub(crate) fn ends_soon(&self) -> bool {
        let time = match self {
            Self::Futex { op, time, .. } if is_wait(*op) => time,
            Self::Futex2Wait { time, .. } | Self::Futex2Waitv { time, .. } => time,
            _ => return true,
        };
        matches!(time, Time::Past | Time::Askew | Time::Soon | Time::Wrong(..) | Time::At(_))
    }

    /// Whether this is a WAKE_OP with a comparison that no kernel knows.
    pub(crate) fn compares_in_an_unknown_way(&self, memory: &Memory) -> bool {
        let Self::Futex { op, word, val3, .. } = *self else {
            return false;
        };
        let operation = op & !(PRIVATE as i32 | CLOCK_REALTIME_FLAG);
        operation == WAKE_OP && val3.number(word, memory) >> 24 & 15 > 5
    }
}

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

fn is_wait(op: i32) -> bool {
    let command = op & !(PRIVATE as i32 | CLOCK_REALTIME_FLAG);
    matches!(command, WAIT | WAIT_BITSET) || waits_inheriting(op)
}

impl Prepared {
    /// The address of its time, if it has one.
    pub(crate) fn time(&self) -> usize {
        self.time.as_ptr().expose_provenance()
    }
}

impl Value {
    fn number(self, word: Address, memory: &Memory) -> u64 {
        match self {
            Value::Current => memory.value_at(word).unwrap_or(0).into(),
            Value::Is(number) => number,
        }
    }
}

/// How a call interprets its time.
#[derive(Clone, Copy)]
enum Clock {
    Relative,
    Absolute(ClockId),
}

impl Clock {
    /// An unknown clock is refused, whatever the time is.
    fn of_id(clock: i32) -> Self {
        Self::Absolute(match clock {
            libc::CLOCK_REALTIME => ClockId::Realtime,
            _ => ClockId::Monotonic,
        })
    }

    fn after(self, seconds: i64, nanoseconds: i64) -> Timespec {
        let now = match self {
            Self::Relative => ZERO,
            Self::Absolute(clock) => {
                let now = clock_gettime(clock);
                Timespec { tv_sec: now.tv_sec, tv_nsec: now.tv_nsec }
            }
        };
        let nanoseconds = now.tv_nsec + nanoseconds;
        Timespec {
            tv_sec: now.tv_sec + seconds + nanoseconds / 1_000_000_000,
            tv_nsec: nanoseconds % 1_000_000_000,
        }
    }
}

impl Time {
    fn argument(self, clock: Clock, memory: &Memory, time: &mut [Timespec; 2]) -> usize {
        time[0] = match self {
            Time::None => return 0,
            Time::At(address) => return memory.number(address),
            Time::Number(number) => return number as usize,
            // Both are 0.
            Time::Askew => return time.as_ptr().expose_provenance() + 1,
            Time::Past => ZERO,
            Time::Soon => clock.after(0, 300_000),
            Time::Far => clock.after(3600, 0),
            Time::Wrong(tv_sec, tv_nsec) => Timespec { tv_sec, tv_nsec },
        };
        time.as_ptr().expose_provenance()
    }
}

impl List {
    /// Its address and length as the call states them; the list itself goes into `entries`.
    fn put(&self, memory: &Memory, entries: &mut Vec<Waitv>) -> (usize, u32) {
        entries.extend(self.entries.iter().map(|entry| Waitv {
            val: entry.val.number(entry.word, memory),
            uaddr: memory.number(entry.word) as u64,
            flags: entry.flags,
            reserved: entry.reserved,
        }));
        let length = entries.len() as u32;
        if let Said::Odd = self.said {
            // Room to lie one byte further.
            entries.extend(entries.last().copied());
            let start = entries.as_mut_ptr().cast::<u8>();
            let bytes = length as usize * size_of::<Waitv>();
            // SAFETY: inside the list, which is one entry longer.
            unsafe { start.copy_to(start.add(1), bytes) };
        }
        let truth = entries.as_ptr().expose_provenance();
        match self.said {
            Said::Truth => (truth, length),
            Said::Odd => (truth + 1, length),
            Said::Length(length) => (truth, length),
            Said::Start(address) => (memory.number(address), length),
        }
    }
}
