//! The flags of the locks' `init` functions, and the locks' other numbers.

/// Flag for the `init` function of every lock: only threads of this process use the object. (0, the
/// default.)
pub const WW_PROCESS_PRIVATE: u32 = 0;
/// Flag for the `init` function of every lock: the object lies in memory that several processes
/// map, and threads of all of them use it.
pub const WW_PROCESS_SHARED: u32 = 0x100;

/// Kind of a mutex, for `ww_mutex_init`: a second lock by its holder deadlocks, and an unlock does
/// not check which thread calls it. (0, the default.)
pub const WW_MUTEX_NORMAL: u32 = 0;
/// Kind of a mutex: a second lock by its holder succeeds, and as many unlocks are needed. An unlock
/// by another thread returns `EPERM`.
pub const WW_MUTEX_RECURSIVE: u32 = 1;
/// Kind of a mutex: a second lock by its holder returns `EDEADLK`, an unlock by another thread
/// `EPERM`.
pub const WW_MUTEX_ERRORCHECK: u32 = 2;

/// Flavour of a mutex, for `ww_mutex_init`: it chooses from what it observes whether to spin, to
/// sleep, and to hand off. (0, the default, and the one to use unless a measurement favours
/// another.)
pub const WW_MUTEX_ADAPTIVE: u32 = 0;
/// Flavour of a mutex: a running thread may barge past sleeping waiters. Waiters stay awake for
/// some µs before they sleep, and a thread that has waited long is handed the mutex.
pub const WW_MUTEX_THROUGHPUT: u32 = 0x10;
/// Flavour of a mutex: waiters sleep at once. For critical sections that are long or sleep. There
/// is no bound on how often other threads may overtake a waiter.
pub const WW_MUTEX_WAIT_WAKE: u32 = 0x20;
/// Flavour of a mutex: the holder runs with the priority of the threads that wait for it, and the
/// kernel hands the mutex off in the order of priorities. For real-time threads; slow for all
/// others.
pub const WW_MUTEX_PRIO_INHERIT: u32 = 0x30;

/// Preference of a reader/writer lock, for `ww_rwlock_init`: a reader waits only while a writer
/// holds the lock, so a thread may hold several read locks at once. (0, the default.) Modelled on
/// glibc's `PTHREAD_RWLOCK_PREFER_READER_NP`.
pub const WW_RWLOCK_PREFER_READER: u32 = 0;
/// Preference of a reader/writer lock: a reader also waits while a writer waits. Modelled on
/// glibc's `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
pub const WW_RWLOCK_PREFER_WRITER: u32 = 1;

/// Flag for `ww_event_init` and `ww_auto_event_init`: the event is initially set.
pub const WW_EVENT_SET: u32 = 1;

/// What `ww_barrier_wait` returns to one thread of each round, as `PTHREAD_BARRIER_SERIAL_THREAD`.
pub const WW_BARRIER_SERIAL_THREAD: i32 = -1;

/// The maximum value of a semaphore.
pub const WW_SEM_VALUE_MAX: i32 = 0x7fff_ffff;
/// The maximum count of a barrier.
pub const WW_BARRIER_COUNT_MAX: i32 = 0x7fff_ffff;
/// The maximum count of a latch.
pub const WW_LATCH_COUNT_MAX: i32 = 0x3fff_ffff;

const _: () = {
    use waitword_core::{Barrier, Latch, Semaphore};
    assert!(WW_SEM_VALUE_MAX as u32 == Semaphore::MAX_VALUE);
    assert!(WW_BARRIER_COUNT_MAX as u32 == Barrier::MAX_COUNT);
    assert!(WW_LATCH_COUNT_MAX as u32 == Latch::MAX_COUNT);
};
