//! The flags of the locks' `init` functions, and what else they have for numbers.

/// Flag for the `init` of every lock: only threads of this process use the object. (0, the default.)
pub const WW_PROCESS_PRIVATE: u32 = 0;
/// Flag for the `init` of every lock: the object lies in memory that several processes map, and threads of all of them
/// use it.
pub const WW_PROCESS_SHARED: u32 = 0x100;

/// Kind of a mutex, for `ww_mutex_init`: a second lock by its holder waits for ever; who unlocks is not checked. (0, the
/// default.)
pub const WW_MUTEX_NORMAL: u32 = 0;
/// Kind of a mutex: a second lock by its holder succeeds, and as many unlocks are needed; an unlock by another thread is
/// `EPERM`.
pub const WW_MUTEX_RECURSIVE: u32 = 1;
/// Kind of a mutex: a second lock by its holder is `EDEADLK`, an unlock by another thread `EPERM`.
pub const WW_MUTEX_ERRORCHECK: u32 = 2;

/// Flavour of a mutex, for `ww_mutex_init`: chooses for itself, from what it observes, whether to spin, to sleep, and to
/// hand over. (0, the default, and the one to use unless a measurement says otherwise.)
pub const WW_MUTEX_ADAPTIVE: u32 = 0;
/// Flavour of a mutex: a running thread may take it past sleepers, waiters stay awake for some µs, and a thread
/// that has waited long is handed it.
pub const WW_MUTEX_THROUGHPUT: u32 = 0x10;
/// Flavour of a mutex: waiters sleep at once. For sections that are long or sleep. A waiter may be passed over without
/// bound.
pub const WW_MUTEX_WAIT_WAKE: u32 = 0x20;
/// Flavour of a mutex: whoever holds it runs with the priority of whoever waits for it, and it is handed over in the order
/// of priorities, by the kernel. For real-time threads; slow for all others.
pub const WW_MUTEX_PRIO_INHERIT: u32 = 0x30;

/// Preference of a reader/writer lock, for `ww_rwlock_init`: a reader waits only while somebody writes, so a thread may
/// read several times at once. (0, the default.) After glibc's `PTHREAD_RWLOCK_PREFER_READER_NP`.
pub const WW_RWLOCK_PREFER_READER: u32 = 0;
/// Preference of a reader/writer lock: a reader waits also while a writer waits. After glibc's
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
pub const WW_RWLOCK_PREFER_WRITER: u32 = 1;

/// Flag for `ww_event_init` and `ww_auto_event_init`: the event is set to begin with.
pub const WW_EVENT_SET: u32 = 1;

/// What `ww_barrier_wait` returns to one thread of each round, as `PTHREAD_BARRIER_SERIAL_THREAD`.
pub const WW_BARRIER_SERIAL_THREAD: i32 = -1;

/// The highest value of a semaphore.
pub const WW_SEM_VALUE_MAX: i32 = 0x7fff_ffff;
/// The highest count of a barrier.
pub const WW_BARRIER_COUNT_MAX: i32 = 0x7fff_ffff;
/// The highest count of a latch.
pub const WW_LATCH_COUNT_MAX: i32 = 0x3fff_ffff;

const _: () = {
    use waitword_core::{Barrier, Latch, Semaphore};
    assert!(WW_SEM_VALUE_MAX as u32 == Semaphore::MAX_VALUE);
    assert!(WW_BARRIER_COUNT_MAX as u32 == Barrier::MAX_COUNT);
    assert!(WW_LATCH_COUNT_MAX as u32 == Latch::MAX_COUNT);
};
