//! A barrier: a fixed number of threads wait for each other, round after round.
//!
//! | word | private | process-shared |
//! |------|---------|----------------|
//! | `state`, low half | 0 | rounds completed, modulo 2^32; the kernel compares these |
//! | `state`, high half | threads that have arrived in this round | the same |
//! | `count` | threads that must arrive; bit 31: process-shared | the same |
//! | `inside` | 0 | threads inside `wait`; bit 31: `destroy` waits for them |
//!
//! # When may it be freed?
//!
//! POSIX lets a thread destroy a barrier as soon as its own wait has returned. Other threads may
//! still be waking up at that moment. If they read the barrier to find out whether the round is
//! over, they read freed memory.
//!
//! * **Private**: waiters do not read it. Arriving means queueing in the waiter table, in one step,
//!   and the last thread to arrive tells each waiter that the round is over (`private.rs`). So a
//!   private barrier may be freed at once and needs no count of the threads inside.
//! * **Shared**: the kernel cannot deliver such a message, so waiters must read the barrier. They
//!   are counted in and out, and `destroy` waits until all are out, as glibc's does
//!   (`shared.rs`).

mod private;
mod shared;

use super::const_fn::const_fn;
use super::count::CountError;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::futex::Scope;
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;

const SHARED: u32 = 1 << 31;
/// One arrival, in `state`.
const ARRIVAL: u64 = 1 << 32;

/// The number of threads that have arrived.
const fn arrived(state: u64) -> u32 {
    (state >> 32) as u32
}

/// A point at which a number of threads wait for each other. When the last of them arrives, all of
/// them go on, and the barrier is ready for the next round.
///
/// ```
/// use waitword::Barrier;
///
/// static BARRIER: Barrier = Barrier::new(4);
///
/// let threads = [(); 4].map(|()| {
///     std::thread::spawn(|| {
///         // ... one part of the work ...
///         let result = BARRIER.wait();
///         // ... the next part: all threads have done theirs ...
///         result.is_leader()
///     })
/// });
/// let leaders = threads.map(|thread| thread.join().unwrap());
/// assert_eq!(leaders.iter().filter(|&&leader| leader).count(), 1);
/// ```
///
/// 16 bytes.
///
/// * **Memory.** Everything that a thread did before the barrier is visible to all of them after
///   it. A private barrier may be freed as soon as any thread's wait of the last round has
///   returned. Before a shared one is freed, [`destroy`](Self::destroy) must have returned.
/// * **Signal handlers** must not wait. A handler that runs in a waiting thread does not end its
///   wait.
/// * **fork**: the child's copy of a private barrier starts its round over, since the threads that
///   had arrived do not exist in the child.
/// * **Process-shared** ([`Scope::Shared`]): may lie in memory that several processes map. If a
///   process is killed after it has arrived, its arrival counts; but `destroy` then waits for it
///   forever, as glibc's does.
///
/// Source: POSIX `pthread_barrier_init`, `pthread_barrier_wait`, `pthread_barrier_destroy`.
#[repr(C)]
pub struct Barrier {
    state: AtomicU64,
    count: u32,
    inside: AtomicU32,
}

const _: () = assert!(cfg!(loom) || size_of::<Barrier>() == 16);

/// The result of a wait at a [`Barrier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// Returns true for one thread of each round, the last to arrive
    /// (`PTHREAD_BARRIER_SERIAL_THREAD`).
    pub fn is_leader(self) -> bool {
        self.is_leader
    }
}

impl Barrier {
    /// The highest number of threads: 2^31 - 1.
    pub const MAX_COUNT: u32 = SHARED - 1;

    const_fn! {
        /// Creates a private barrier for `count` threads.
        ///
        /// # Panics
        /// If the count is 0 or above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn new(count: u32) -> Self {
            Self::with_scope(count, Scope::Private)
        }
    }

    const_fn! {
        /// Creates a barrier for `count` threads of one process, or of several.
        ///
        /// # Panics
        /// If the count is 0 or above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn with_scope(count: u32, scope: Scope) -> Self {
            match Self::try_with_scope(count, scope) {
                Ok(barrier) => barrier,
                Err(_) => panic!("a barrier is for 1 to 2^31 - 1 threads"),
            }
        }
    }

    const_fn! {
        /// [`with_scope`](Self::with_scope) for an unchecked count (`pthread_barrier_init`).
        ///
        /// # Errors
        /// [`CountError::Invalid`] if the count is 0 or above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn try_with_scope(count: u32, scope: Scope) -> Result<Self, CountError> {
            if count == 0 || count > Self::MAX_COUNT {
                return Err(CountError::Invalid);
            }
            let shared = match scope {
                Scope::Private => 0,
                Scope::Shared => SHARED,
            };
            Ok(Self {
                state: AtomicU64::new(0),
                count: count | shared,
                inside: AtomicU32::new(0),
            })
        }
    }

    /// Waits until all threads of the round have arrived (`pthread_barrier_wait`).
    ///
    /// Blocks.
    pub fn wait(&self) -> BarrierWaitResult {
        let passed = self.arrive(None);
        passed.expect("a wait without a deadline does not time out")
    }

    /// [`wait`](Self::wait), but until `deadline` at the latest. Returns `None` if the deadline
    /// passes before the last thread arrives. The caller then no longer counts as having arrived.
    ///
    /// Blocks.
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> Option<BarrierWaitResult> {
        self.arrive(Some(&deadline))
    }

    /// [`wait`](Self::wait), but for at most `timeout`. Returns as [`wait_until`](Self::wait_until)
    /// does.
    ///
    /// Blocks.
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        self.arrive(Some(&Deadline::after(timeout)))
    }

    fn arrive(&self, deadline: Option<&Deadline>) -> Option<BarrierWaitResult> {
        // At least 1, whatever another process has written there: a round of 0 threads never ends.
        let count = self.count().max(1);
        let is_leader = match self.scope() {
            Scope::Private => private::arrive(&self.state, count, deadline),
            Scope::Shared => shared::arrive(&self.state, count, &self.inside, deadline),
        };
        is_leader.map(|is_leader| BarrierWaitResult { is_leader })
    }

    /// Waits until no other thread touches the memory any longer (`pthread_barrier_destroy`).
    /// Returns false at once if threads have arrived in a round that is not complete (`EBUSY`).
    ///
    /// Call this on a shared barrier before its memory is unmapped or reused. Afterwards the
    /// barrier is as it was when it was created. A private barrier does not need it and has nothing
    /// to wait for.
    ///
    /// Blocks until the other threads have returned from their waits.
    #[must_use]
    pub fn destroy(&self) -> bool {
        if arrived(self.state.load(Ordering::Relaxed)) != 0 {
            return false;
        }
        if self.scope() == Scope::Shared {
            shared::until_all_are_out(&self.inside);
        }
        true
    }

    /// The number of threads that the barrier is for.
    pub fn count(&self) -> u32 {
        self.count & !SHARED
    }

    /// Pretends that this many threads have arrived. No thread waits for these arrivals.
    #[cfg(test)]
    pub(crate) fn pretend_arrivals(&self, arrivals: u32) {
        self.state.store(u64::from(arrivals) * ARRIVAL, Ordering::Relaxed);
    }

    /// The word whose address is the key of the waiters.
    #[cfg(all(test, loom))]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.state
    }

    fn scope(&self) -> Scope {
        match self.count & SHARED {
            0 => Scope::Private,
            _ => Scope::Shared,
        }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("count", &self.count())
            .field("arrived", &arrived(self.state.load(Ordering::Relaxed)))
            .field("scope", &self.scope())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The number of rounds wraps around without touching the number of arrivals.
    #[test]
    fn rounds_wrap_around() {
        let barrier = Barrier::with_scope(2, Scope::Shared);
        let last_round = u64::from(u32::MAX);
        barrier.state.store(last_round, Ordering::Relaxed);
        std::thread::scope(|threads| {
            let other = threads.spawn(|| barrier.wait().is_leader());
            let leads = barrier.wait().is_leader();
            assert_ne!(other.join().unwrap(), leads);
        });
        assert_eq!(barrier.state.load(Ordering::Relaxed), 0);
    }

    /// The barrier counts as many arrivals as it is for, or more, but no thread waits: the count
    /// starts over from zero.
    #[test]
    fn nonsense_that_another_process_wrote_leads_nowhere() {
        for (count, state) in [(0, 0), (0, u64::MAX), (SHARED, u64::MAX), (3, u64::MAX)] {
            let barrier =
                Barrier { state: AtomicU64::new(state), count, inside: AtomicU32::new(0) };
            // It may pass or time out, but it must return.
            let _ = barrier.wait_for(Duration::ZERO);
        }
    }

    #[test]
    fn a_wrong_number_of_arrivals_heals() {
        for nowhere in [1, 2, 3, 1000] {
            let barrier = Barrier::new(3);
            // Afterwards the waiter table exists, with no waiter in it.
            assert_eq!(barrier.wait_for(Duration::ZERO), None);
            barrier.pretend_arrivals(nowhere);
            assert_eq!(barrier.wait_for(Duration::ZERO), None);
            std::thread::scope(|threads| {
                let others = [(); 2].map(|()| threads.spawn(|| barrier.wait().is_leader()));
                let led = u32::from(barrier.wait().is_leader());
                let led = others
                    .into_iter()
                    .fold(led, |led, other| led + u32::from(other.join().unwrap()));
                assert_eq!(led, 1);
            });
            assert!(barrier.destroy());
        }
    }
}
