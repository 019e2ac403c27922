//! Who waits on what, for somebody who looks at a program that hangs.

use super::WaiterTable;
use super::section::Section;

/// A thread that waits on a private word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// The address of the word; after a requeue, of the word it was moved to.
    pub address: usize,
    /// The mask of the wait.
    pub mask: u64,
    /// `pthread_self()` of the thread: what a debugger prints as `Thread 0x...`. 0: not known.
    pub thread: usize,
}

/// What a look at the whole table found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// How many stand in the table, whether or not there was room to list them.
    pub waiters: usize,
    /// How many the buckets count, and wakes look for. Those who are about to wait or to leave are in it; while nobody is, it is
    /// [`waiters`](Self::waiters).
    pub counted: usize,
    /// How many threads have a place to sleep in: those that wait, on whatever, but for those in the kernel.
    pub parkers: usize,
    /// Buckets whose lock could not be had in a reasonable time; their waiters are not counted.
    pub locked_buckets: usize,
}

/// Tries before a bucket is passed over.
const PATIENCE: u32 = 10_000;

impl WaiterTable {
    /// Lists waiters into `out` as far as there is room. Bucket by bucket: others come and go meanwhile.
    pub(crate) fn snapshot(&self, out: &mut [Waiter]) -> Snapshot {
        let mut found = Snapshot {
            parkers: self.parkers.in_use(),
            ..Snapshot::default()
        };
        let Some(table) = self.existing_table() else {
            return found;
        };
        for bucket in table.all() {
            let _section = Section::enter(self);
            let locked = (0..PATIENCE).any(|_| {
                core::hint::spin_loop();
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
