//! `libwaitword_pthread.so`: an unmodified program's pthread locks on waitword. It is loaded before
//! the C library (`LD_PRELOAD`, or `waitword run`) and defines functions of the same names.
//!
//! # Which library serves an object?
//!
//! This is decided once per object, by what its initialiser has written, and never mixed:
//!
//! | object | ours | the C library's |
//! |--------|------|-----------------|
//! | mutex | private (1) | process-shared, robust, priority-protected |
//! | condition variable | private | process-shared |
//! | semaphore | private, unnamed | process-shared, named |
//! | rwlock, barrier | private | process-shared |
//! | spin lock | the kinds cannot be distinguished: glibc's layout and protocol, our waiting | |
//! | `pthread_once_t` | all | |
//! | C11's `mtx_t`, `cnd_t`, `once_flag` | all: they are the same objects | |
//! | raw futexes (`syscall`) | private words of 32 bits | the kernel's: shared words, PI |
//! | all, in a process with `WAITWORD=off` | none | all |
//!
//! 1. If it is normal, adaptive, recursive, error-checking or priority-inheriting.
//!
//! Objects keep the C library's size and static initialisers. Attribute objects are the C library's
//! own and are decoded here (`attributes.rs`). Objects of the C library go to its functions
//! untouched (`real.rs`), so other processes without the drop-in understand what lies in shared
//! memory.
//!
//! # Rules for every function
//!
//! * It may be called before any constructor has run, in a signal handler where POSIX allows that,
//!   under `malloc`, while the stack is unwound, and during process exit: no heap, no thread-local
//!   storage with a destructor, no lock of the C library.
//! * It returns error numbers and leaves `errno` alone, where POSIX specifies so.
//! * It can be unwound from any instruction: `extern "C-unwind"`, with nothing to be dropped.
//!   Anything longer than a step or two runs in a call (`call.rs`), which is never left in the
//!   middle.
//!
//! # Layers
//!
//! **A file uses only files that are listed before it** (`scripts/rooms` checks that):
//!
//! | files | contents |
//! |-------|----------|
//! | `text`, `real` | a line of text; the C library's own functions |
//! | `attributes`, `memory` | the C library's attribute objects; what memory is mapped |
//! | `settings`, `mode` | the environment; how a process is served |
//! | `summary` | the line at exit |
//! | `interrupters`, `thread` | all threads' interrupters; the calling thread, its open call |
//! | `cancel`, `leave` | cancellation; signal handlers that do not return |
//! | `call` | a call, which is never left in the middle |
//! | `record` | the recording of waits |
//! | `syscall` | raw futexes |
//! | `mutex`, `cond`, `rwlock`, `sem`, `barrier`, `spin`, `once` | the objects (1) |
//! | `join` | waits for the end of a thread, which are only recorded |
//! | `c11`, `old_names` | the same functions by other names |
//!
//! 1. `object.rs` in a folder of the same name: its bytes, and which library serves it.
//!
//! # The C caller's obligations
//!
//! An exported function's contract is POSIX's (or C11's) page of that name. For an object this
//! means: the pointer leads to an initialised object, the object is not destroyed or moved
//! meanwhile, and its memory stays until the call returns, or until the page allows another thread
//! to free it. The functions behind the exported ones are called with the same arguments.

#![allow(
    clippy::missing_safety_doc,
    reason = "the functions are POSIX's, and so is what they ask for"
)]

#[cfg(not(target_env = "gnu"))]
compile_error!(
    "the drop-in replaces functions of glibc, whose layouts it uses. It cannot be built for \
     another C library, such as musl: link waitword itself, or its C library, instead."
);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the drop-in has an entry for `syscall` on x86-64 and on AArch64 only.");

mod attributes;
pub mod barrier;
pub mod c11;
mod call;
pub mod cancel;
pub mod cond;
mod interrupters;
pub mod join;
#[cfg(target_arch = "x86_64")]
pub mod leave;
#[cfg(not(target_arch = "x86_64"))]
#[path = "leave/elsewhere.rs"]
mod leave;
mod memory;
mod mode;
pub mod mutex;
pub mod old_names;
pub mod once;
mod real;
mod record;
pub mod rwlock;
pub mod sem;
mod settings;
pub mod spin;
mod summary;
pub mod syscall;
mod text;
mod thread;
