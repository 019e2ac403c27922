//! What can be asked of and told to the library itself: the table's size, the spin, the version.

use crate::fail;
use core::ffi::{c_long, c_uint};
use core::time::Duration;
use waitword_core::{spin, table};

/// How many buckets the process's table of private waiters has now; 0 before the first wait.
///
/// Does not block. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_table_buckets() -> usize {
    table::buckets()
}

/// Sees to it that the table has at least this many buckets, so that no thread has to make it grow later.
///
/// Returns how many there are then. About one for each thread that waits at the same time is right, and the
/// table grows towards that by itself; it never shrinks. The environment variable `WAITWORD_BUCKETS` says
/// how many it starts with.
///
/// Errors:
/// - `ENOMEM`: memory is short; the table stays as it was, and goes on working.
///
/// May block for a moment while another thread changes the table. Not async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_table_reserve(buckets: usize) -> c_long {
    match table::reserve(buckets) {
        Ok(buckets) => buckets as c_long,
        Err(error) => fail(error.raw_os_error()),
    }
}

/// How many bytes of address space the table, the smaller ones that it has replaced, and the memory that
/// threads sleep on take.
///
/// Does not block. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_table_mapped_bytes() -> usize {
    table::mapped_bytes()
}

/// How long a private wait spins before it sleeps, in nanoseconds; 0 if it sleeps at once.
///
/// By default about as long as a sleep and a wake-up cost. Set by the environment variable
/// `WAITWORD_SPIN_NS` or by `ww_set_spin_budget_ns`. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ww_spin_budget_ns() -> u64 {
    u64::try_from(spin::budget().as_nanos()).unwrap_or(u64::MAX)
}

/// Sets how long a private wait spins before it sleeps, in nanoseconds, for all threads of this process
/// from their next wait on; 0 sleeps at once. More than a second is taken as a second. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn ww_set_spin_budget_ns(nanoseconds: u64) {
    spin::set_budget(Duration::from_nanos(nanoseconds));
}

/// The version of the library that the program runs with, in the form of `WW_VERSION` (that of the
/// header it was compiled with): major * 1000000 + minor * 1000 + patch.
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
