//! Reads the memory of another process.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt as _;

/// The memory of a process.
pub(super) struct Memory {
    pid: Pid,
    /// For kernels and containers without process_vm_readv.
    file: Option<File>,
}

impl Memory {
    pub(super) fn of(pid: u32) -> Self {
        let file = File::open(format!("/proc/{pid}/mem")).ok();
        Self { pid: Pid::from_raw(pid as i32), file }
    }

    /// Fills `bytes` from this address on. Returns whether all of them were there.
    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let len = bytes.len();
        let from = [RemoteIoVec { base: address as usize, len }];
        match process_vm_readv(self.pid, &mut [IoSliceMut::new(bytes)], &from) {
            Ok(read) => read == len,
            Err(nix::Error::EFAULT | nix::Error::ESRCH) => false,
            Err(_) => {
                self.file.as_ref().is_some_and(|file| file.read_exact_at(bytes, address).is_ok())
            }
        }
    }
}
