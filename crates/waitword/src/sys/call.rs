//! The system calls of `numa.rs`. In a model they fail (`call_model.rs`): it has one node.

pub(super) use syscalls::{Sysno, syscall3, syscall5, syscall6};
