//! Records why the threads of this process wait for the locks of this crate: which thread kept
//! each, where, and what it did meanwhile. The command `waitword` shows it
//! (`book/src/observe/profile.md`).
//!
//! With the cargo feature `record`, which is off by default. A recording begins
//!
//! * by [`start`];
//! * by the environment: `WAITWORD_RECORD` names an existing directory, and `WAITWORD_RECORD_NS`
//!   the time in nanoseconds below which waits are not recorded (10,000). `waitword profile` sets
//!   both;
//! * by `waitword profile --pid`, from outside.
//!
//! Recorded are the waits of all types of this crate: as waits for a mutex also those for a
//! [`RobustMutex`](crate::RobustMutex), as for a semaphore those for an
//! [`Event`](crate::Event) or [`AutoEvent`](crate::AutoEvent), as at a barrier those for a
//! [`Latch`](crate::Latch), as for a raw futex those of [`Futex`](crate::Futex),
//! [`wait_any`](crate::wait_any), [`AtomicWait`](crate::AtomicWait) and [`raw`](crate::raw). Not
//! recorded are waits that [`raw`](crate::raw) leaves to the kernel.
//!
//! That a thread *holds* a lock is noted for a private mutex that it had to wait for, or found with
//! waiters, until it unlocks it. So deadlocks of contended mutexes are found, and the system calls
//! in which their holders sleep. Mutexes that were free are not noted: that would cost an
//! instruction at each lock. Nor are rwlocks and robust mutexes, whose releases do not all come to
//! the recorder. With the feature `send_guard` nothing is noted.
//!
//! The directory gets three files for each process. They contain times, addresses, thread names and
//! file names, never memory contents. A forked child records into files of its own.
//!
//! # Cost
//!
//! Without a recording: one relaxed load where a thread has to wait, or has to wake another one,
//! and where a mutex is taken past its waiters. An uncontended lock or unlock runs the same code
//! with and without the feature.
//!
//! While a recording is on, a mutex that was contended is unlocked as if a thread waited for it:
//! its holder has set the bit that says so, to be sure that the unlock comes to the recorder.

mod calls;

pub(crate) use calls::{
    releasing, signalling, took, waiting, waiting_on_futex, waiting_to_hold, waiting_with,
};
pub(crate) use waitword_record::format::Object;

use crate::sys::env;
use crate::sys::generation::generation as process_number;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use core::time::Duration;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use waitword_record::{Refused, USUAL_THRESHOLD, control};

const UNDECIDED: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
/// Another process asks for the beginning or the end of a recording (`waitword_record::control`).
const ASKED: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// Begins to record into this directory, which exists. Waits shorter than `threshold` are not
/// recorded; 10 µs is the time that it takes to wake a thread. A recording that has begun before
/// ends.
///
/// Makes files, and so may block for some milliseconds.
///
/// # Errors
/// The directory's name is not absolute or too long (`InvalidInput`), its files cannot be made,
/// another thread begins a recording (`ResourceBusy`), or this kernel's pages are not of 4096 bytes
/// (`EOPNOTSUPP`). Nothing is recorded then.
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("waitword-record-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// waitword::record::start(&directory, std::time::Duration::from_micros(10))?;
/// # waitword::record::stop();
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn start(directory: &Path, threshold: Duration) -> io::Result<()> {
    let threshold = u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX);
    start_in(directory.as_os_str().as_bytes(), threshold)
}

/// Begins to record if `WAITWORD_RECORD` says so. Returns whether it does. Happens by itself before
/// `main`, where an error is reported on stderr; a program that sets the variable later calls this.
///
/// # Errors
/// As for [`start`].
pub fn start_from_env() -> io::Result<bool> {
    let Some(directory) = env::text(c"WAITWORD_RECORD") else {
        return Ok(false);
    };
    start_in(directory.to_bytes(), env::number(c"WAITWORD_RECORD_NS").unwrap_or(USUAL_THRESHOLD))?;
    Ok(true)
}

/// Ends the recording, if there is one. What was recorded is in its files.
pub fn stop() {
    control::stop(process_number());
    set_state(false);
}

fn start_in(directory: &[u8], threshold: u64) -> io::Result<()> {
    let started = waitword_record::start(process_number(), directory, threshold);
    // What `start` failed with is still in `errno`.
    let result = started.map_err(|refused| match refused {
        Refused::Name => io::ErrorKind::InvalidInput.into(),
        Refused::Files => io::Error::last_os_error(),
        Refused::Busy => io::Error::from_raw_os_error(libc::EBUSY),
        Refused::Pages => io::Error::from_raw_os_error(libc::EOPNOTSUPP),
    });
    set_state(waitword_record::is_on());
    result
}

fn set_state(is_recording: bool) {
    STATE.store(if is_recording { ON } else { OFF }, Relaxed);
}

/// Whether waits are recorded.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    STATE.load(Relaxed) != OFF && is_on_otherwise()
}

#[cold]
#[inline(never)]
fn is_on_otherwise() -> bool {
    match STATE.load(Relaxed) {
        UNDECIDED => decide(),
        ASKED => control::follow(process_number(), set_state),
        _ => {}
    }
    waitword_record::is_on()
}

/// Before `main`, or at the first contended lock of a constructor that runs earlier.
fn decide() {
    if STATE.compare_exchange(UNDECIDED, OFF, Relaxed, Relaxed).is_ok() {
        control::register(&STATE, ASKED);
        if let Err(error) = start_from_env() {
            eprintln!("waitword: WAITWORD_RECORD: {error}; not recorded");
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        decide();
    }
    at_start
};

/// Run by the C library at the end of `exit`.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        waitword_record::finish(process_number());
    }
    at_exit
};
