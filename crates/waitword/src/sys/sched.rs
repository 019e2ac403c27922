//! Calls to the scheduler: priorities, CPUs, yields, sleeps. `sched_model.rs` has a model's.

use crate::sys::Errno;

/// The highest value that [`priority`] returns.
pub(crate) const HIGHEST_PRIORITY: u8 = 100;

/// The calling thread's real-time priority. It is read at most every few milliseconds: it changes
/// seldom, and reading it costs a system call, a tenth of a sleep.
pub(crate) fn priority() -> u8 {
    use core::cell::Cell;
    const FRESH_FOR: u64 = 10;
    thread_local! {
        // No destructor and a constant initial value: usable at any moment of a thread's life.
        static KNOWN: Cell<(u64, u8)> = const { Cell::new((0, 0)) };
    }
    // Zero means "never": boot was longer ago than that.
    let now = super::clock::coarse_milliseconds();
    let (asked, known) = KNOWN.with(Cell::get);
    if asked != 0 && now.wrapping_sub(asked) < FRESH_FOR {
        return known;
    }
    let priority = realtime_priority();
    KNOWN.with(|known| known.set((now, priority)));
    priority
}

/// The calling thread's real-time priority: 1 to 99 for SCHED_FIFO and SCHED_RR, 100 for
/// SCHED_DEADLINE (which runs before both), 0 for all other policies. One system call, two for a
/// real-time thread.
#[cold]
fn realtime_priority() -> u8 {
    use syscalls::{Sysno, syscall1, syscall2};
    const SCHED_RESET_ON_FORK: usize = 0x4000_0000;
    // SAFETY: no memory is passed; the call reads a setting of the calling thread (0).
    let policy = unsafe { syscall1(Sysno::sched_getscheduler, 0) };
    match policy.map_or(0, |policy| policy & !SCHED_RESET_ON_FORK) as i32 {
        libc::SCHED_FIFO | libc::SCHED_RR => {
            let mut priority = 0i32;
            // SAFETY: the kernel writes a `struct sched_param`, which is one `int`, to `priority`,
            // a variable here.
            let result =
                unsafe { syscall2(Sysno::sched_getparam, 0, (&raw mut priority) as usize) };
            result.map_or(0, |_| priority.clamp(0, 99) as u8)
        }
        libc::SCHED_DEADLINE => HIGHEST_PRIORITY,
        _ => 0,
    }
}

/// The kernel's number for the calling thread (`tid.rs` remembers it).
pub(super) fn new_thread_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// How many CPUs the threads of this process may run on; at least 1. A thread that is bound to one
/// CPU shows little about the other threads, so the main thread is checked too.
pub(crate) fn cpus() -> u32 {
    let count = |thread| rustix::thread::sched_getaffinity(thread).map_or(1, |set| set.count());
    let main = rustix::process::getpid();
    count(None).max(count(Some(main))).max(1)
}

/// Lets other threads run on this CPU, if any want to.
pub(crate) fn yield_cpu() {
    rustix::thread::sched_yield();
}

/// Sleeps this long; a signal may end it sooner.
pub(crate) fn sleep_nanoseconds(nanoseconds: i64) {
    let _ = rustix::thread::nanosleep(&rustix::time::Timespec { tv_sec: 0, tv_nsec: nanoseconds });
}

/// Ensures that the process's own hash table in the kernel (Linux 6.16) has a bucket for each of
/// `words` words.
///
/// Our sleepers are queued there, 32 to a word. With the kernel's 16 buckets, a wake among
/// thousands of sleepers would walk past hundreds of unrelated ones. But resizing the table blocks
/// the caller for some 30 ms, and for as long again if other threads ask for it at the same time
/// (the kernel waits for readers of the old table). So it is resized only when necessary, for eight
/// times as many words, and by one thread. Does nothing if the kernel has no such table or the
/// process was put on the global one. Never shrinks the table.
pub(crate) fn grow_kernel_hash(words: usize) {
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use syscalls::{Sysno, syscall5};
    const PR_FUTEX_HASH: usize = 78;
    const SET_SLOTS: usize = 1;
    const GET_SLOTS: usize = 2;
    /// The kernel's initial size.
    const FIRST: usize = 16;
    /// The number last requested. (A forked child begins with 16, and asks only for more than its
    /// parent did.) Relaxed: it publishes nothing else.
    static ASKED: AtomicUsize = AtomicUsize::new(FIRST);
    let asked = ASKED.load(Relaxed);
    if words <= asked {
        return;
    }
    let slots = (8 * words).next_power_of_two();
    if ASKED.compare_exchange(asked, slots, Relaxed, Relaxed).is_err() {
        return;
    }
    // SAFETY: no memory is passed; the calls read and set the size of a table in the kernel.
    unsafe {
        match syscall5(Sysno::prctl, PR_FUTEX_HASH, GET_SLOTS, 0, 0, 0) {
            Ok(now) if now > 0 && now < slots => {
                let _: Result<usize, Errno> =
                    super::from_raw(syscall5(Sysno::prctl, PR_FUTEX_HASH, SET_SLOTS, slots, 0, 0));
            }
            _ => {}
        }
    }
}
