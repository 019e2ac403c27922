//! A barrier: a number of threads wait for each other, round after round.
//!
//! | word | private | process-shared |
//! |------|---------|----------------|
//! | `state`, low half | 0 | rounds completed, modulo 2^32; the kernel compares these |
//! | `state`, high half | how many have arrived in this round | the same |
//! | `count` | how many must arrive; bit 31: process-shared | the same |
//! | `inside` | 0 | threads inside `wait`; bit 31: `destroy` waits for them |
//!
//! # When may it be freed?
//!
//! POSIX lets a thread destroy a barrier as soon as its own wait has returned. The others may just be waking up, and
//! if they looked at the barrier to see whether the round is over they would look at freed memory.
//!
//! * **Private**: they do not look. To arrive is to queue in the table, in one step, and the last to arrive tells
//!   each of them that the round is over (`in_table.rs`). So a private barrier may be freed at once, and is never
//!   counted out of.
//! * **Shared**: the kernel has no such words to pass, so they must look, and are counted in and out; `destroy` waits
//!   until all are out, as glibc's does (`in_kernel.rs`).

mod in_kernel;
mod in_table;

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

/// How many have arrived.
const fn arrived(state: u64) -> u32 {
    (state >> 32) as u32
}

/// A point at which a number of threads wait for each other. When the last of them has arrived all go on, and the
/// barrier is ready for the next round.
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
///         // ... the next, knowing that all have done theirs ...
///         result.is_leader()
///     })
/// });
/// let leaders = threads.map(|thread| thread.join().unwrap());
/// assert_eq!(leaders.iter().filter(|&&leader| leader).count(), 1);
/// ```
///
/// 16 bytes.
///
/// * **Memory.** What any of the threads did before the barrier is visible to all of them after it. A private barrier
///   may be freed as soon as any thread's wait of the last round has returned; before a shared one is freed
///   [`destroy`](Self::destroy) must have returned.
/// * **Signal handlers** must not wait. A handler that runs in a waiting thread does not end its wait.
/// * **fork**: the child's copy of a private barrier begins its round anew, since those who had arrived are not in
///   the child.
/// * **Process-shared** ([`Scope::Shared`]): may lie in memory that several processes map. A process that is killed
///   after it has arrived has arrived; but `destroy` waits for it for ever, as glibc's does.
///
/// Source: POSIX `pthread_barrier_init`, `pthread_barrier_wait`, `pthread_barrier_destroy`.
#[repr(C)]
pub struct Barrier {
    state: AtomicU64,
    count: u32,
    inside: AtomicU32,
}

const _: () = assert!(cfg!(loom) || size_of::<Barrier>() == 16);

/// What a wait at a [`Barrier`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// True for one thread of each round, the last to arrive (`PTHREAD_BARRIER_SERIAL_THREAD`).
    pub fn is_leader(self) -> bool {
        self.is_leader
    }
}

impl Barrier {
    /// The highest number of threads: 2^31 - 1.
    pub const MAX_COUNT: u32 = SHARED - 1;

    const_fn! {
        /// A private barrier for so many threads.
        ///
        /// # Panics
        /// The count is 0 or above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn new(count: u32) -> Self {
            Self::with_scope(count, Scope::Private)
        }
    }

    const_fn! {
        /// A barrier for so many threads of one process, or of several.
        ///
        /// # Panics
        /// The count is 0 or above [`MAX_COUNT`](Self::MAX_COUNT).
        pub const fn with_scope(count: u32, scope: Scope) -> Self {
            match Self::try_with_scope(count, scope) {
                Ok(barrier) => barrier,
                Err(_) => panic!("a barrier is for 1 to 2^31 - 1 threads"),
            }
        }
    }

    const_fn! {
        /// [`with_scope`](Self::with_scope), for a count that is not known to be good (`pthread_barrier_init`).
        ///
        /// # Errors
        /// [`CountError::Invalid`]: the count is 0 or above [`MAX_COUNT`](Self::MAX_COUNT).
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

    /// Waits until as many threads have arrived as the barrier is for (`pthread_barrier_wait`).
    ///
    /// Blocks.
    pub fn wait(&self) -> BarrierWaitResult {
        let passed = self.arrive(None);
        passed.expect("without a deadline nobody gives up")
    }

    /// [`wait`](Self::wait) until `deadline` at the latest. `None`: it has come before the last thread; the caller
    /// does not count as having arrived any more.
    ///
    /// Blocks.
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> Option<BarrierWaitResult> {
        self.arrive(Some(&deadline))
    }

    /// [`wait_until`](Self::wait_until) so long from now.
    ///
    /// Blocks.
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        self.arrive(Some(&Deadline::after(timeout)))
    }

    fn arrive(&self, deadline: Option<&Deadline>) -> Option<BarrierWaitResult> {
        // Not 0, whatever another process has written there: a round of nobody is never over.
        let count = self.count().max(1);
        let is_leader = match self.scope() {
            Scope::Private => in_table::arrive(&self.state, count, deadline),
            Scope::Shared => in_kernel::arrive(&self.state, count, &self.inside, deadline),
        };
        is_leader.map(|is_leader| BarrierWaitResult { is_leader })
    }

    /// Waits until no thread touches the memory any more (`pthread_barrier_destroy`). False, at once, if threads have
    /// arrived in a round that is not complete (`EBUSY`).
    ///
    /// For shared barriers, before their memory is unmapped, or used for something else. After it the barrier is as
    /// it was at first. A private barrier needs none, and has nothing to wait for.
    ///
    /// Blocks for as long as the others need to return from their waits.
    #[must_use]
    pub fn destroy(&self) -> bool {
        if arrived(self.state.load(Ordering::Relaxed)) != 0 {
            return false;
        }
        if self.scope() == Scope::Shared {
            in_kernel::until_all_are_out(&self.inside);
        }
        true
    }

    /// How many threads the barrier is for.
    pub fn count(&self) -> u32 {
        self.count & !SHARED
    }

    /// As if so many had arrived who are nowhere.
    #[cfg(test)]
    pub(crate) fn pretend_arrivals(&self, arrivals: u32) {
        self.state
            .store(u64::from(arrivals) * ARRIVAL, Ordering::Relaxed);
    }

    /// The word by whose address the waiters are found.
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

    /// The number of rounds wraps around without touching that of arrivals.
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

    /// As many or more than it is for, all of whom are nowhere: from zero again.
    #[test]
    fn nonsense_that_another_process_wrote_leads_nowhere() {
        for (count, state) in [(0, 0), (0, u64::MAX), (SHARED, u64::MAX), (3, u64::MAX)] {
            let barrier = Barrier {
                state: AtomicU64::new(state),
                count,
                inside: AtomicU32::new(0),
            };
            // Whether it passes or times out: it returns.
            let _ = barrier.wait_for(Duration::ZERO);
        }
    }

    #[test]
    fn a_wrong_number_of_arrivals_heals() {
        for nowhere in [1, 2, 3, 1000] {
            let barrier = Barrier::new(3);
            // There is a table, and nobody in it.
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
