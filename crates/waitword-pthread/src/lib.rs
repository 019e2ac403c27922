//! `libwaitword_pthread.so`: an unmodified program's pthread locks on waitword. It is loaded before the C library
//! (`LD_PRELOAD`, or `waitword run`) and defines functions of the same names.
//!
//! # Whose object is it?
//!
//! Decided for each object once, by what its initialiser has written, and never mixed:
//!
//! | object | ours | the C library's |
//! |--------|------|-----------------|
//! | mutex | private: normal, adaptive, recursive, error-checking, priority-inheriting | process-shared, robust, priority-protected |
//! | condition variable | private | process-shared |
//! | semaphore | private, unnamed | process-shared, named |
//! | rwlock, barrier | private | process-shared |
//! | spin lock | none can be told apart: glibc's layout and protocol, our way to wait | |
//! | `pthread_once_t` | all | |
//! | C11's `mtx_t`, `cnd_t`, `once_flag` | all: they are the same objects | |
//! | raw futexes (`syscall`) | private words of 32 bits | the kernel's: shared words, PI |
//! | all | in a process with `WAITWORD=off`: none | all |
//!
//! Objects keep the C library's size and static initialisers; attribute objects are its own, and decoded here
//! (`attributes.rs`). What is the C library's goes to its functions untouched (`real.rs`), so other processes that have no drop-in
//! understand what lies in shared memory.
//!
//! # What every function holds to
//!
//! * It may be called before any constructor has run, in a signal handler where POSIX allows that, under `malloc`, while the
//!   stack is unwound, and as the process ends: no heap, no thread-local storage with a destructor, no lock of the C library.
//! * It returns error numbers and leaves `errno` alone, where POSIX has it so.
//! * It can be unwound from any instruction: `extern "C-unwind"`, with nothing to be dropped. What does more than a step or two runs in a
//!   call (`call.rs`), which is never left from its middle.
//!
//! # What is asked of C
//!
//! An exported function's contract is POSIX's (or C11's) page of that name. Of an object: that the
//! pointer leads to one that was initialised, that it is not destroyed or moved meanwhile, and that
//! its memory stays until the call returns, or until the page allows another thread to free it. The
//! functions behind the exported ones are called with the same arguments.

#![allow(
    clippy::missing_safety_doc,
    reason = "the functions are POSIX's, and so is what they ask for"
)]

mod attributes;
pub mod barrier;
pub mod c11;
pub mod c11_cond;
mod call;
pub mod cancel;
pub mod cond;
#[cfg(target_arch = "x86_64")]
pub mod leave;
#[cfg(not(target_arch = "x86_64"))]
#[path = "leave/elsewhere.rs"]
mod leave;
mod mode;
pub mod mutex;
pub mod old_names;
pub mod once;
mod real;
pub mod rwlock;
pub mod sem;
pub mod spin;
mod summary;
#[cfg(target_arch = "x86_64")]
pub mod syscall;
mod text;
