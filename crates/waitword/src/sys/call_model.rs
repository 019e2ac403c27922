//! The system calls of `numa.rs`, which fail as if the kernel had none of them.

pub(super) use syscalls::Sysno;

use syscalls::Errno;

type Answer = Result<usize, Errno>;

/// # Safety
/// None is required.
pub(super) unsafe fn syscall3(_: Sysno, _: usize, _: usize, _: usize) -> Answer {
    Err(Errno::ENOSYS)
}

/// # Safety
/// None is required.
pub(super) unsafe fn syscall5(
    _: Sysno,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> Answer {
    Err(Errno::ENOSYS)
}

/// # Safety
/// None is required.
pub(super) unsafe fn syscall6(
    _: Sysno,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> Answer {
    Err(Errno::ENOSYS)
}
