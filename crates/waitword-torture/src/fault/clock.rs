//! Clock steps: CLOCK_REALTIME is set forwards and back, by three seconds at most, while waits run whose deadlines are
//! on it.
//!
//! The clock belongs to the whole machine (no namespace has one of its own), so this happens only on request, by
//! a process of its own that outlives the torture for a moment: however that ends, by a signal too, it sets the
//! clock right, from the distance to CLOCK_MONOTONIC at the start.

use super::{Fault, choices};
use crate::process::shared_memory;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const SECOND: i64 = 1_000_000_000;
const MOST: i64 = 3 * SECOND;

/// See the module above.
pub(crate) struct Clock {
    /// Closed, by us or by our end: the clock is set right.
    pipe: i32,
    process: i32,
    steps: &'static AtomicU64,
}

impl Clock {
    /// Sets it to what it is.
    ///
    /// # Errors
    /// It may not be set.
    pub(crate) fn may_be_set() -> std::io::Result<()> {
        set(read(libc::CLOCK_REALTIME) - read(libc::CLOCK_MONOTONIC))
    }

    /// # Errors
    /// The clock may not be set.
    pub(crate) fn start(seed: u64) -> std::io::Result<Self> {
        let distance = read(libc::CLOCK_REALTIME) - read(libc::CLOCK_MONOTONIC);
        set(distance)?;
        // SAFETY: zeroed, aligned, and never unmapped.
        let steps = unsafe { AtomicU64::from_ptr(shared_memory(8).cast()) };
        let mut ends = [0; 2];
        // SAFETY: room for two numbers.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let [ours, theirs] = [ends[1], ends[0]];
        // SAFETY: the child makes system calls only, and ends by _exit.
        let process = unsafe { libc::fork() };
        if process == 0 {
            // SAFETY: as above. In a session of its own no Ctrl-C reaches it.
            unsafe {
                libc::setsid();
                libc::close(ours);
                step_until_closed(theirs, seed, distance, steps);
                libc::_exit(i32::from(set(distance).is_err()));
            }
        }
        // SAFETY: the child's end, which is not ours to hold.
        unsafe { libc::close(theirs) };
        match process {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(Self {
                pipe: ours,
                process,
                steps,
            }),
        }
    }

    /// Sets the clock right; how often it was set wrong.
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
        let mut poll = libc::pollfd {
            fd: pipe,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one whole entry.
        if unsafe { libc::poll(&raw mut poll, 1, dice.i32(1..60)) } > 0 {
            break;
        }
        let skew = match dice.u32(0..3) {
            0 => 0,
            1 => dice.i64(-MOST..MOST),
            _ => dice.i64(-SECOND / 1000..SECOND / 1000),
        };
        if set(distance + skew).is_ok() {
            steps.fetch_add(1, SeqCst);
        }
    }
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: room for a whole timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * SECOND + time.tv_nsec
}

/// Sets the clock so far ahead of CLOCK_MONOTONIC.
fn set(distance: i64) -> std::io::Result<()> {
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
