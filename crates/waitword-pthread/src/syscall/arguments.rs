//! The calls that are served here, and their arguments.

/// The arguments after the number.
pub(super) type Arguments = [usize; 6];

pub(super) const FUTEX: usize = libc::SYS_futex as usize;
pub(super) const FUTEX_WAITV: usize = libc::SYS_futex_waitv as usize;
// The `libc` crate does not have these yet. New calls have the same number on all processors.
pub(super) const FUTEX_WAKE: usize = 454;
pub(super) const FUTEX_WAIT: usize = 455;
pub(super) const FUTEX_REQUEUE: usize = 456;
