//! The settings in the environment.

use crate::summary::Place;
use crate::text::Line;
use core::ffi::{CStr, c_char};
use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use waitword::PosixFlavour;

pub(super) struct Settings {
    pub(super) is_on: bool,
    pub(super) futexes: bool,
    pub(super) summary: Option<Place>,
    flavour: Option<PosixFlavour>,
    spin: Option<Duration>,
}

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *mut c_char;
    static mut environ: *const *const c_char;
}

/// Gives the C library the process's environment. The C library would set it itself in its
/// constructor, which runs after ours.
pub(super) fn set_environment(all: *const *const c_char) {
    // SAFETY: a variable of the C library. It is null until the C library's constructor has run, or
    // if the program has cleared its environment, in which case `dlopen` gives us null too. Before
    // that constructor there is one thread.
    unsafe {
        if environ.is_null() {
            environ = all;
        }
    }
}

/// Whether invalid settings have been reported.
static TOLD: AtomicBool = AtomicBool::new(false);

impl Settings {
    pub(super) fn read() -> Self {
        let mut tell = Complaints::new();
        Self {
            is_on: tell.switch(c"WAITWORD"),
            futexes: tell.switch(c"WAITWORD_FUTEX"),
            flavour: tell.flavour(c"WAITWORD_MUTEX"),
            spin: tell.nanoseconds(c"WAITWORD_SPIN_NS"),
            summary: tell.summary(c"WAITWORD_SUMMARY"),
        }
    }

    /// Applies the settings to the library.
    pub(super) fn apply(&self) {
        if let Some(spin) = self.spin {
            waitword::spin::set_budget(spin);
        }
        if let Some(flavour) = self.flavour {
            // This refuses priority inheritance, which is not among the names.
            let _ = waitword::abi_support::stand_in_for_adaptive(flavour);
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
struct Complaints {
    first: bool,
}

impl Complaints {
    fn new() -> Self {
        Self {
            first: !TOLD.swap(true, Relaxed),
        }
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
                self.complain(name, value, "neither on nor off; taken as on");
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
                let known = "not adaptive, throughput or wait-wake; taken as adaptive";
                self.complain(name, value, known);
                None
            }
        }
    }

    fn nanoseconds(&mut self, name: &'static CStr) -> Option<Duration> {
        let value = variable(name)?;
        let number = value.to_str().ok().and_then(|text| text.parse().ok());
        if number.is_none() {
            self.complain(name, value, "not a number of nanoseconds; not heeded");
        }
        number.map(Duration::from_nanos)
    }

    fn summary(&mut self, name: &'static CStr) -> Option<Place> {
        let value = variable(name)?;
        match value.to_bytes() {
            b"0" | b"off" | b"no" => None,
            b"1" | b"on" | b"yes" => Some(Place::Stderr),
            path if path.len() > Place::LONGEST => {
                self.complain(name, value, "too long for a file's name; no summary");
                None
            }
            path => Some(Place::File(path)),
        }
    }

    #[cold]
    fn complain(&mut self, name: &CStr, value: &CStr, what: &str) {
        if self.first {
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
