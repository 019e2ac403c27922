//! The summary at exit: one line on the work that the locks of a process had to do
//! (`WAITWORD_SUMMARY`).
//!
//! ```text
//! waitword: db_bench[4711]: 81623 locks, 412 contended, 96 sleeps, 101 wakes (3 in vain),
//!     24 requeues, ... (one line, wrapped here)
//! ```
//!
//! | a process that | prints |
//! |----------------|--------|
//! | returns from `main` or calls `exit` | its line, when the last of its libraries ends |
//! | is forked and does not exec | its own line, on its work since the fork, if it ends that way |
//! | calls `_exit`, execs or is killed | nothing |
//!
//! Locks are counted on the slow paths (`mode.rs`), and only where a summary is requested: each
//! then costs some nanoseconds more. The other numbers are [`waitword::stats`]'s.

use crate::text::Line;
use crate::{mode, settings};
use core::ffi::{CStr, c_char};
use core::fmt::Write as _;

/// Run by the C library at the end of `exit`, after the program's own handlers.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        // A process that locked nothing has not read its environment yet.
        mode::is_on();
        if mode::is_watched() {
            print();
        }
    }
    at_exit
};

fn print() {
    let counted = waitword::stats::snapshot();
    if counted == waitword::stats::Snapshot::default() {
        // Shells start many processes that have nothing to report.
        return;
    }
    let mut line = Line::new();
    // SAFETY: `getpid` has no preconditions and cannot fail.
    let process = unsafe { libc::getpid() };
    let _ = write!(line, "waitword: {}[{process}]: {counted}", name().escape_ascii(),);
    let path = settings::summary_file();
    let path = CStr::from_bytes_until_nul(&path).unwrap_or_default();
    if path.is_empty() {
        return line.write_to(libc::STDERR_FILENO);
    }
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: `path` is a C string, and O_CREAT is given a mode.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o666) };
    if file < 0 {
        let mut why = Line::new();
        let path = path.to_bytes().escape_ascii();
        let _ = write!(why, "waitword: WAITWORD_SUMMARY={path}: cannot be written to");
        return why.write_to(libc::STDERR_FILENO);
    }
    line.write_to(file);
    // SAFETY: `file` was opened above and is known only here.
    unsafe { libc::close(file) };
}

/// The program's name.
fn name() -> &'static [u8] {
    unsafe extern "C" {
        static program_invocation_short_name: *const c_char;
    }
    // SAFETY: this is glibc's variable, of this type. A program may point it to another string, but
    // not while the process ends.
    let name = unsafe { program_invocation_short_name };
    if name.is_null() {
        return b"?";
    }
    // SAFETY: not null, so a C string: glibc's own, or one that the program keeps.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}
