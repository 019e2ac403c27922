//! One bucket: its lock, its queues, and the counts that let a waker skip it.
//!
//! # The store/load pair
//!
//! A wake with no waiter must cost neither a lock nor a system call. So each bucket counts its
//! waiters, and a waker that reads zero is done. Neither side may miss the other:
//!
//! ```text
//!   waiter                              waker
//!   ──────                              ─────
//!   w[count] += 1                       w[word] = new
//!   fence(SeqCst)                       fence(SeqCst)
//!   lock; r[word] == expected?          r[count] == 0?
//!   ... then queue, sleep               ... then no waiter to wake
//! ```
//!
//! One of the two fences comes first in the order of all fences. If it is the waiter's, the waker
//! reads the raised count and takes the lock, before or after the waiter. If it is the waker's, the
//! waiter reads the new word and does not sleep. *Both* sides need a fence: a read-modify-write on
//! the count or on the bucket lock is no substitute (libc++ #109290, folly #2649).
//! `model/fences.rs` shows under loom that this works, and that it fails without either fence.
//!
//! # Eight counts, not one
//!
//! A table that has grown has one to about two buckets for each of the threads that made it grow
//! (`grow.rs`). If all of them wait, each on a word of its own, 36 to 63 % of all buckets hold a
//! waiter (1 - e^-n, with n waiters to a bucket), and a waker of an unrelated word would take a
//! bucket's lock in vain that often. Eight counts, chosen by other bits of the hash than the
//! bucket, reduce that to 5 to 12 % (1 - e^(-n/8)). They cost nothing: the cache line has room.
//!
//! # Two words at once
//!
//! `wake_op` reads the counts of two words, one after the other. A waiter that is moved meanwhile
//! from the second to the first may be counted at neither when that count is read. So a bucket
//! counts the moves out of it. A waker that has read two counts of zero checks whether there was a
//! move:
//!
//! ```text
//!   mover, from B to A                  waker of A and B
//!   ──────────────────                  ────────────────
//!   w[count A] += 1                     r[moves of A and of B]       (Acquire)
//!   w[moves of B] += 1  (Release)       r[count A] == 0, r[count B] == 0
//!   fence(Release)                      fence(Acquire)
//!   w[count B] -= 1                     r[moves of A and of B]: as before?
//!                                       ... then no waiter to wake
//! ```
//!
//! A waker that reads B's lowered count finds the move when it reads `moves` the second time. If
//! the first time had already shown the move, then it read A's count raised. `models/requeue.pml`
//! and `model/wake_op.rs` show that this is needed.

use super::chain::Chain;
use crate::atomic::{
    AtomicU32, Ordering, UnsafeCell, fence, full_fence, smaller_in_models, spin_loop,
};
#[cfg(not(loom))]
use crate::debugger::{Field, fields};
use crate::sys;

pub(super) const LANES: usize = smaller_in_models(8, 2);

/// See the module documentation. All zeros is an empty bucket.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    lock: Lock,
    chain: UnsafeCell<Chain>,
    waiters: [AtomicU32; LANES],
    /// How often waiters were moved out of this bucket. Written under the lock.
    moves: AtomicU32,
}

// SAFETY: everything is atomic except the chain. `chain` lends that under the contract that the
// caller has the lock. The nodes it leads to are touched under that lock, or by the one waker that
// has claimed a node.
unsafe impl Sync for Bucket {}

#[cfg(not(loom))]
impl Bucket {
    /// For debuggers.
    pub(super) const FIELDS: [Field; 4] = fields!("bucket": Self { lock, chain, waiters });
}

impl Bucket {
    /// An empty bucket: zeros.
    pub(super) fn new() -> Self {
        Self {
            lock: Lock { state: AtomicU32::new(UNLOCKED) },
            chain: UnsafeCell::new(Chain::new()),
            waiters: core::array::from_fn(|_| AtomicU32::new(0)),
            moves: AtomicU32::new(0),
        }
    }

    /// Whether no waiter is queued or counted here.
    #[cfg(loom)]
    pub(super) fn is_empty(&self) -> bool {
        // SAFETY: called when the model is over: no other thread has the bucket.
        let queued = unsafe { self.chain(|chain| !chain.is_empty()) };
        let counted = |count: &AtomicU32| count.load(Ordering::Relaxed) != 0;
        !queued && !self.waiters.iter().any(counted)
    }

    /// Counts a waiter in before it checks its word.
    #[inline]
    pub(super) fn announce(&self, lane: usize) {
        // Relaxed: the fences on both sides order it.
        self.waiters[lane].fetch_add(1, Ordering::Relaxed);
        full_fence();
    }

    /// Counts waiters off, or in. Called only under the lock, or by a waiter that announced itself
    /// and did not queue.
    pub(super) fn count(&self, lane: usize, change: isize) {
        // Relaxed: too high a count costs a lock. It is never too low, since a waiter is counted in
        // before it queues and counted off after it was unlinked.
        self.waiters[lane].fetch_add(change as u32, Ordering::Relaxed);
    }

    /// Whether any thread may be waiting. The caller has changed the word and made a full fence.
    #[inline]
    pub(super) fn may_have_waiters(&self, lane: usize) -> bool {
        self.waiters[lane].load(Ordering::Relaxed) != 0
    }

    /// How many waiters are counted, on all lanes.
    pub(super) fn counted(&self) -> usize {
        let lanes = self.waiters.iter();
        lanes.map(|lane| lane.load(Ordering::Relaxed) as usize).sum()
    }

    /// Records, under the lock, that waiters are being moved out of this bucket. They have been
    /// counted in at the target and are not yet counted off here.
    pub(super) fn note_move(&self) {
        let moves = self.moves.load(Ordering::Relaxed).wrapping_add(1);
        // Release: orders the target's count before it. The fence: orders it before the count here,
        // which is lowered next.
        self.moves.store(moves, Ordering::Release);
        fence(Ordering::Release);
    }

    /// The number of moves out of this bucket. Acquire: the counts are read after it.
    #[inline]
    pub(super) fn moves(&self) -> u32 {
        self.moves.load(Ordering::Acquire)
    }

    pub(super) fn lock(&self) {
        self.lock.lock();
    }

    pub(super) fn try_lock(&self) -> bool {
        self.lock.try_lock()
    }

    /// # Safety
    /// The caller holds the lock.
    pub(super) unsafe fn unlock(&self) {
        self.lock.unlock();
    }

    /// Lends the queues to `f`.
    ///
    /// # Safety
    /// The caller holds the lock, and `f` does not come back to this bucket.
    pub(super) unsafe fn chain<R>(&self, f: impl FnOnce(&Chain) -> R) -> R {
        // SAFETY: the caller has the lock, and `f` does not come back here, both by this function's
        // contract. So this is the only reference to the chain.
        self.chain.with_mut(|chain| f(unsafe { &*chain }))
    }

    /// Empties the bucket, in a forked child on a kernel that did not.
    ///
    /// # Safety
    /// The process has one thread, and it is in no bucket.
    pub(super) unsafe fn wipe(&self) {
        // Relaxed, as all stores here: there is one thread.
        self.lock.state.store(UNLOCKED, Ordering::Relaxed);
        // SAFETY: no thread has a reference to the chain: there is no other thread, and this one is
        // in no bucket.
        unsafe { self.chain(Chain::forget) };
        for count in &self.waiters {
            count.store(0, Ordering::Relaxed);
        }
        self.moves.store(0, Ordering::Relaxed);
    }
}

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and a thread may sleep on it: the holder wakes one when it unlocks.
const CONTENDED: u32 = 2;

/// The third mutex of Drepper's "Futexes are tricky", with a short spin. The section is a handful
/// of instructions, so a thread that finds it locked spins until it is over. If the holder was
/// preempted, the thread sleeps.
struct Lock {
    state: AtomicU32,
}

impl Lock {
    #[inline]
    fn try_lock(&self) -> bool {
        self.state.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.lock_contended();
        }
    }

    #[cold]
    fn lock_contended(&self) {
        const LOOKS: usize = smaller_in_models(100, 1);
        for _ in 0..LOOKS {
            spin_loop();
            if self.state.load(Ordering::Relaxed) == UNLOCKED && self.try_lock() {
                return;
            }
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != UNLOCKED {
            // EINTR and EAGAIN: look again.
            let _ = sys::futex::wait(&self.state, CONTENDED, sys::futex::ANY_BIT, None);
        }
    }

    #[inline]
    fn unlock(&self) {
        if self.state.swap(UNLOCKED, Ordering::Release) == CONTENDED {
            sys::futex::wake(&self.state, 1, sys::futex::ANY_BIT);
        }
    }
}
