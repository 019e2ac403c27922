//! When the calling thread had a CPU, and why it had none.
//!
//! The kernel writes a record at each context switch of a thread into a ring of its own
//! (perf_event_open(2), `context_switch`, Linux 4.3). That needs no privilege where
//! `/proc/sys/kernel/perf_event_paranoid` is 2 or less. Elsewhere, and in containers that forbid
//! the call, nothing is known.
//!
//! The ring is mapped to be read only, so the kernel overwrites the oldest records, wakes no one
//! and never stops. It has one page: the last 256 switches. It rests if it costs too much
//! (`duty.rs`).

use crate::duty::{self, Duty};
use crate::files::time;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering, fence};

const PAGE: usize = 4096;
/// A record: a header of 8 bytes, and the time.
const RECORD: usize = 16;
/// The number of records that the ring keeps. The oldest may be overwritten while it is read.
const KEPT: u64 = (PAGE / RECORD) as u64;
/// Where the kernel's page has the number of bytes written so far.
const DATA_HEAD: usize = 1024;
const PERF_RECORD_SWITCH: u32 = 14;
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// The switches of a thread.
#[derive(Debug)]
pub(crate) struct Switches {
    /// Null: the thread has not asked, or it rests; [`Self::NONE`]: the kernel refuses.
    ring: Cell<*const u8>,
    /// When the ring was made (the thread was running then), and how long it stays.
    duty: Duty,
}

/// How a thread spent a time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) running: u64,
    /// Runnable, but without a CPU.
    pub(crate) preempted: u64,
    pub(crate) asleep: u64,
    /// How often it fell asleep.
    pub(crate) sleeps: u32,
}

/// A switch: its time, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Running,
    Preempted,
    Asleep,
}

/// The kernel's `struct perf_event_attr`, as far as it is used: version 5, 112 bytes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

impl Switches {
    /// The kernel refuses.
    const NONE: *const u8 = ptr::dangling();

    pub(crate) const fn new() -> Self {
        Self { ring: Cell::new(ptr::null()), duty: Duty::new() }
    }

    /// Begins to record the calling thread's switches, if it has not tried before.
    pub(crate) fn begin(&self) {
        if self.ring.get().is_null() {
            self.ring.set(open().unwrap_or(Self::NONE));
            self.duty.begin(time(libc::CLOCK_MONOTONIC));
        }
    }

    /// Ends a ring that costs too much in a process with so many threads, or begins one again.
    /// Returns whether it rests from now on.
    pub(crate) fn look(&self, now: u64, threads: u64) -> bool {
        if self.ring.get() == Self::NONE {
            return false;
        }
        // Each is one record when it ends and one when the thread runs again.
        let switches = if self.are_shown() { self.head() / (2 * RECORD as u64) } else { 0 };
        match self.duty.look(now, switches, threads) {
            duty::Then::Stay => false,
            duty::Then::Begin => {
                self.begin();
                false
            }
            duty::Then::Rest => {
                let ring = self.ring.replace(ptr::null());
                // SAFETY: the two pages that `open` has mapped. Only this thread knows them, and it
                // has just forgotten them.
                unsafe { libc::munmap(ring.cast_mut().cast(), 2 * PAGE) };
                true
            }
        }
    }

    /// Whether the kernel shows switches.
    pub(crate) fn are_shown(&self) -> bool {
        !self.ring.get().is_null() && self.ring.get() != Self::NONE
    }

    /// In a forked child: the ring is the parent's.
    pub(crate) fn forget(&self) {
        self.ring.set(ptr::null());
    }

    /// How the calling thread spent the time between these two, which is over, or most of it.
    /// `None` if that is not known.
    pub(crate) fn between(&self, from: u64, to: u64) -> Option<Spent> {
        if !self.are_shown() || from < self.duty.since() {
            return None;
        }
        let ring = self.ring.get();
        let count = self.head() / RECORD as u64;
        fence(Ordering::Acquire);
        let records = (count.saturating_sub(KEPT)..count).rev().map_while(|number| {
            let at = PAGE + (number % KEPT) as usize * RECORD;
            // SAFETY: a record lies within the second of the ring's two pages, which are mapped to
            // be read. The kernel writes it at the end of a switch of this thread, which therefore
            // does not read meanwhile.
            let (kind, misc, size, time) = unsafe {
                let record = ring.add(at);
                (
                    record.cast::<u32>().read_volatile(),
                    record.add(4).cast::<u16>().read_volatile(),
                    record.add(6).cast::<u16>().read_volatile(),
                    record.add(8).cast::<u64>().read_volatile(),
                )
            };
            let then = match misc {
                misc if misc & SWITCH_OUT == 0 => Then::Running,
                misc if misc & PREEMPTED != 0 => Then::Preempted,
                _ => Then::Asleep,
            };
            (kind == PERF_RECORD_SWITCH && usize::from(size) == RECORD).then_some((time, then))
        });
        spent(records, from, to, count < KEPT)
    }

    /// The number of bytes that the kernel has written, of a ring that there is.
    fn head(&self) -> u64 {
        debug_assert!(self.are_shown());
        // SAFETY: the ring's first page, which is mapped to be read. The kernel writes this number
        // as a whole.
        unsafe { &*self.ring.get().add(DATA_HEAD).cast::<AtomicU64>() }.load(Ordering::Acquire)
    }
}

/// Adds up the times between switches, which come from the newest to the oldest. `is_all`: before
/// the oldest of them the thread was running. If they do not reach back to `from`, the sum is that
/// of the time that is known; `None` if that is less than a quarter.
fn spent(
    switches: impl Iterator<Item = (u64, Then)>,
    from: u64,
    to: u64,
    is_all: bool,
) -> Option<Spent> {
    let (mut spent, mut until) = (Spent::default(), to);
    for (time, then) in switches {
        let begin = time.clamp(from, until);
        let place = match then {
            Then::Running => &mut spent.running,
            Then::Preempted => &mut spent.preempted,
            Then::Asleep => &mut spent.asleep,
        };
        *place += until - begin;
        spent.sleeps += u32::from(then == Then::Asleep && begin < until);
        until = begin;
        if time <= from {
            return Some(spent);
        }
    }
    if is_all {
        spent.running += until - from.min(until);
        return Some(spent);
    }
    ((to - until) * 4 >= to - from.min(to)).then_some(spent)
}

/// Makes a ring for the calling thread. The file is closed: the mapping keeps it.
fn open() -> Option<*const u8> {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_COUNT_SW_DUMMY: u64 = 9;
    const PERF_SAMPLE_TIME: u64 = 1 << 2;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HV: u64 = 1 << 6;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    const USE_CLOCKID: u64 = 1 << 25;
    const CONTEXT_SWITCH: u64 = 1 << 26;
    const PERF_FLAG_FD_CLOEXEC: u64 = 8;
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: PERF_COUNT_SW_DUMMY,
        sample_type: PERF_SAMPLE_TIME,
        flags: EXCLUDE_KERNEL | EXCLUDE_HV | SAMPLE_ID_ALL | USE_CLOCKID | CONTEXT_SWITCH,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    // SAFETY: the attributes may be read for their size; the rest are numbers: this thread, any
    // CPU, no group.
    let file = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    } as i32;
    if file < 0 {
        return None;
    }
    // SAFETY: a new mapping at an address of the kernel's choice; and the file that was opened
    // above, which is known only here.
    let address = unsafe {
        let address =
            libc::mmap(ptr::null_mut(), 2 * PAGE, libc::PROT_READ, libc::MAP_SHARED, file, 0);
        libc::close(file);
        address
    };
    (address != libc::MAP_FAILED).then_some(address.cast_const().cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn times_between_switches_are_added_up() {
        use Then::{Asleep, Preempted, Running};
        // From the newest to the oldest.
        let all = [(90, Running), (70, Asleep), (50, Running), (40, Preempted), (10, Running)];
        let of = |from, to, is_all| spent(all.into_iter(), from, to, is_all);
        let spent =
            |running, preempted, asleep, sleeps| Some(Spent { running, preempted, asleep, sleeps });
        assert_eq!(of(10, 100, false), spent(30 + 20 + 10, 10, 20, 1));
        assert_eq!(of(75, 85, false), spent(0, 0, 10, 1));
        assert_eq!(of(95, 100, false), spent(5, 0, 0, 0));
        assert_eq!(of(45, 60, false), spent(10, 5, 0, 0));
        // Older than what is known.
        assert_eq!(of(5, 20, false), spent(10, 0, 0, 0));
        assert_eq!(of(0, 12, false), None);
        assert_eq!(of(5, 20, true), spent(15, 0, 0, 0));
    }

    #[test]
    fn a_ring_rests_and_begins_again() {
        std::thread::spawn(|| {
            let switches = Switches::new();
            let now = || time(libc::CLOCK_MONOTONIC);
            let yield_for = |milliseconds: u64| {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(milliseconds) {
                    // Both switch, whatever else runs.
                    std::thread::sleep(Duration::from_nanos(1));
                }
            };
            switches.begin();
            if !switches.are_shown() {
                println!("the kernel allows no ring here");
                return;
            }
            // Other tests cannot make it rest for longer than this one waits.
            let mut rested = false;
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(60) {
                // Pretends that each millisecond is full of switches.
                duty::pretend_to_cost(now(), 1000);
                yield_for(1);
                let rests = switches.look(now(), 1);
                assert!(!(rests && switches.are_shown()));
                if rests {
                    assert_eq!(switches.between(now(), now()), None);
                }
                rested |= rests;
                if rested && switches.are_shown() {
                    return;
                }
            }
            panic!("rested: {rested}");
        })
        .join()
        .unwrap();
    }

    /// Prints what `duty::COST` is derived from.
    #[test]
    #[ignore = "a measurement"]
    fn what_a_ring_costs() {
        /// Two threads yield to each other on one CPU. Returns nanoseconds for each switch.
        fn turn(with_rings: bool) -> u128 {
            const TURNS: u32 = 500_000;
            let began = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        // SAFETY: an array of integers, for which zeros are valid.
                        let mut first: libc::cpu_set_t = unsafe { core::mem::zeroed() };
                        // SAFETY: there is a CPU 0 in the set.
                        unsafe { libc::CPU_SET(0, &mut first) };
                        let size = size_of::<libc::cpu_set_t>();
                        // SAFETY: reads a set of this size.
                        let failed = unsafe { libc::sched_setaffinity(0, size, &raw const first) };
                        assert_eq!(failed, 0, "CPU 0 may not be used");
                        let switches = Switches::new();
                        if with_rings {
                            switches.begin();
                            assert!(switches.are_shown(), "the kernel allows no ring here");
                        }
                        (0..TURNS).for_each(|_| std::thread::yield_now());
                    });
                }
            });
            began.elapsed().as_nanos() / u128::from(2 * TURNS)
        }
        for _ in 0..5 {
            println!("without {} ns, with {} ns", turn(false), turn(true));
        }
    }

    /// In a thread of its own, so that its first switch is near.
    #[test]
    fn a_thread_that_sleeps_and_one_that_runs_are_told_apart() {
        std::thread::spawn(|| {
            let switches = Switches::new();
            switches.begin();
            let now = || time(libc::CLOCK_MONOTONIC);
            let from = now();
            std::thread::sleep(Duration::from_millis(30));
            let slept = now();
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(30) {
                std::hint::spin_loop();
            }
            let ended = now();
            let Some(sleeping) = switches.between(from, slept) else {
                println!("the kernel allows no ring here");
                return;
            };
            assert!(sleeping.asleep * 10 > (slept - from) * 8, "{sleeping:?}");
            // A busy machine may take the CPU away, but the thread does not sleep.
            let computing = switches.between(slept, ended).unwrap();
            assert!(computing.asleep * 10 < ended - slept, "{computing:?}");
            let sum = computing.running + computing.preempted + computing.asleep;
            assert_eq!(sum, ended - slept);
        })
        .join()
        .unwrap();
    }
}
