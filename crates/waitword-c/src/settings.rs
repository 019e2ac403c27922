//! Queries and settings of the library itself: the waiter table's size, the spin budget, the
//! version; and of the calling thread: time slice extensions.

use crate::fail;
use core::ffi::{c_int, c_long, c_uint};
use core::time::Duration;
use waitword_core::{abi_support, spin, table};

/// Returns the current number of buckets in the process's table of private waiters; 0 before the
/// first wait.
///
/// Does not block. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_table_buckets() -> usize {
    table::buckets()
}

/// Grows the waiter table to at least `buckets` buckets, so that no thread has to grow it later.
///
/// About one for each thread that waits at the same time is right. The table grows towards that by
/// itself and never shrinks. The environment variable `WAITWORD_BUCKETS` sets the initial number.
///
/// Returns the resulting number of buckets.
///
/// Errors:
/// - `ENOMEM`: out of memory. The table is unchanged and still works.
///
/// May block for a moment while another thread changes the table. Not async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_table_reserve(buckets: usize) -> c_long {
    match table::reserve(buckets) {
        Ok(buckets) => buckets as c_long,
        Err(error) => fail(error.raw_os_error()),
    }
}

/// Returns how many bytes of address space are used by the waiter table, the smaller tables that it
/// has replaced, and the memory that threads sleep on.
///
/// Does not block. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_table_mapped_bytes() -> usize {
    table::mapped_bytes()
}

/// Returns how long a private wait spins before it sleeps, in nanoseconds; 0 if it sleeps at once.
///
/// The default is about as long as a sleep and a wake-up take. The environment variable
/// `WAITWORD_SPIN_NS` or `ww_set_spin_budget_ns` sets it. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ww_spin_budget_ns() -> u64 {
    u64::try_from(spin::budget().as_nanos()).unwrap_or(u64::MAX)
}

/// Sets how long a private wait spins before it sleeps, in nanoseconds, for all threads of this
/// process from their next wait on; 0 means to sleep at once. A value above one second is taken as
/// one second. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ww_set_spin_budget_ns(nanoseconds: u64) {
    spin::set_budget(Duration::from_nanos(nanoseconds));
}

/// Begins a short critical section in which the kernel is asked not to preempt the calling thread
/// (a time slice extension: rseq, Linux 7.0, glibc 2.41; `waitword doctor` shows whether they are
/// there).
///
/// If the thread's time slice ends in the section, it runs on for a few microseconds, so that it
/// does not keep others waiting for a whole time slice. Meant for a section of less than about a
/// microsecond, in which the thread holds a lock that others need soon and makes no system call.
///
/// Returns 1 if it asked, and 0 if a section around this one has asked already or if there are no
/// extensions. Pass the result to `ww_time_slice_end`, in the same thread, after the unlock:
///
///     int asked = ww_time_slice_extend();
///     ww_mutex_lock(&mutex);
///     ...
///     ww_mutex_unlock(&mutex);
///     ww_time_slice_end(asked);
///
/// Does not block. A thread's first call may make one system call. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_time_slice_extend() -> c_int {
    c_int::from(abi_support::extend_time_slice())
}

/// Ends a section that `ww_time_slice_extend` has begun, given its result. If the thread was given
/// more time, it yields its CPU here.
///
/// If a section is never ended, the request lasts until the kernel next interrupts the thread. Does
/// not block. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_time_slice_end(asked: c_int) {
    if asked != 0 {
        abi_support::end_time_slice_extension();
    }
}

/// Returns the version of the library that the program runs with, in the format of `WW_VERSION`
/// (the version of the header that it was compiled with): major * 1000000 + minor * 1000 + patch.
#[unsafe(no_mangle)]
pub extern "C" fn ww_version() -> c_uint {
    const fn number(text: &str) -> c_uint {
        match c_uint::from_str_radix(text, 10) {
            Ok(number) => number,
            Err(_) => panic!("a version is three numbers"),
        }
    }
    const VERSION: c_uint = number(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
        + number(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
        + number(env!("CARGO_PKG_VERSION_PATCH"));
    VERSION
}
