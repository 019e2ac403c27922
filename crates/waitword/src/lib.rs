//! Futexes of 8, 16, 32 and 64 bits in user space, on a stock Linux kernel, and the locks built on
//! them.
//!
//! # The locks
//!
//! [`Mutex`], [`RwLock`], [`Condvar`], [`ReentrantMutex`], [`FairMutex`] and [`Once`] have
//! parking_lot's names and interface: a program that uses parking_lot need only change its `use`,
//! or not even that, if it renames the dependency: `parking_lot = { package = "waitword", ... }`.
//! [`OnceLock`] and [`LazyLock`] are as in std. There are also [`Semaphore`], [`Barrier`],
//! [`Event`], [`AutoEvent`], [`Latch`] and, on the standard atomics, [`AtomicWait`].
//! [`RobustMutex`] survives the death of its holder's process, [`PiMutex`] inherits priorities, and
//! [`CheckedMutex`] detects misuse. The mutex chooses how to wait by itself; to choose yourself,
//! see [`MutexOptions`] and [`RwLockOptions`]. The book in the repository helps you choose a lock
//! (`book/src/choose/which-lock.md`).
//!
//! ```
//! use waitword::{Condvar, Mutex};
//!
//! static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//! static FILLED: Condvar = Condvar::new();
//!
//! let worker = std::thread::spawn(|| {
//!     let mut queue = QUEUE.lock();
//!     FILLED.wait_while(&mut queue, |queue| queue.is_empty());
//!     queue.pop()
//! });
//! QUEUE.lock().push(7);
//! FILLED.notify_one();
//! assert_eq!(worker.join().unwrap(), Some(7));
//! ```
//!
//! # Cargo features
//!
//! Each is off by default. All but `record` have parking_lot's names:
//!
//! * **`arc_lock`**: `lock_api`'s guards that own an [`Arc`](std::sync::Arc) of the lock, and the
//!   methods that return them (`lock_arc`, `read_arc`, ...).
//! * **`deadlock_detection`**: finds threads that wait for each other in a cycle, and reports them
//!   and their locks. Its module, `waitword::deadlock`, has parking_lot's interface and a
//!   background check.
//! * **`record`**: records why threads wait, for the command `waitword profile`. Its module is
//!   `waitword::record`.
//! * **`serde`**: [`Mutex`], [`FairMutex`], [`ReentrantMutex`], [`RwLock`], [`CheckedMutex`] and
//!   [`PiMutex`] are serialized and deserialized as the data they protect.
//! * **`send_guard`**: a guard of [`Mutex`], [`FairMutex`] and [`RwLock`] may be dropped by another
//!   thread than the one that locked. Cannot be combined with `deadlock_detection`.
//!
//! # The futexes
//!
//! A futex is a word in a program's memory. A thread that finds the word in the wrong state asks to
//! sleep until another thread changes it ([`Futex::wait`]). The thread that changes it asks to wake
//! sleepers ([`Futex::wake`]). Linux offers this for 32-bit words only. This crate offers it for
//! four sizes, with requeue, two-word [wake_op](Futex::wake_op), bitsets and [waiting on many
//! words](wait_any), both inside one process and across processes.
//!
//! ```
//! use std::sync::atomic::{AtomicU8, Ordering};
//! use waitword::Futex;
//!
//! static READY: AtomicU8 = AtomicU8::new(0);
//!
//! let waiter = std::thread::spawn(|| {
//!     while READY.load(Ordering::Acquire) == 0 {
//!         // Sleeps only while the byte still holds 0. Whether this returns an error or
//!         // a wake-up, the next step is the same: check the byte again.
//!         let _ = Futex::private(&READY).wait(0);
//!     }
//! });
//! READY.store(1, Ordering::Release);
//! Futex::private(&READY).wake(1)?;
//! waiter.join().unwrap();
//! # Ok::<(), waitword::Error>(())
//! ```
//!
//! | to ... | call |
//! |---|---|
//! | sleep while a word holds a value | [`wait`], [`wait_until`], [`wait_with`] a mask |
//! | wake some waiters, or all | [`wake`], [`wake_mask`] |
//! | wake some and move the others to another word | [`requeue`], [`cmp_requeue`] |
//! | change a second word and wake waiters of both | [`wake_op`](Futex::wake_op) |
//! | sleep on up to 128 words of any size | [`wait_any`] |
//! | do any of this across processes | [`Futex::shared`] instead of [`Futex::private`] |
//! | choose the NUMA node of the waiters | [`Futex::numa`] |
//! | use futex(2)'s or futex2's own arguments and return values | [`raw`] |
//!
//! [`wait`]: Futex::wait
//! [`wait_until`]: Futex::wait_until
//! [`wait_with`]: Futex::wait_with
//! [`wake`]: Futex::wake
//! [`wake_mask`]: Futex::wake_mask
//! [`requeue`]: Futex::requeue
//! [`cmp_requeue`]: Futex::cmp_requeue
//!
//! All users of a word must use this crate for it: a kernel futex call on a private word does not
//! find the waiters of this crate.
//!
//! # Private and shared words
//!
//! A **private** word ([`Futex::private`]) is used by the threads of one process. Its waiters are
//! queued in a table in the process itself, so a call that need not sleep or wake a thread makes no
//! system call.
//!
//! A **shared** word ([`Futex::shared`]) lies in memory that several processes map. Its waiters are
//! queued in the kernel. The guarantees depend on the size: see [`Futex::shared`].
//!
//! A word is either private or shared at any one time. A private wake does not find a shared
//! waiter, and a shared wake does not find a private one. The kernel has the same rule.
//!
//! # Guarantees of every futex operation
//!
//! * **Check and enqueue are one step.** If a wait sleeps, it has seen the expected value at a
//!   moment after which every wake finds the waiter.
//! * **Exact counts.** The number returned is the number of threads woken (or woken and moved).
//! * **Order of arrival** within a scheduling class; real-time waiters go first, by priority. A
//!   thread's priority is looked up at most every 10 ms, so a change may take effect that much
//!   later.
//! * **No heap** on any path: an allocator may be built on these futexes. (In a library that was
//!   loaded by `dlopen`, the C library may allocate a thread's first thread-local storage there.)
//! * **Signal handlers**: `wake`, `requeue` and `wake_op` are async-signal-safe. If the handler has
//!   interrupted this library inside one of its own short critical sections, the wake is delivered
//!   as that section ends. The call then returns 0, since the number is not known yet. A wait from
//!   such a handler returns [`Error::Interrupted`].
//! * **fork**: the child starts with an empty table. The kernel wipes the memory
//!   (`MADV_WIPEONFORK`), so this holds for every kind of fork, whatever was locked at the time. If
//!   a signal handler forks in the middle of a wait, the wait ends in the child with
//!   [`Error::Interrupted`]. If the handler has interrupted one of this library's own critical
//!   sections, the child must not return from it (exec and exit are what handlers fork for). Where
//!   the kernel does not wipe, or memory is short, a handler of `pthread_atfork` clears the table.
//!   It is registered by the first wait at the latest. A handler that the program registered
//!   earlier runs before it in the child, and must not use this crate's locks.
//! * **Wake-ups may be spurious**, as futex(2) allows: always check the word again. A wake-up is
//!   never lost.
//! * A wake-up synchronizes: everything the waker did before the wake is visible to the woken
//!   thread. A wait that returns [`Error::Mismatch`] orders nothing; read the word with the
//!   ordering that you need.

// Pages name the features that they need, and not what is always so where the crate builds.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(loom, target_os = "linux", target_has_atomic = "64"))))]
#![cfg_attr(loom, allow(dead_code, unused_imports, unreachable_pub))]

#[cfg(not(target_os = "linux"))]
compile_error!("waitword works on Linux only: its threads sleep in Linux's futex calls.");
#[cfg(all(feature = "send_guard", feature = "deadlock_detection"))]
compile_error!("the features `send_guard` and `deadlock_detection` cannot be used together");
#[cfg(all(target_os = "linux", not(target_has_atomic = "64")))]
compile_error!("waitword needs 64-bit atomics, which this target does not have.");

/// Hides the rest of the crate on a target that it cannot be built for, where it would only add a
/// hundred other errors. (rustfmt finds the modules in a macro of this name and form.)
macro_rules! cfg_if {
    (if #[cfg($condition:meta)] { $($item:item)* }) => {
        $(#[cfg($condition)] $item)*
    };
}

cfg_if! {
    if #[cfg(all(target_os = "linux", target_has_atomic = "64"))] {
        mod atomic;
        #[cfg(loom)]
        mod checker;
        #[cfg(not(loom))]
        mod debugger;
        mod error;
        mod futex;
        mod lock;
        #[cfg(all(test, loom))]
        mod model;
        mod park;
        mod private;
        mod shared;
        mod sys;
        mod word;

        #[cfg(not(loom))]
        #[doc(hidden)]
        pub mod abi_support;
        #[cfg(feature = "deadlock_detection")]
        pub mod deadlock;
        #[cfg(not(feature = "deadlock_detection"))]
        #[path = "deadlock/none.rs"]
        mod deadlock;
        #[cfg(not(loom))]
        pub mod raw;
        #[cfg(all(feature = "record", not(loom)))]
        pub mod record;
        #[cfg(not(all(feature = "record", not(loom))))]
        #[path = "record/none.rs"]
        mod record;
        pub mod spin;
        pub mod stats;
        pub mod table;

        pub use word::{Cmp, FutexWord, Mask, NumaWord, Op, WakeOp, Word};

        pub use error::Error;
        pub use futex::{Expecting, Futex, Scope, WAIT_ANY_MAX, WaitOptions, wait_any};
        pub use lock::*;
        pub use lock_api;
        pub use sys::clock::{Clock, Deadline};
        pub use sys::probe;
        pub use sys::tid::tid as thread_number;
        pub use sys::time_slice;
    }
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
