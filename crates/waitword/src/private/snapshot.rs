//! A list of waiters and the words they wait on, for debugging a program that hangs.

use super::section::Section;
use super::waiter_table::WaiterTable;
use crate::atomic::spin_loop;

/// A thread that waits on a private word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// The address of the word; after a requeue, of the word it was moved to.
    pub address: usize,
    /// The mask of the wait.
    pub mask: u64,
    /// `pthread_self()` of the thread, which a debugger prints as `Thread 0x...`. 0: not known.
    pub thread: usize,
}

/// The result of a walk over the whole table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of waiters in the table, whether or not there was room to list them.
    pub waiters: usize,
    /// The number of waiters that the buckets count, which wakes rely on. It includes threads that
    /// are about to wait or to leave; while there are none, it equals [`waiters`](Self::waiters).
    pub counted: usize,
    /// The number of threads that have a place to sleep in: all that wait, on whatever, except in
    /// the kernel.
    pub parkers: usize,
    /// Buckets that could not be locked in a reasonable time; their waiters are not counted.
    pub locked_buckets: usize,
}

/// Tries before a bucket is skipped.
const TRIES: u32 = 10_000;

impl WaiterTable {
    /// Lists waiters into `out` as far as there is room. Goes bucket by bucket, so threads come and
    /// go meanwhile.
    pub(crate) fn snapshot(&self, out: &mut [Waiter]) -> Snapshot {
        let mut found = Snapshot { parkers: self.parkers.in_use(), ..Snapshot::default() };
        let Some(table) = self.existing_table() else {
            return found;
        };
        for bucket in table.all() {
            let _section = Section::enter(self);
            let locked = (0..TRIES).any(|_| {
                spin_loop();
                bucket.try_lock()
            });
            if !locked {
                found.locked_buckets += 1;
                continue;
            }
            found.counted += bucket.counted();
            // SAFETY: the bucket was locked just above, and is unlocked once. The closures read the
            // nodes, change nothing, and do not come back to the bucket: `thread` looks into the
            // pool of parkers.
            unsafe {
                bucket.chain(|chain| {
                    chain.each(|node| {
                        if let Some(place) = out.get_mut(found.waiters) {
                            *place = Waiter {
                                address: node.key().address,
                                mask: node.mask,
                                thread: node.thread(&self.parkers),
                            };
                        }
                        found.waiters += 1;
                    });
                });
                bucket.unlock();
            }
        }
        found
    }
}
