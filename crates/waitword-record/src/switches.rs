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

use crate::duty::{CYCLE, Then as Duty};
use crate::files::time;
use crate::format::MOST_THREADS;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

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

/// The rings of this process, each at a place of its thread. Null: there is none, or a thread is
/// using it.
///
/// A thread owns the ring that it takes from a place. It puts it back or unmaps it. So a thread can
/// unmap the ring of another one that sleeps.
static PLACES: [AtomicPtr<u8>; MOST_THREADS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_THREADS];

/// A ring that was taken from its place, which gets it back.
struct Taken {
    ring: NonNull<u8>,
    place: &'static AtomicPtr<u8>,
}

impl Taken {
    fn from(place: &'static AtomicPtr<u8>) -> Option<Self> {
        // Acquire: what the thread that put it there has read of it, it has read before it is
        // unmapped.
        let ring = NonNull::new(place.swap(ptr::null_mut(), Ordering::Acquire))?;
        Some(Self { ring, place })
    }

    /// The number of bytes that the kernel has written.
    fn head(&self) -> u64 {
        // SAFETY: the ring's first page, which is mapped to be read. The kernel writes this number
        // as a whole.
        unsafe { self.ring.add(DATA_HEAD).cast::<AtomicU64>().as_ref() }.load(Ordering::Acquire)
    }

    fn unmap(self) {
        let ring = self.ring;
        core::mem::forget(self);
        // SAFETY: the two pages that `open` has mapped. Only this thread has their address, and
        // forgets it.
        unsafe { libc::munmap(ring.as_ptr().cast(), 2 * PAGE) };
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let (null, ring) = (ptr::null_mut(), self.ring.as_ptr());
        // Release: see `from`.
        if self.place.compare_exchange(null, ring, Ordering::Release, Ordering::Relaxed).is_err() {
            // The place belongs to a thread of another recording by now.
            Self { ..*self }.unmap();
        }
    }
}

/// Unmaps the rings at the first `count` places.
pub(crate) fn unmap(count: usize) {
    PLACES.iter().take(count).filter_map(Taken::from).for_each(Taken::unmap);
}

/// In a forked child: the rings are the parent's, and are not mapped here.
pub(crate) fn forget() {
    // Relaxed: no other thread has recorded anything.
    PLACES.iter().for_each(|place| place.store(ptr::null_mut(), Ordering::Relaxed));
}

/// What a look has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// The kernel shows the thread's switches from now on.
    Begun,
    /// The rings of all threads rest from now on.
    Rests,
}

/// The switches of a thread.
#[derive(Debug)]
pub(crate) struct Switches {
    /// The thread's place; `None`: it has none, or the kernel refuses.
    place: Cell<Option<&'static AtomicPtr<u8>>>,
    /// When the thread was first recorded.
    first: Cell<u64>,
    /// When its ring was made. It was running then.
    since: Cell<u64>,
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
    pub(crate) const fn new() -> Self {
        Self { place: Cell::new(None), first: Cell::new(0), since: Cell::new(0) }
    }

    /// The calling thread is recorded from now on, with a place of its own. Its switches are once
    /// [`look`](Self::look) says so.
    pub(crate) fn set_place(&self, place: usize, now: u64) {
        self.place.set(PLACES.get(place));
        self.unmap();
        self.first.set(now);
        if CYCLE.look(now, now, false) == Duty::RestAll {
            unmap(MOST_THREADS);
        }
    }

    /// Returns whether the kernel allows it.
    fn begin(&self) -> bool {
        let (Some(place), Some(ring)) = (self.place.get(), open()) else {
            self.place.set(None);
            return false;
        };
        // Release, Acquire: as in `Taken`. A ring that is there is of a thread that has just put it
        // back and has another place now, in another recording.
        let other = place.swap(ring.as_ptr(), Ordering::AcqRel);
        if let Some(ring) = NonNull::new(other) {
            Taken { ring, place }.unmap();
        }
        self.since.set(time(libc::CLOCK_MONOTONIC));
        true
    }

    /// Unmaps the ring at its place, which may be that of an ended thread.
    fn unmap(&self) {
        if let Some(taken) = self.take() {
            taken.unmap();
        }
    }

    fn take(&self) -> Option<Taken> {
        self.place.get().and_then(Taken::from)
    }

    /// Begins, or unmaps rings that cost too much. `count`: the number of places in use.
    pub(crate) fn look(&self, now: u64, count: usize) -> Option<Changed> {
        self.place.get()?;
        match CYCLE.look(now, self.first.get(), self.are_shown()) {
            Duty::Stay => None,
            Duty::Begin => self.begin().then_some(Changed::Begun),
            Duty::Rest => {
                self.unmap();
                None
            }
            Duty::RestAll => {
                unmap(count);
                Some(Changed::Rests)
            }
        }
    }

    /// Whether the kernel shows switches.
    pub(crate) fn are_shown(&self) -> bool {
        // Relaxed: a moment later it may be otherwise.
        self.place.get().is_some_and(|place| !place.load(Ordering::Relaxed).is_null())
    }

    /// How the calling thread spent the time between these two, which is over, or most of it.
    /// `None` if that is not known.
    pub(crate) fn between(&self, from: u64, to: u64) -> Option<Spent> {
        if from < self.since.get() {
            return None;
        }
        let taken = self.take()?;
        let count = taken.head() / RECORD as u64;
        fence(Ordering::Acquire);
        let records = (count.saturating_sub(KEPT)..count).rev().map_while(|number| {
            let at = PAGE + (number % KEPT) as usize * RECORD;
            // SAFETY: a record lies within the second of the ring's two pages, which are mapped to
            // be read. The kernel writes it at the end of a switch of this thread, which therefore
            // does not read meanwhile.
            let (kind, misc, size, time) = unsafe {
                let record = taken.ring.add(at);
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
fn open() -> Option<NonNull<u8>> {
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
    if address == libc::MAP_FAILED { None } else { NonNull::new(address.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    // Places of the tests.
    const RESTS: usize = 0;
    const SLEEPER: usize = 1;
    const TOLD_APART: usize = 2;
    const PUT_BACK: usize = 3;

    /// A test that makes rings has all of them: rings rest together.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        let _alone = alone();
        // Another thread has a ring and sleeps.
        let (show, shown) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            let switches = Switches::new();
            switches.set_place(SLEEPER, 0);
            switches.begin();
            show.send(switches.are_shown()).unwrap();
            ended.recv().unwrap_err();
            switches.are_shown()
        });
        if !shown.recv().unwrap() {
            println!("the kernel allows no ring here");
            return;
        }
        let now = || time(libc::CLOCK_MONOTONIC);
        let switches = Switches::new();
        switches.set_place(RESTS, 0);
        switches.begin();
        // Other tests cannot make it rest for longer than this one waits.
        let began = Instant::now();
        let within_a_minute = || assert!(began.elapsed() < Duration::from_secs(60));
        while switches.are_shown() {
            within_a_minute();
            // Each sleep is a switch.
            (0..100).for_each(|_| std::thread::sleep(Duration::from_nanos(1)));
            let changed = switches.look(now(), MOST_THREADS);
            assert!(changed != Some(Changed::Rests) || !switches.are_shown());
        }
        assert_eq!(switches.between(now(), now()), None);
        drop(end);
        assert!(!sleeper.join().unwrap(), "the sleeper's ring is left");
        while !switches.are_shown() {
            within_a_minute();
            std::thread::sleep(Duration::from_millis(10));
            assert_ne!(switches.look(now(), MOST_THREADS), Some(Changed::Rests));
        }
    }

    #[test]
    fn a_ring_whose_place_has_another_one_is_unmapped() {
        let _alone = alone();
        let place = &PLACES[PUT_BACK];
        let (Some(first), Some(second)) = (open(), open()) else {
            println!("the kernel allows no ring here");
            return;
        };
        let is_mapped = |ring: NonNull<u8>| {
            let line = format!("{:x}-", ring.addr());
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().any(|it| it.starts_with(&line) && it.ends_with("[perf_event]"))
        };
        drop(Taken { ring: first, place });
        let taken = Taken::from(place).unwrap();
        assert!(Taken::from(place).is_none() && is_mapped(first));
        place.store(second.as_ptr(), Ordering::Relaxed);
        drop(taken);
        assert!(!is_mapped(first) && is_mapped(second));
        Taken::from(place).unwrap().unmap();
        assert!(!is_mapped(second));
    }

    /// Prints what `duty::COST` is derived from.
    #[test]
    #[ignore = "a measurement"]
    fn what_a_ring_costs() {
        let _alone = alone();
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Rings {
            None,
            Unmapped,
            Mapped,
        }
        /// Two threads yield to each other on one CPU. Returns nanoseconds for each switch.
        fn turn(rings: Rings) -> u128 {
            const TURNS: u32 = 500_000;
            let took = Mutex::new(Duration::MAX);
            let all_ready = Barrier::new(2);
            std::thread::scope(|scope| {
                for place in [RESTS, SLEEPER] {
                    let (took, all_ready) = (&took, &all_ready);
                    scope.spawn(move || {
                        // SAFETY: an array of integers, for which zeros are valid.
                        let mut first: libc::cpu_set_t = unsafe { core::mem::zeroed() };
                        // SAFETY: there is a CPU 0 in the set.
                        unsafe { libc::CPU_SET(0, &mut first) };
                        let size = size_of::<libc::cpu_set_t>();
                        // SAFETY: reads a set of this size.
                        let failed = unsafe { libc::sched_setaffinity(0, size, &raw const first) };
                        assert_eq!(failed, 0, "CPU 0 may not be used");
                        let switches = Switches::new();
                        if rings != Rings::None {
                            switches.set_place(place, 0);
                            switches.begin();
                            assert!(switches.are_shown(), "the kernel allows no ring here");
                        }
                        if rings == Rings::Unmapped {
                            switches.unmap();
                        }
                        all_ready.wait();
                        let began = Instant::now();
                        (0..TURNS).for_each(|_| std::thread::yield_now());
                        let mut took = took.lock().unwrap();
                        *took = began.elapsed().min(*took);
                        drop(took);
                        all_ready.wait();
                        switches.unmap();
                    });
                }
            });
            took.into_inner().unwrap().as_nanos() / u128::from(2 * TURNS)
        }
        for _ in 0..5 {
            for rings in [Rings::None, Rings::Mapped, Rings::Unmapped] {
                println!("{rings:?}: {} ns", turn(rings));
            }
            // Until the kernel has forgotten them.
            std::thread::sleep(Duration::from_secs(2));
        }
    }

    /// In a thread of its own, so that its first switch is near.
    #[test]
    fn a_thread_that_sleeps_and_one_that_runs_are_told_apart() {
        let _alone = alone();
        std::thread::spawn(|| {
            let switches = Switches::new();
            switches.set_place(TOLD_APART, 0);
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
            if !switches.are_shown() {
                println!("the kernel allows no ring here");
                return;
            }
            let sleeping = switches.between(from, slept).unwrap();
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
