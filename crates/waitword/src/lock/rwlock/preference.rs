//! Which threads a readers-writer lock prefers, and what that guarantees.

/// Which class of threads a [`RawRwLock`](crate::RawRwLock) prefers: readers or writers. Fixed when
/// the lock is created.
///
/// Neither class starves under either preference. A thread that has waited for 0.1 to 10 ms asks
/// for a turn. After that, newcomers queue behind it, and the lock goes to the thread that has
/// waited longest. (How soon depends on the length of the critical sections.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// POSIX's default, glibc's `PTHREAD_RWLOCK_PREFER_READER_NP`, and the default here. A reader
    /// waits only while a writer holds the lock.
    ///
    /// A recursive read **never deadlocks**, whichever threads wait. While a writer has its turn, a
    /// new reader is held back, but never for longer than that writer has waited so far: 100 µs at
    /// first if CPUs are idle, else 1 to 4 ms; then twice as long each time, at most 8.2 s. If the
    /// writer does not get the lock within its turn, the turn ends, and the next one lasts twice as
    /// long. So the writer gets the lock at the latest soon after it has waited twice as long as
    /// the longest section of a reader. A reader that already holds the lock has then waited in
    /// vain, but not forever.
    #[default]
    Reader,
    /// glibc's `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`. A reader also waits while a writer
    /// waits.
    ///
    /// A thread that holds the lock for reading and acquires it again **deadlocks** if a writer has
    /// begun to wait in between. Use the `recursive` calls of `lock_api` for that: they wait only
    /// while a writer holds the lock. Once readers have waited for 1 ms, all of them together get
    /// the lock when the next writer leaves.
    Writer,
}
