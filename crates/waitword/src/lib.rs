//! Futexes of 8, 16, 32 and 64 bits, in user space, on a stock Linux kernel; and the locks that stand on them.
//!
//! # The locks
//!
//! [`Mutex`], [`RwLock`], [`Condvar`], [`ReentrantMutex`], [`FairMutex`] and [`Once`] have
//! parking_lot's names and interface: a program that uses that need only change its `use`.
//! [`OnceLock`] and [`LazyLock`] are as std's. [`Semaphore`], [`Barrier`], [`Event`],
//! [`AutoEvent`], [`Latch`] and, on the standard
//! atomics, [`AtomicWait`] complete them; [`RobustMutex`] outlives its holder's process. The mutex chooses for itself how to
//! wait. To choose yourself: [`MutexOptions`], [`RwLockOptions`]. Which lock for what:
//! `docs/which-lock.md` in the repository.
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
//! Under parking_lot's names, each off by default:
//!
//! * **`arc_lock`**: `lock_api`'s guards that own an [`Arc`](std::sync::Arc) of the lock, and the
//!   methods that return them (`lock_arc`, `read_arc`, ...).
//! * **`deadlock_detection`**: finds threads that wait for each other in a cycle, and names them
//!   and their locks. Its module, `waitword::deadlock`, has parking_lot's interface and a
//!   background check.
//! * **`serde`**: [`Mutex`], [`FairMutex`], [`ReentrantMutex`], [`RwLock`], [`CheckedMutex`] and
//!   [`PiMutex`] are serialized and deserialized as what they protect.
//! * **`send_guard`**: guards of [`Mutex`], [`FairMutex`] and [`RwLock`] may be dropped by another
//!   thread than locked. Not together with `deadlock_detection`.
//!
//! # The futexes
//!
//! A futex is a word in a program's memory. A thread that finds the word in the wrong state asks to
//! sleep until somebody changes it ([`Futex::wait`]); whoever changes it asks to wake sleepers
//! ([`Futex::wake`]). Linux offers this for 32-bit words only. This crate offers it for four sizes,
//! with requeue, two-word [wake_op](Futex::wake_op), bitsets and [waiting on many](wait_any), both
//! inside one process and across processes.
//!
//! ```
//! use std::sync::atomic::{AtomicU8, Ordering};
//! use waitword::Futex;
//!
//! static READY: AtomicU8 = AtomicU8::new(0);
//!
//! let waiter = std::thread::spawn(|| {
//!     while READY.load(Ordering::Acquire) == 0 {
//!         // Sleeps only while the byte still holds 0. Every error and every wake-up
//!         // means the same here: look again.
//!         let _ = Futex::private(&READY).wait(0);
//!     }
//! });
//! READY.store(1, Ordering::Release);
//! Futex::private(&READY).wake(1)?;
//! waiter.join().unwrap();
//! # Ok::<(), waitword::Error>(())
//! ```
//!
//! # The two worlds
//!
//! A **private** word ([`Futex::private`]) is known to the threads of one process. Its waiters stand in
//! a table in the process itself, so a call that need not sleep or wake anybody makes no system call.
//!
//! A **shared** word ([`Futex::shared`]) lies in memory that several processes map. Its waiters stand in
//! the kernel. What can be promised there differs by size: see [`Futex::shared`].
//!
//! A word belongs to one world at a time: a private wake does not find a shared waiter, nor the other
//! way round. That is the kernel's own rule too.
//!
//! # What every futex operation promises
//!
//! * **Check and enqueue are one step.** A wait that sleeps has seen the expected value at a moment after
//!   which every wake finds it.
//! * **Exact counts.** The number returned is the number woken (or woken and moved).
//! * **Order of arrival**, within a scheduling class; real-time waiters go first, by priority. A
//!   thread's priority is looked up at most every 10 ms, so a change may be seen that much late.
//! * **No heap** on any path: an allocator may stand on these futexes. (In a library that was loaded by
//!   `dlopen`, the C library may allocate a thread's first thread-local storage there.)
//! * **Signal handlers**: `wake`, `requeue` and `wake_op` are async-signal-safe. If the handler has
//!   interrupted this library inside one of its own short critical sections, the wake is delivered as
//!   that section ends, and the call returns 0, since the number is not yet known. A wait from such a
//!   handler returns [`Error::Interrupted`].
//! * **fork**: the child starts with an empty table. Memory is wiped by the kernel (`MADV_WIPEONFORK`),
//!   so this holds for every kind of fork, whatever was locked at the time. If a signal handler forks in
//!   the middle of a wait, the wait ends in the child with [`Error::Interrupted`]. If it has interrupted one of
//!   this library's own critical sections, the child must not return from the handler (exec and exit are
//!   what handlers fork for). Where the kernel does not wipe, or memory is short, a handler of
//!   `pthread_atfork` clears the table. It is registered by the first wait at the latest. A handler of
//!   the program that was registered before it runs first, and must not use this crate's locks.
//! * **Wake-ups may be spurious**, as futex(2) allows; always look at the word again. The one thing that
//!   never happens is a wake-up that is lost.
//! * A wake-up synchronizes: what the waker did before the wake is visible to the woken thread. A wait
//!   that returns [`Error::Mismatch`] orders nothing; read the word with the ordering that is needed.

#![cfg_attr(loom, allow(dead_code, unused_imports, unreachable_pub))]

#[cfg(not(target_os = "linux"))]
compile_error!("waitword works on Linux only: its threads sleep in Linux's futex calls.");
#[cfg(all(feature = "send_guard", feature = "deadlock_detection"))]
compile_error!("the features `send_guard` and `deadlock_detection` cannot be used together");
#[cfg(all(target_os = "linux", not(target_has_atomic = "64")))]
compile_error!("waitword needs 64-bit atomics, which this target does not have.");

/// Keeps the rest of the crate, and with it a hundred other errors, from a target that it cannot
/// be built for. (rustfmt finds the modules in a macro of this name and form.)
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
        mod futex;
        mod lock;
        mod oncpu;
        mod park;
        mod private;
        #[cfg(not(loom))]
        mod shared;
        #[cfg(loom)]
        #[path = "stats/none.rs"]
        mod stats;
        mod sys;
        mod word;

        #[cfg(not(loom))]
        #[doc(hidden)]
        pub mod abi_support;
        #[cfg(all(feature = "deadlock_detection", not(loom)))]
        pub mod deadlock;
        #[cfg(not(any(feature = "deadlock_detection", loom)))]
        #[path = "deadlock/none.rs"]
        mod deadlock;
        #[cfg(not(loom))]
        pub mod door;
        #[cfg(not(loom))]
        pub mod spin;
        #[cfg(not(loom))]
        pub mod stats;
        #[cfg(not(loom))]
        pub mod table;

        pub use word::{Cmp, FutexWord, Mask, NumaWord, Op, WakeOp, Word};

        pub use futex::{Error, Scope};
        #[cfg(not(loom))]
        pub use futex::{Expecting, Futex, WAIT_ANY_MAX, WaitOptions, wait_any};
        pub use lock::*;
        pub use lock_api;
        pub use sys::clock::{Clock, Deadline};
        #[cfg(not(loom))]
        pub use sys::probe;
        #[cfg(not(loom))]
        pub use sys::tid::tid as thread_number;

        #[cfg(all(test, loom))]
        mod model;
    }
}
