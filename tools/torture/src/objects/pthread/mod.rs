//! The objects of the C library, used through its functions: those of the drop-in, if that is
//! loaded.

pub(crate) mod abi;
pub(crate) mod bare;
pub(crate) mod barrier;
pub(crate) mod condvar;
pub(crate) mod mutex;
pub(crate) mod object;
pub(crate) mod once;
pub(crate) mod real_time;
pub(crate) mod robust;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
pub(crate) mod sort;
pub(crate) mod until;
