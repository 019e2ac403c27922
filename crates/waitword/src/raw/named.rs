//! The flags by which a caller of futex2 names a word.

use crate::futex::{RawFutex, Scope};
use crate::sys::Errno;
use crate::sys::futex_raw::Waitv;
use crate::word::{Size, WordPtr};
use core::ffi::c_void;

/// `FUTEX2_SIZE_U8`: a word of 8 bits.
pub const SIZE_U8: u32 = 0;
/// `FUTEX2_SIZE_U16`: a word of 16 bits.
pub const SIZE_U16: u32 = 1;
/// `FUTEX2_SIZE_U32`: a word of 32 bits.
pub const SIZE_U32: u32 = 2;
/// `FUTEX2_SIZE_U64`: a word of 64 bits.
pub const SIZE_U64: u32 = 3;
/// `FUTEX2_NUMA`: a node word follows the word (see [`NumaWord`](crate::NumaWord)).
pub const NUMA: u32 = 4;
/// `FUTEX2_MPOL`: waiters are queued according to the word's memory policy.
pub const MPOL: u32 = 8;
/// `FUTEX2_PRIVATE`: only this process uses the word.
pub const PRIVATE: u32 = 128;

const SIZE_MASK: u32 = 3;
const KNOWN: u32 = SIZE_MASK | NUMA | MPOL | PRIVATE;

/// A word as a futex2 caller names it.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) futex: RawFutex,
    /// Shared and placed on a node: the kernel supports this for 32 bits, and this library does
    /// not.
    pub(super) for_kernel: bool,
}

/// # Errors
/// `EINVAL` for unknown flags.
pub(super) fn named(address: *mut c_void, flags: u32) -> Result<Named, Errno> {
    if flags & !KNOWN != 0 {
        return Err(Errno::INVAL);
    }
    let size = match flags & SIZE_MASK {
        SIZE_U8 => Size::U8,
        SIZE_U16 => Size::U16,
        SIZE_U32 => Size::U32,
        _ => Size::U64,
    };
    let shared = flags & PRIVATE == 0;
    Ok(Named {
        futex: RawFutex {
            word: WordPtr { address: address.cast(), size },
            scope: if shared { Scope::Shared } else { Scope::Private },
            numa: flags & NUMA != 0,
        },
        for_kernel: shared && flags & (NUMA | MPOL) != 0,
    })
}

/// # Errors
/// `EINVAL` for unknown flags, or a value that is wider than the word.
pub(super) fn entry(waiter: &Waitv) -> Result<(Named, u64), Errno> {
    let address = core::ptr::with_exposed_provenance_mut(waiter.uaddr as usize);
    let named = named(address, waiter.flags)?;
    if waiter.reserved != 0 || !named.futex.word.size.holds(waiter.val) {
        return Err(Errno::INVAL);
    }
    Ok((named, waiter.val))
}
