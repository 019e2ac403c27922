//! The settings in the environment.

use crate::text::Line;
use core::ffi::{CStr, c_char};
use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use core::time::Duration;
use waitword::PosixFlavour;
use waitword_record::Refused;

/// The settings of this process (`mode.rs` lists the variables).
pub(crate) struct Settings {
    pub(crate) is_on: bool,
    pub(crate) futexes: bool,
    pub(crate) summary: Option<Place>,
    /// The directory that waits are recorded in.
    pub(crate) record: Option<&'static [u8]>,
    /// Shorter waits are not recorded, in nanoseconds.
    threshold: u64,
    flavour: Option<PosixFlavour>,
    spin: Option<Duration>,
}

/// Where a summary goes (`summary.rs`).
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Stderr,
    /// Appended to the file of this name.
    File(&'static [u8]),
}

/// The longest name of a file: the kernel's `PATH_MAX`, without the zero at the end.
const LONGEST: usize = 4095;

/// A file's name, terminated by a zero.
pub(crate) type Path = [u8; LONGEST + 1];

/// The name of the file that a summary goes to; empty: stderr. This is a copy: by exit the program
/// may have changed its environment and the memory that held the names. (Atomic bytes, since two
/// threads may write the same bytes at once.)
static FILE: [AtomicU8; LONGEST + 1] = [const { AtomicU8::new(0) }; LONGEST + 1];

/// The file that a summary goes to; empty: stderr. A copy: another thread may decide at this
/// moment, and write the same bytes again.
pub(crate) fn summary_file() -> Path {
    core::array::from_fn(|n| FILE[n].load(Relaxed))
}

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *mut c_char;
    static mut environ: *const *const c_char;
}

/// Gives the C library the process's environment. The C library would set it itself in its
/// constructor, which runs after ours.
pub(crate) fn set_environment(all: *const *const c_char) {
    // SAFETY: a variable of the C library. It is null until the C library's constructor has run, or
    // if the program has cleared its environment, in which case `dlopen` gives us null too. Before
    // that constructor there is one thread.
    unsafe {
        if environ.is_null() {
            environ = all;
        }
    }
}

/// Whether invalid settings have been reported, or are about to be.
static REPORTED: AtomicBool = AtomicBool::new(false);

impl Settings {
    pub(crate) fn read() -> Self {
        let mut variables = Variables::new();
        Self {
            is_on: variables.switch(c"WAITWORD"),
            futexes: variables.switch(c"WAITWORD_FUTEX"),
            flavour: variables.flavour(c"WAITWORD_MUTEX"),
            spin: variables.nanoseconds(c"WAITWORD_SPIN_NS"),
            summary: variables.summary(c"WAITWORD_SUMMARY"),
            record: variable(c"WAITWORD_RECORD").map(CStr::to_bytes),
            threshold: variables
                .nanoseconds(c"WAITWORD_RECORD_NS")
                .map_or(waitword_record::USUAL_THRESHOLD, |time| time.as_nanos() as u64),
        }
    }

    /// Applies the settings to the library.
    pub(crate) fn apply(&self) {
        if let Some(place) = self.summary {
            if let Place::File(path) = place {
                for (kept, &byte) in FILE.iter().zip(path) {
                    kept.store(byte, Relaxed);
                }
            }
            waitword::stats::enable();
        }
        if let Some(directory) = self.record {
            let process = waitword::abi_support::process_number();
            if let Err(refused) = waitword_record::start(process, directory, self.threshold) {
                let mut line = Line::new();
                let name = directory.escape_ascii();
                let why = match refused {
                    Refused::Name => "not an absolute name",
                    Refused::Files => "no files can be made there",
                    Refused::Busy => "another thread begins to record",
                    Refused::Pages => "this kernel's pages are not of 4096 bytes",
                };
                let _ = write!(line, "waitword: WAITWORD_RECORD={name}: {why}; not recorded");
                line.write_to(2);
            }
        }
        if let Some(spin) = self.spin {
            waitword::spin::set_budget(spin);
        }
        if let Some(flavour) = self.flavour {
            // This refuses priority inheritance, which is not among the names.
            let _ = waitword::abi_support::set_default_flavour(flavour);
        }
    }
}

/// The value of a variable in the environment at the start of the process; `None` if it is unset or
/// empty. A program that runs with more rights than its caller (setuid, file capabilities) gets
/// `None`: a summary would be written with those rights into a file of the caller's choice.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: `name` is a C string. Nothing changes the environment while a process takes its first
    // lock: callers of `setenv` must ensure that, and the C library's own start-up relies on it
    // too.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: not null, so a C string in the environment, which is not changed while it is read:
    // see above.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty()).then_some(value)
}

/// Reads variables, and reports once per process what is wrong with them.
struct Variables {
    /// Whether this reading reports.
    reports: bool,
}

impl Variables {
    fn new() -> Self {
        Self { reports: !REPORTED.swap(true, Relaxed) }
    }

    /// True unless the value is off.
    fn switch(&mut self, name: &'static CStr) -> bool {
        let Some(value) = variable(name) else {
            return true;
        };
        match value.to_bytes() {
            b"off" | b"0" | b"no" => false,
            b"on" | b"1" | b"yes" => true,
            _ => {
                self.report(name, value, "neither on nor off; taken as on");
                true
            }
        }
    }

    fn flavour(&mut self, name: &'static CStr) -> Option<PosixFlavour> {
        let value = variable(name)?;
        match value.to_bytes() {
            b"adaptive" => Some(PosixFlavour::Adaptive),
            b"throughput" => Some(PosixFlavour::Throughput),
            b"wait-wake" => Some(PosixFlavour::WaitWake),
            _ => {
                let what = "not adaptive, throughput or wait-wake; taken as adaptive";
                self.report(name, value, what);
                None
            }
        }
    }

    fn nanoseconds(&mut self, name: &'static CStr) -> Option<Duration> {
        let value = variable(name)?;
        let number = value.to_str().ok().and_then(|text| text.parse().ok());
        if number.is_none() {
            self.report(name, value, "not a number of nanoseconds; ignored");
        }
        number.map(Duration::from_nanos)
    }

    fn summary(&mut self, name: &'static CStr) -> Option<Place> {
        let value = variable(name)?;
        match value.to_bytes() {
            b"0" | b"off" | b"no" => None,
            b"1" | b"on" | b"yes" => Some(Place::Stderr),
            path if path.len() > LONGEST => {
                self.report(name, value, "too long for a file's name; no summary");
                None
            }
            path => Some(Place::File(path)),
        }
    }

    #[cold]
    fn report(&mut self, name: &CStr, value: &CStr, what: &str) {
        if self.reports {
            let mut line = Line::new();
            let _ = write!(
                line,
                "waitword: {}={}: {what}",
                name.to_bytes().escape_ascii(),
                value.to_bytes().escape_ascii(),
            );
            line.write_to(2);
        }
    }
}
