//! Clock steps: CLOCK_REALTIME is set forwards and back, by three seconds at most, during waits
//! whose deadlines are on it.
//!
//! The clock belongs to the whole machine (no namespace has one of its own), so this happens only
//! on request. A separate process does it, which outlives the torture for a moment. However the
//! torture ends, even by a signal, that process corrects the clock, using the distance to
//! CLOCK_MONOTONIC at the start.

use super::choice::choices;
use super::kind::Fault;
use crate::memory::shared_memory;
#[cfg(not(test))]
use machine::{distance, set};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
#[cfg(test)]
use tests::{distance, set};

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = SECOND / 1000;
const MOST: i64 = 3 * SECOND;

/// See the module documentation.
pub(crate) struct Clock {
    /// When it is closed, by us or because we end, the clock is corrected.
    pipe: i32,
    process: i32,
    steps: &'static AtomicU64,
}

impl Clock {
    /// Sets the clock to the time that it shows.
    ///
    /// # Errors
    /// The clock may not be set.
    pub(crate) fn may_be_set() -> std::io::Result<()> {
        set(distance())
    }

    /// # Errors
    /// The clock may not be set.
    pub(crate) fn start(seed: u64) -> std::io::Result<Self> {
        let distance = distance();
        set(distance)?;
        // SAFETY: zeroed, aligned, and never unmapped.
        let steps = unsafe { AtomicU64::from_ptr(shared_memory(8).cast()) };
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let [ours, theirs] = [ends[1], ends[0]];
        // SAFETY: the child makes only system calls, and ends with _exit.
        let process = unsafe { libc::fork() };
        if process == 0 {
            // SAFETY: as above. In a session of its own, no Ctrl-C reaches it.
            unsafe {
                libc::setsid();
                libc::close(ours);
                step_until_closed(theirs, seed, distance, steps);
                libc::_exit(i32::from(set_right(distance).is_err()));
            }
        }
        // SAFETY: the child's end of the pipe. This process must not hold it open.
        unsafe { libc::close(theirs) };
        match process {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(Self { pipe: ours, process, steps }),
        }
    }

    /// Corrects the clock. Returns how often it was set.
    pub(crate) fn end(self) -> u64 {
        // SAFETY: our end of the pipe, closed once; then our child, waited for once.
        unsafe {
            libc::close(self.pipe);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
        self.steps.load(SeqCst)
    }
}

fn step_until_closed(pipe: i32, seed: u64, distance: i64, steps: &AtomicU64) {
    for number in 0.. {
        let mut dice = choices(seed, Fault::Clock, number);
        let mut poll = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
        // SAFETY: one whole entry.
        if unsafe { libc::poll(&raw mut poll, 1, dice.i32(1..60)) } > 0 {
            break;
        }
        let skew = match dice.u32(0..3) {
            0 => 0,
            1 => dice.i64(-MOST..MOST),
            _ => dice.i64(-MILLISECOND..MILLISECOND),
        };
        if set(distance + skew).is_ok() {
            steps.fetch_add(1, SeqCst);
        }
    }
}

/// Corrects the clock. A thread that loses its CPU after reading one clock and before setting the
/// other sets it late by that time. Then it tries again.
fn set_right(wanted: i64) -> std::io::Result<()> {
    const TRIES: usize = 1000;
    for _ in 0..TRIES {
        set(wanted)?;
        if (distance() - wanted).abs() < MILLISECOND / 10 {
            break;
        }
    }
    Ok(())
}

/// The machine's clocks.
#[cfg(not(test))]
mod machine {
    use super::SECOND;

    /// How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC: of several readings, the one that took
    /// the least time.
    pub(super) fn distance() -> i64 {
        const LOOKS: usize = 16;
        let look = |_| {
            let before = read(libc::CLOCK_MONOTONIC);
            let wall = read(libc::CLOCK_REALTIME);
            let after = read(libc::CLOCK_MONOTONIC);
            (after - before, wall - before)
        };
        let looks = (0..LOOKS).map(look);
        looks.min().map_or(0, |(_, distance)| distance)
    }

    fn read(clock: libc::clockid_t) -> i64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: room for a whole timespec.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec * SECOND + time.tv_nsec
    }

    /// Sets CLOCK_REALTIME this far ahead of CLOCK_MONOTONIC.
    pub(super) fn set(distance: i64) -> std::io::Result<()> {
        let wanted = read(libc::CLOCK_MONOTONIC) + distance;
        let time = libc::timespec {
            tv_sec: wanted.div_euclid(SECOND),
            tv_nsec: wanted.rem_euclid(SECOND),
        };
        // SAFETY: a whole timespec.
        match unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &raw const time) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Tests with a simulated clock: a number that processes share.
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, Result};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicI64};
    use std::time::Duration;

    #[derive(Default)]
    struct Machine {
        distance: AtomicI64,
        least: AtomicI64,
        most: AtomicI64,
        /// Setting it is not allowed.
        refuses: AtomicBool,
        /// The next change is made late.
        is_late: AtomicBool,
    }

    const RIGHT: i64 = 1_700_000_000 * SECOND;

    fn machine() -> &'static Machine {
        static MACHINE: OnceLock<usize> = OnceLock::new();
        let address = *MACHINE.get_or_init(|| shared_memory(size_of::<Machine>()) as usize);
        // SAFETY: zeroed, which is a valid `Machine`; aligned, and never unmapped.
        unsafe { &*(address as *const Machine) }
    }

    pub(super) fn distance() -> i64 {
        machine().distance.load(SeqCst)
    }

    pub(super) fn set(distance: i64) -> Result<()> {
        let machine = machine();
        if machine.refuses.load(SeqCst) {
            return Err(Error::from_raw_os_error(libc::EPERM));
        }
        let late = i64::from(machine.is_late.swap(false, SeqCst)) * SECOND;
        machine.distance.store(distance - late, SeqCst);
        machine.least.fetch_min(distance, SeqCst);
        machine.most.fetch_max(distance, SeqCst);
        Ok(())
    }

    /// Starts with a correct clock. One test at a time, because there is only one clock.
    fn with_clock(check: impl FnOnce(&Machine)) {
        static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _one = ONE.lock();
        let machine = machine();
        for time in [&machine.distance, &machine.least, &machine.most] {
            time.store(RIGHT, SeqCst);
        }
        check(machine);
    }

    fn until(condition: impl Fn() -> bool) {
        let began = std::time::Instant::now();
        while !condition() {
            assert!(began.elapsed() < Duration::from_secs(60), "it hangs");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether the clock has been more than a second off in both directions.
    fn was_stepped(machine: &Machine) -> bool {
        machine.least.load(SeqCst) < RIGHT - SECOND && machine.most.load(SeqCst) > RIGHT + SECOND
    }

    fn assert_bounded_and_right(machine: &Machine) {
        assert!(machine.least.load(SeqCst) >= RIGHT - MOST);
        assert!(machine.most.load(SeqCst) <= RIGHT + MOST);
        assert_eq!(machine.distance.load(SeqCst), RIGHT);
    }

    #[test]
    fn steps_stay_within_three_seconds_and_are_undone() {
        with_clock(|machine| {
            let clock = Clock::start(7).unwrap();
            until(|| was_stepped(machine));
            assert!(clock.end() > 0);
            assert_bounded_and_right(machine);
        });
    }

    #[test]
    fn a_clock_that_was_set_late_is_set_again() {
        with_clock(|machine| {
            machine.is_late.store(true, SeqCst);
            set_right(RIGHT).unwrap();
            assert_eq!(machine.distance.load(SeqCst), RIGHT);
        });
    }

    #[test]
    fn a_clock_that_may_not_be_set_is_an_error() {
        with_clock(|machine| {
            machine.refuses.store(true, SeqCst);
            let refused = Clock::start(7).err().and_then(|error| error.raw_os_error());
            machine.refuses.store(false, SeqCst);
            assert_eq!(refused, Some(libc::EPERM));
        });
    }

    /// By Ctrl-C, by a service manager, by the kernel when memory runs out.
    #[test]
    fn steps_are_undone_if_the_torture_is_killed() {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
            with_clock(|machine| {
                let mut ends = [0; 2];
                // SAFETY: room for two descriptors. The child makes only system calls, and waits to
                // be killed. Its copy of the pipe's end, and that of its own child, are closed when
                // they end.
                let torture = unsafe {
                    assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
                    libc::fork()
                };
                if torture == 0 {
                    // SAFETY: as above. The torture does not inherit the test program's signal
                    // handling.
                    unsafe {
                        libc::signal(signal, libc::SIG_DFL);
                        let clock = Clock::start(u64::from(signal.unsigned_abs()));
                        while clock.is_ok() {
                            libc::pause();
                        }
                        libc::_exit(1);
                    }
                }
                until(|| was_stepped(machine));
                let mut poll = libc::pollfd { fd: ends[0], events: libc::POLLIN, revents: 0 };
                // SAFETY: our own child and descriptors; one whole entry.
                unsafe {
                    libc::kill(torture, signal);
                    libc::waitpid(torture, std::ptr::null_mut(), 0);
                    libc::close(ends[1]);
                    assert_eq!(libc::poll(&raw mut poll, 1, 60_000), 1, "it steps on");
                    libc::close(ends[0]);
                }
                assert_bounded_and_right(machine);
            });
        }
    }
}
