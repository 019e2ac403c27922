//! What this machine, this kernel and this process offer for waiting and waking.
//!
//! Everything is *tried*, not looked up by version: kernels are patched, sandboxes refuse calls,
//! and emulators implement half of them. Each probe is harmless (a wait whose value does not match,
//! a wake with no waiter, a setting read back) and leaves nothing behind. Nothing here is on a wait
//! or wake path, so it may use the heap. System calls go to the kernel directly; files under
//! `/proc` and `/sys` are read through `std`.
//!
//! ```
//! use waitword::probe::{self, Support};
//! // No kernel to date has 64-bit futexes; this one may be the first.
//! if probe::futex2_size(64) == Support::Yes {
//!     println!("64-bit futexes in the kernel");
//! }
//! ```

mod machine;

pub use machine::{
    Kernel, Rseq, cpus, kernel, numa_nodes, perf_event_paranoid, rseq, slice_extension, switch_ring,
};

use super::from_raw;
use crate::sys::Errno;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use syscalls::{Sysno, syscall4, syscall5, syscall6};

const SIZE_U32: usize = 2;
const NUMA: usize = 4;
const MPOL: usize = 8;
const PRIVATE: usize = 128;
const CLOCK_MONOTONIC: usize = 1;
/// The kernel's own, which has no name outside it.
const ENOTSUPP: i32 = 524;

/// Whether the kernel supports what was probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Yes,
    /// It returned this error: `ENOSYS` if the call is unknown, `EINVAL` if the call is known but
    /// not this use of it, `EPERM` or `EACCES` if it is forbidden to this process.
    No(Errno),
}

impl Support {
    /// `true` for [`Support::Yes`].
    pub fn is_there(self) -> bool {
        self == Self::Yes
    }

    /// A probe that succeeds if the answer is `expected`.
    fn answers(result: Result<usize, Errno>, expected: Errno) -> Self {
        match result {
            Err(error) if error == expected => Self::Yes,
            Err(error) => Self::No(error),
            Ok(_) => Self::Yes,
        }
    }

    fn succeeds(result: Result<usize, Errno>) -> Self {
        result.map_or_else(Self::No, |_| Self::Yes)
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes => f.write_str("yes"),
            Self::No(Errno::NOSYS) => f.write_str("no (ENOSYS)"),
            Self::No(Errno::INVAL) => f.write_str("no (EINVAL)"),
            Self::No(Errno::PERM) => f.write_str("not allowed (EPERM)"),
            Self::No(error) if error.raw_os_error() == ENOTSUPP => f.write_str("no (ENOTSUPP)"),
            Self::No(Errno::ACCESS) => f.write_str("not allowed (EACCES)"),
            Self::No(error) => write!(f, "no ({error})"),
        }
    }
}

/// A word and its node word, aligned for every size that is tried.
#[repr(C, align(16))]
struct Pair([u32; 4]);

/// `futex_wait` (Linux 6.7) on a word of zeros with an expected value of 1: `EAGAIN` if the kernel
/// knows these flags.
fn futex2_wait(flags: usize) -> Support {
    let pair = Pair([0, 0, 0, 0]);
    // SAFETY: the kernel reads the word and, with NUMA, the node behind it, both inside `pair`, a
    // variable here that outlives the call. It would write a node only in place of -1, and it finds
    // 0. The word does not match, so the call does not sleep; the null pointer means "no timeout".
    let result = from_raw(unsafe {
        syscall6(
            Sysno::futex_wait,
            (&raw const pair) as usize,
            1,
            1,
            flags | PRIVATE,
            0,
            CLOCK_MONOTONIC,
        )
    });
    Support::answers(result, Errno::AGAIN)
}

/// Whether futex2's calls take words of this many bits: 8, 16, 32 or 64. Kernels to date: 32 only.
///
/// # Panics
/// If `bits` is none of the four.
pub fn futex2_size(bits: u32) -> Support {
    futex2_wait(match bits {
        8 => 0,
        16 => 1,
        32 => 2,
        64 => 3,
        _ => panic!("no futex has {bits} bits"),
    })
}

/// Whether a word can be followed by the number of the NUMA node to queue on (`FUTEX2_NUMA`, Linux
/// 6.16).
pub fn futex2_numa() -> Support {
    futex2_wait(SIZE_U32 | NUMA)
}

/// Whether the node can be taken from the memory policy of the word (`FUTEX2_MPOL`, Linux 6.16).
pub fn futex2_mpol() -> Support {
    futex2_wait(SIZE_U32 | MPOL)
}

/// `struct futex_waitv`.
#[repr(C)]
struct Waitv {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

impl Waitv {
    fn private(word: &Pair, value: u64) -> Self {
        Self {
            value,
            address: (&raw const *word) as u64,
            flags: (SIZE_U32 | PRIVATE) as u32,
            reserved: 0,
        }
    }
}

/// Whether one call can wait on many words (`futex_waitv`, Linux 5.16).
pub fn futex_waitv() -> Support {
    let word = Pair([0; 4]);
    let entry = [Waitv::private(&word, 1)];
    // SAFETY: the kernel reads the one entry and the word that it names, both variables here that
    // outlive the call. The word does not match, so the call does not sleep; the null pointer means
    // "no timeout".
    let result = from_raw(unsafe {
        syscall5(Sysno::futex_waitv, entry.as_ptr() as usize, 1, 0, 0, CLOCK_MONOTONIC)
    });
    Support::answers(result, Errno::AGAIN)
}

/// Whether there is futex2's wait (`futex_wait`, Linux 6.7).
pub fn futex2_wait_call() -> Support {
    futex2_wait(SIZE_U32)
}

/// Whether there is futex2's wake (`futex_wake`, Linux 6.7).
pub fn futex2_wake_call() -> Support {
    let word = Pair([0; 4]);
    // SAFETY: for a private wake the address is only a key: nothing is read or written. No thread
    // waits on a variable of this function.
    let result = from_raw(unsafe {
        syscall4(Sysno::futex_wake, (&raw const word) as usize, 1, 1, SIZE_U32 | PRIVATE)
    });
    Support::succeeds(result)
}

/// Whether there is futex2's requeue (`futex_requeue`, Linux 6.7).
pub fn futex2_requeue_call() -> Support {
    let (from, to) = (Pair([0; 4]), Pair([0; 4]));
    let pair = [Waitv::private(&from, 0), Waitv::private(&to, 0)];
    // SAFETY: the kernel reads both entries and the word of the first, variables here that outlive
    // the call. It writes nothing, and no thread waits on a variable of this function.
    let result =
        from_raw(unsafe { syscall4(Sysno::futex_requeue, pair.as_ptr() as usize, 0, 0, 0) });
    Support::succeeds(result)
}

/// How many buckets the kernel's hash table of this process has (Linux 6.16): 0 before the process
/// has started its first thread, or if it was put on the global table.
///
/// # Errors
/// `EINVAL` on a kernel without such tables.
pub fn private_hash_slots() -> Result<usize, Errno> {
    const PR_FUTEX_HASH: usize = 78;
    const GET_SLOTS: usize = 2;
    // SAFETY: no memory is passed, and GET_SLOTS changes nothing.
    from_raw(unsafe { syscall5(Sysno::prctl, PR_FUTEX_HASH, GET_SLOTS, 0, 0, 0) })
}

/// Whether the kernel can zero memory in a forked child (`MADV_WIPEONFORK`, Linux 4.14).
pub fn wipe_on_fork() -> Support {
    let Some(page) = super::mem::map(super::mem::PAGE) else {
        return Support::No(Errno::NOMEM);
    };
    // SAFETY: `page` is one whole mapping of this length, made just above, and no other place has
    // its address; it holds only zeros. So nothing is lost by wiping it, and it is unmapped last.
    unsafe {
        let result = super::mem::wipe_on_fork(page, super::mem::PAGE);
        super::mem::unmap(page, super::mem::PAGE);
        result.map_or_else(Support::No, |()| Support::Yes)
    }
}

/// Whether the classic call, futex(2), works at all (a wait whose value does not match).
pub fn futex() -> Support {
    const WAIT_PRIVATE: usize = 128;
    let word = 0u32;
    // SAFETY: the kernel reads the word, a variable here that outlives the call. It does not match,
    // so the call does not sleep; the null pointer means "no timeout".
    let result =
        from_raw(unsafe { syscall4(Sysno::futex, (&raw const word) as usize, WAIT_PRIVATE, 1, 0) });
    Support::answers(result, Errno::AGAIN)
}

/// Whether the kernel can free a robust mutex's word, clear the thread's pending operation and wake
/// a waiter in one call (`FUTEX_ROBUST_UNLOCK`, Linux 7.3).
pub fn robust_unlock() -> Support {
    const WAKE_PRIVATE: usize = 1 | 128;
    const ROBUST_UNLOCK: usize = 512;
    // Anything but 0: the kernel sets both to 0.
    let (word, pending) = (AtomicU32::new(1), AtomicUsize::new(1));
    // SAFETY: a kernel that has the operation writes zeros to the word and to the pointer-sized
    // `pending`, variables here that outlive the call. Another one refuses the unknown operation.
    // No thread waits on a variable of this function.
    let result = from_raw(unsafe {
        syscall6(
            Sysno::futex,
            word.as_ptr() as usize,
            WAKE_PRIVATE | ROBUST_UNLOCK,
            1,
            0,
            pending.as_ptr() as usize,
            0,
        )
    });
    match result {
        Ok(_) if word.load(Relaxed) != 0 || pending.load(Relaxed) != 0 => Support::No(Errno::NOSYS),
        result => Support::succeeds(result),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_classic_call_is_there_and_futex2_takes_32_bits_if_it_is_there() {
        assert_eq!(futex(), Support::Yes);
        if futex2_wait_call().is_there() {
            assert_eq!(futex2_size(32), Support::Yes);
        }
    }

    #[test]
    fn an_answer_is_distinguished_from_a_refusal() {
        assert_eq!(Support::answers(Err(Errno::AGAIN), Errno::AGAIN), Support::Yes);
        let refused = Support::answers(Err(Errno::INVAL), Errno::AGAIN);
        assert_eq!(refused, Support::No(Errno::INVAL));
        assert_eq!(refused.to_string(), "no (EINVAL)");
    }
}
