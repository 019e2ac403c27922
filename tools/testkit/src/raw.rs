//! futex(2) and futex2, of the kernel and of the library, with the kernel's arguments.

use crate::answer::{Answer, kernel, kernel_has};
use std::ffi::c_void;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use syscalls::Sysno;
use waitword::raw::{self, Errno};

/// The operations and flags of futex(2).
pub mod op {
    #![allow(missing_docs, reason = "futex(2) has the same names")]

    pub const WAIT: i32 = 0;
    pub const WAKE: i32 = 1;
    pub const FD: i32 = 2;
    pub const REQUEUE: i32 = 3;
    pub const CMP_REQUEUE: i32 = 4;
    pub const WAKE_OP: i32 = 5;
    pub const LOCK_PI: i32 = 6;
    pub const UNLOCK_PI: i32 = 7;
    pub const TRYLOCK_PI: i32 = 8;
    pub const WAIT_BITSET: i32 = 9;
    pub const WAKE_BITSET: i32 = 10;
    pub const WAIT_REQUEUE_PI: i32 = 11;
    pub const CMP_REQUEUE_PI: i32 = 12;
    pub const LOCK_PI2: i32 = 13;
    pub const PRIVATE: i32 = 128;
    pub const CLOCK_REALTIME: i32 = 256;
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The kernel.
    Kernel,
    /// The library.
    Ours,
}

/// Whether the running kernel has all of futex2 (Linux 6.7).
pub fn has_futex2() -> bool {
    [Sysno::futex_wait, Sysno::futex_wake, Sysno::futex_requeue].into_iter().all(kernel_has)
}

impl To {
    /// Makes a futex call with these arguments.
    pub fn call(self, call: Sysno, arguments: [usize; 6]) -> Answer {
        if self == Self::Kernel {
            return kernel(call, arguments);
        }
        let [a, b, c, d, e, f] = arguments;
        let word = with_exposed_provenance_mut::<c_void>;
        // SAFETY: mapped words, or addresses that the library recognises by their value; times and
        // lists that are alive, or such addresses.
        let answer = unsafe {
            match call {
                Sysno::futex => {
                    let (first, second) = (word(a).cast(), word(e).cast());
                    raw::futex(first, b as i32, c as u32, d, second, f as u32)
                }
                Sysno::futex_wait => {
                    let time = with_exposed_provenance(e);
                    raw::futex_wait(word(a), b as u64, c as u64, d as u32, time, f as i32)
                }
                Sysno::futex_wake => raw::futex_wake(word(a), b as u64, c as i32, d as u32),
                Sysno::futex_requeue => {
                    let list = with_exposed_provenance(a);
                    raw::futex_requeue(list, b as u32, c as i32, d as i32)
                }
                _ => {
                    let list = with_exposed_provenance(a);
                    let time = with_exposed_provenance(d);
                    raw::futex_waitv(list, b as u32, c as u32, time, e as i32)
                }
            }
        };
        answer.map_err(Errno::raw_os_error)
    }
}
