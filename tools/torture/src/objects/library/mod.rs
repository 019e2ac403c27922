//! The library's types.

pub(crate) mod barrier;
pub(crate) mod condvar;
mod interrupters;
pub(crate) mod mutex;
pub(crate) mod object;
pub(crate) mod once;
pub(crate) mod robust;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
