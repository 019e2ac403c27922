//! The work of the child process.

use super::memory::own_bytes;
use crate::harness::{Failure, check};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use waitword_record::format::{Cell, Ended, Object};
use waitword_record::{Take, What, begin, end, finish, note_release, start, take};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The time of a waiter's calls, below so many calls of functions. Prints it, and the number of
    /// frames of its stack.
    Waiter {
        /// The number of calls.
        calls: usize,
    },
    /// The same for the holder that releases the lock.
    Holder {
        /// The number of calls.
        calls: usize,
    },
    /// The bytes of the process after so many threads have each recorded a wait, or have not.
    Memory {
        /// The number of threads.
        threads: usize,
        /// Whether they record.
        recording: bool,
    },
}

impl Measure {
    /// As command line arguments.
    pub(super) fn words(self) -> [String; 2] {
        match self {
            Self::Waiter { calls } => ["waiter".to_owned(), calls.to_string()],
            Self::Holder { calls } => ["holder".to_owned(), calls.to_string()],
            Self::Memory { threads, recording } => {
                let name = if recording { "memory" } else { "memory-without" };
                [name.to_owned(), threads.to_string()]
            }
        }
    }

    /// From command line arguments. `None` if they are none of these.
    pub fn from_words(name: &str, number: usize) -> Option<Self> {
        Some(match name {
            "waiter" => Self::Waiter { calls: number },
            "holder" => Self::Holder { calls: number },
            "memory" => Self::Memory { threads: number, recording: true },
            "memory-without" => Self::Memory { threads: number, recording: false },
            _ => return None,
        })
    }
}

/// Any number but 0: this process does not fork.
const PROCESS: u32 = 1;
/// The address of a lock that nobody uses.
const LOCK: u64 = 0x40;
/// Fewer waits than what a thread records without sampling in a period of 50 ms, of which there are
/// [`PERIODS`].
const WAITS: usize = 500;
const PERIODS: usize = 20;

/// Measures it in this process, which should have recorded nothing before.
///
/// # Errors
/// The recording cannot be made.
pub fn measure_in_child(measure: Measure) -> Result<Vec<f64>, Failure> {
    let place = tempfile::tempdir().map_err(Failure::new)?;
    let record = || {
        start(PROCESS, place.path().as_os_str().as_bytes(), 0)
            .map_err(|refused| Failure::new(format!("no recording: {refused:?}")))
    };
    match measure {
        Measure::Waiter { calls } => {
            record()?;
            let measured = in_a_thread(move || below(calls, &mut || time_of(waiter)));
            are_recorded(place.path())?;
            Ok(measured)
        }
        Measure::Holder { calls } => {
            record()?;
            let measured = in_a_thread(move || below(calls, &mut || time_of(holder)));
            are_recorded(place.path())?;
            Ok(measured)
        }
        Measure::Memory { threads, recording } => {
            if recording {
                record()?;
            }
            let all_are_there = Barrier::new(threads + 1);
            let bytes = thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        // Not recording, this does nothing.
                        let _ = waiter(Duration::ZERO);
                        all_are_there.wait();
                        all_are_there.wait();
                    });
                }
                all_are_there.wait();
                let bytes = own_bytes(place.path());
                all_are_there.wait();
                bytes
            })?;
            Ok(vec![bytes as f64])
        }
    }
}

/// Checks that every wait that was timed is in the records file.
fn are_recorded(directory: &Path) -> Result<(), Failure> {
    let mut bytes = 0;
    for file in directory.read_dir().map_err(Failure::new)? {
        let file = file.map_err(Failure::new)?;
        if file.path().extension().is_some_and(|it| it == "records") {
            bytes += file.metadata().map_err(Failure::new)?.len();
        }
    }
    let recorded = bytes as usize / size_of::<Cell>();
    check(recorded >= WAITS * PERIODS, || {
        format!("{recorded} cells are recorded of {} waits", WAITS * PERIODS)
    })
}

/// A thread's stack begins with few frames.
fn in_a_thread(work: impl FnOnce() -> [f64; 2] + Send) -> Vec<f64> {
    thread::scope(|scope| scope.spawn(work).join()).expect("it does not panic").into()
}

/// Calls `work` below so many more calls.
#[inline(never)]
fn below(calls: usize, work: &mut dyn FnMut() -> [f64; 2]) -> [f64; 2] {
    let result = match calls {
        0 => work(),
        _ => below(calls - 1, work),
    };
    // Nothing here is a tail call.
    black_box(result)
}

/// The time of one call of `of`, and how many frames its stack has. `of` returns the time that it
/// took, less that of the clock.
#[inline(never)]
fn time_of(of: fn(Duration) -> Duration) -> [f64; 2] {
    let clock = median((0..1001).map(|_| Instant::now().elapsed()).collect());
    let mut all = Vec::new();
    for _ in 0..PERIODS {
        all.extend((0..WAITS).map(|_| of(clock)));
        thread::sleep(Duration::from_millis(100));
    }
    finish(PROCESS);
    [median(all).as_nanos() as f64, frames() as f64]
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A wait of no time.
fn waiter(clock: Duration) -> Duration {
    let began = Instant::now();
    if let Some(wait) = begin(PROCESS, Object::Mutex, LOCK, false) {
        end(PROCESS, wait, &What { object: Object::Mutex, address: LOCK, ended: Ended::Got });
    }
    began.elapsed().saturating_sub(clock)
}

/// A release of a lock that a thread waits for.
fn holder(clock: Duration) -> Duration {
    take(PROCESS, LOCK, Take { to_read: false, is_contended: true });
    let wait = begin(PROCESS, Object::Mutex, LOCK, false);
    let began = Instant::now();
    waitword_record::release(PROCESS, LOCK);
    note_release(PROCESS, LOCK, false);
    let took = began.elapsed().saturating_sub(clock);
    if let Some(wait) = wait {
        end(PROCESS, wait, &What { object: Object::Mutex, address: LOCK, ended: Ended::Got });
    }
    took
}

/// The number of frames of the calling function's stack.
fn frames() -> usize {
    let mut addresses = [core::ptr::null_mut(); 200];
    // SAFETY: so many pointers may be written.
    let count = unsafe { libc::backtrace(addresses.as_mut_ptr(), addresses.len() as i32) };
    count.max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_understood() {
        let all = [
            Measure::Waiter { calls: 3 },
            Measure::Holder { calls: 4 },
            Measure::Memory { threads: 5, recording: true },
            Measure::Memory { threads: 6, recording: false },
        ];
        for measure in all {
            let [name, number] = measure.words();
            assert_eq!(Measure::from_words(&name, number.parse().unwrap()), Some(measure));
        }
        assert_eq!(Measure::from_words("waits", 1), None);
    }

    #[test]
    fn deeper_stacks_have_more_frames() {
        let count = |calls| below(calls, &mut || [frames() as f64, 0.0])[0];
        assert_eq!(count(32) - count(0), 32.0);
    }

    #[test]
    fn a_wait_that_leaves_no_record_is_an_error() {
        let empty = tempfile::tempdir().unwrap();
        let _ = waiter(Duration::ZERO);
        assert!(are_recorded(empty.path()).unwrap_err().to_string().contains("0 cells"));
        let enough = vec![0; (WAITS * PERIODS) * size_of::<Cell>()];
        std::fs::write(empty.path().join("1.2.records"), enough).unwrap();
        are_recorded(empty.path()).unwrap();
    }

    #[test]
    fn a_recorded_wait_takes_time() {
        waitword_testkit::in_fresh_process(|| {
            let of = |measure| measure_in_child(measure).unwrap();
            for measure in [Measure::Waiter { calls: 0 }, Measure::Holder { calls: 0 }] {
                let measured = of(measure);
                assert!(measured[0] > 0.0 && measured[1] > 1.0, "{measured:?}");
            }
            let bytes = of(Measure::Memory { threads: 2, recording: true });
            // Two rings at least.
            assert!(bytes[0] > 2.0 * waitword_record::format::RING_BYTES as f64, "{bytes:?}");
        });
    }
}
