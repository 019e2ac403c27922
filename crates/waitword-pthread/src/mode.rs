//! Whether the drop-in serves this process, and how: the environment, read once.
//!
//! | variable | values | meaning |
//! |----------|--------|---------|
//! | `WAITWORD` | `on`, `off` | `off`: every call goes to the C library |
//! | `WAITWORD_FUTEX` | `on`, `off` | `off`: raw futexes (`syscall`) go to the kernel |
//! | `WAITWORD_MUTEX` | `adaptive`, `throughput`, `wait-wake` | how threads wait for mutexes |
//! | `WAITWORD_SPIN_NS` | nanoseconds | the longest that a thread stays awake before it sleeps |
//! | `WAITWORD_SUMMARY` | `1`, or a file | a line at exit (`summary.rs`): on stderr, or appended |
//! | `WAITWORD_RECORD` | a directory | waits are recorded there (`record.rs`) |
//! | `WAITWORD_RECORD_NS` | nanoseconds | shorter waits are not recorded |
//!
//! An empty value counts as unset. An invalid value is reported with a line on stderr and ignored.
//!
//! # When
//!
//! The first call of any function that asks makes the decision, and before that call continues
//! everything is set. So no thread sleeps, or waits for a mutex, under other settings. Most often
//! the first call is our own constructor, which runs before all others, when the environment is
//! still the one that the process was given. If another library is initialised first, its
//! constructors may lock before. Two threads that call at the same time both decide, from the same
//! environment, with the same result.
//!
//! | `MODE` | [`is_on`] | [`is_fast`] |
//! |--------|-----------|-------------|
//! | UNDECIDED | decides | no: the path that counts decides |
//! | ON | yes | yes |
//! | WATCHED: a summary, a recording | yes, out of line | no: locks take the path that counts |
//! | ASKED | follows | no: the path that counts follows |
//! | OFF | no | no |
//!
//! Another process of the same user may begin and end a recording at any time: it writes ASKED
//! (`waitword_record::control`). The next call that asks becomes WATCHED, or ON again.

use crate::settings::{self, Settings};
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

const UNDECIDED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;
const WATCHED: u8 = 3;
const ASKED: u8 = 4;

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);
/// The same for raw futexes. WATCHED in a process that records.
static FUTEXES: AtomicU8 = AtomicU8::new(UNDECIDED);
/// Whether there is a summary, which is WATCHED without a recording too.
static HAS_SUMMARY: AtomicBool = AtomicBool::new(false);

/// Whether new and statically initialised objects are ours.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // Relaxed: every thread that decides uses the same environment.
    MODE.load(Relaxed) == ON || decided() != OFF
}

/// Whether they are known to be, and locks are not counted or recorded. A fast path asks this if
/// its slow path asks [`is_watched`], which decides.
#[inline(always)]
pub(crate) fn is_fast() -> bool {
    MODE.load(Relaxed) == ON
}

/// Whether locks are counted or recorded.
#[inline(always)]
pub(crate) fn is_watched() -> bool {
    let mode = MODE.load(Relaxed);
    mode != ON && (mode == WATCHED || decided() == WATCHED)
}

/// Counts one lock, if there is a summary to show it.
#[inline]
pub(crate) fn count_lock() {
    waitword::abi_support::add_locks(1);
}

/// Whether raw futexes on private words are known to be ours, and their waits are not recorded.
#[inline(always)]
pub(crate) fn serves_futexes() -> bool {
    FUTEXES.load(Relaxed) == ON
}

/// Who serves raw futexes on private words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Futexes {
    Ours,
    /// Ours, in a process that records.
    Recorded,
    TheKernels,
}

/// See [`Futexes`]. Decides, if the process has not.
#[cold]
pub(crate) fn futexes() -> Futexes {
    if FUTEXES.load(Relaxed) == ASKED {
        follow();
    }
    let mode = decided();
    match FUTEXES.load(Relaxed) {
        WATCHED if mode == WATCHED => Futexes::Recorded,
        UNDECIDED | OFF => Futexes::TheKernels,
        _ => Futexes::Ours,
    }
}

#[cold]
#[inline(never)]
fn decided() -> u8 {
    match MODE.load(Relaxed) {
        UNDECIDED => decide(),
        ASKED => follow(),
        mode => mode,
    }
}

/// Does what another process asks for.
fn follow() -> u8 {
    waitword_record::follow(waitword::abi_support::process_number(), set_watched);
    match MODE.load(Relaxed) {
        // Another thread is at it, or there is another request already: the next call follows.
        ASKED => mode_if(waitword_record::is_on()),
        mode => mode,
    }
}

fn mode_if(is_recording: bool) -> u8 {
    if is_recording || HAS_SUMMARY.load(Relaxed) { WATCHED } else { ON }
}

fn set_watched(is_recording: bool) {
    let mode = mode_if(is_recording);
    if FUTEXES.load(Relaxed) != OFF {
        FUTEXES.store(mode, Relaxed);
    }
    MODE.store(mode, Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: Constructor = {
    extern "C" fn at_start(_: c_int, _: *const Text, environment: *const Text) {
        settings::set_environment(environment);
        if decided() != OFF {
            waitword::abi_support::register_fork_handler();
        }
    }
    at_start
};

/// glibc passes constructors the arguments of `main`.
type Constructor = extern "C" fn(c_int, *const Text, *const Text);
type Text = *const c_char;

fn decide() -> u8 {
    let settings = Settings::read();
    let mode = match (settings.is_on, settings.summary, settings.record) {
        (false, ..) => OFF,
        (true, None, None) => ON,
        (true, ..) => WATCHED,
    };
    if settings.is_on {
        settings.apply();
    }
    HAS_SUMMARY.store(settings.summary.is_some(), Relaxed);
    let futexes = if settings.futexes { mode } else { OFF };
    _ = FUTEXES.compare_exchange(UNDECIDED, futexes, Relaxed, Relaxed);
    // What following looks at is set. First the switch that every lock reads: a process that finds
    // only one asks by that alone, and not every program uses raw futexes.
    if mode != OFF {
        waitword_record::control::register(&MODE, ASKED);
    }
    if FUTEXES.load(Relaxed) != OFF {
        waitword_record::control::register(&FUTEXES, ASKED);
    }
    // Last: a thread that finds the mode decided need not look further. (Relaxed: the settings are
    // hints, which may take effect a moment later.)
    // Not over what another thread has decided, and another process has changed since.
    _ = MODE.compare_exchange(UNDECIDED, mode, Relaxed, Relaxed);
    mode
}
