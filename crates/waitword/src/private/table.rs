//! The table: buckets in one block of mapped memory for each NUMA node, and the hash that finds
//! them.
//!
//! ```text
//!   page 0        pages of node 0             pages of node 1             ...
//!   ┌────────┐    ┌────────┬────────┬───      ┌────────┬────────┬───
//!   │ header │    │ bucket │ bucket │ ...     │ bucket │ bucket │ ...
//!   └────────┘    └────────┴────────┴───      └────────┴────────┴───
//!   kept over      zeroed by the kernel in a forked child: all zeros is an empty table
//!   a fork
//! ```
//!
//! A table is never freed: a thread that found it may go on reading it for as long as it likes,
//! without taking a reference count. A larger table replaces it (`grow.rs`), twice the size or
//! more, so all earlier tables together are no larger than the newest.

use super::bucket::{Bucket, LANES};
use super::key::{Key, Place};
use crate::atomic::smaller_in_models;
#[cfg(not(loom))]
use crate::debugger::{Field, fields};
use crate::sys::mem::{self, PAGE};
use crate::sys::numa::{self, Nodes};
use core::ptr::{self, NonNull};

/// Where a key's waiters are queued in one table.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(super) table: &'a Table,
    pub(super) bucket: &'a Bucket,
    pub(super) lane: usize,
}

/// See the module documentation.
pub(crate) struct Table {
    buckets: *const Bucket,
    /// There are 2^bits buckets on each node.
    bits: u32,
    nodes: Nodes,
    /// The table that this one replaced.
    pub(super) previous: *const Table,
}

// SAFETY: the header does not change once the table is published, and before that only the thread
// that made it has it. Its pointers lead to buckets and to an older table, which are Sync.
unsafe impl Sync for Table {}

/// 2^64 divided by the golden ratio: the multiplier of Fibonacci hashing.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A page of buckets: less than a page cannot be placed on a node.
const LEAST_BITS: u32 = smaller_in_models(PAGE / size_of::<Bucket>(), 1).ilog2();
const MOST_BITS: u32 = 28;

#[cfg(not(loom))]
impl Table {
    /// For debuggers.
    pub(super) const FIELDS: [Field; 4] = fields!("table": Self { buckets, bits, nodes });
}

impl Table {
    /// How many bits a table over `nodes` needs for at least `buckets` in total.
    pub(super) fn bits_for(buckets: usize, nodes: Nodes) -> u32 {
        let each = buckets.div_ceil(nodes.count() as usize).max(1);
        each.checked_next_power_of_two()
            .map_or(MOST_BITS, usize::ilog2)
            .clamp(LEAST_BITS, MOST_BITS)
    }

    /// The bucket of `key`, and which of the bucket's counts is the key's.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Found<'_> {
        // Every bit of the address reaches the upper bits of the product: neighbouring bytes are
        // different words. The lane comes from bits that do not select the bucket.
        let hash = (key.address as u64).wrapping_mul(GOLDEN);
        let index = (hash >> 32 >> (32 - self.bits)) as usize;
        let lane = (hash >> 29) as usize % LANES;
        let spread = ((hash >> 13 & 0xffff) as u32 * self.nodes.count()) >> 16;
        let position = match key.place {
            // If the table has no memory on the node, the word is spread over all nodes.
            Place::OnNode(number) => self.nodes.position(number).unwrap_or(spread),
            Place::Anywhere | Place::AtMutex => spread,
        };
        let index = ((position as usize) << self.bits) + index;
        debug_assert!(index < self.len());
        // SAFETY: the position is below the number of nodes and the index in a slab below 2^bits,
        // so this is one of the `len` buckets that are there (`all`).
        let bucket = unsafe { &*self.buckets.add(index) };
        Found { table: self, bucket, lane }
    }

    /// How many buckets there are on all nodes.
    pub(super) fn len(&self) -> usize {
        (self.nodes.count() as usize) << self.bits
    }

    pub(super) fn nodes(&self) -> Nodes {
        self.nodes
    }

    /// All buckets, in the order in which they may be locked together.
    pub(super) fn all(&self) -> &[Bucket] {
        // SAFETY: `buckets` leads to `len` buckets in one block, mapped or static, which were
        // zeroed or constructed at first and live as long as the table. They are shared: everything
        // in a bucket is atomic, or behind its lock.
        unsafe { core::slice::from_raw_parts(self.buckets, self.len()) }
    }
}

/// The memory of tables.
impl Table {
    /// Bytes mapped for a table, including its header.
    pub(crate) fn mapped_bytes(&self) -> usize {
        if ptr::eq(self, reserve()) {
            return 0;
        }
        PAGE + self.len() * size_of::<Bucket>()
    }

    /// A new, empty table; `None` if memory is short. Calls `if_unwiped` if the kernel will not
    /// empty it in a forked child.
    pub(super) fn allocate(bits: u32, nodes: Nodes, if_unwiped: fn()) -> Option<NonNull<Self>> {
        let node_bytes = size_of::<Bucket>() << bits;
        let bytes = node_bytes * nodes.count() as usize;
        let memory = mem::map(PAGE + bytes)?;
        // SAFETY: a page from the start is inside the mapping, which is longer.
        let buckets = unsafe { memory.add(PAGE) };
        if nodes.count() > 1 {
            let mut start = buckets.as_ptr();
            for number in nodes.numbers() {
                // SAFETY: there is a slab of this length for each of the nodes, so its end is
                // inside the mapping, or is the end of it.
                let end = unsafe { start.add(node_bytes) };
                numa::prefer(start..end, number);
                start = end;
            }
        }
        // SAFETY: the slabs are whole pages of this mapping: a table has at least a page of buckets
        // for each node. All zeros is an empty table.
        if unsafe { mem::wipe_on_fork(buckets, bytes) }.is_err() {
            if_unwiped();
        }
        let table = memory.cast::<Self>();
        let header = Self { buckets: buckets.as_ptr().cast(), bits, nodes, previous: ptr::null() };
        // SAFETY: the slabs have room for `len` buckets, and `Bucket::new` makes one of zeros.
        unsafe { mem::construct(buckets.cast(), header.len(), Bucket::new) };
        // SAFETY: a header is smaller than the mapping's first page, and a page is aligned for it.
        // No other thread has the address yet.
        unsafe { table.write(header) };
        Some(table)
    }

    /// # Safety
    /// The table was never published, or no thread can still have it.
    pub(super) unsafe fn free(table: NonNull<Self>) {
        // SAFETY: it has not been freed, by this function's contract. A table's buckets are never
        // null.
        let (bytes, first, len) = unsafe {
            let Self { buckets, .. } = *table.as_ref();
            let first = NonNull::new_unchecked(buckets.cast_mut());
            (table.as_ref().mapped_bytes(), first, table.as_ref().len())
        };
        if bytes != 0 {
            // SAFETY: `allocate` has mapped this many bytes from the header on, and has made these
            // buckets in them. No reference into them is left, by this function's contract.
            unsafe {
                mem::destruct(first, len);
                mem::unmap(table.cast(), bytes);
            }
        }
    }
}

/// The reserve buckets exist even when memory is short.
const RESERVE_BITS: u32 = 4;
static RESERVE_BUCKETS: [ZeroedBucket; 1 << RESERVE_BITS] =
    [const { ZeroedBucket(core::mem::MaybeUninit::zeroed()) }; 1 << RESERVE_BITS];

#[repr(transparent)]
struct ZeroedBucket(core::mem::MaybeUninit<core::cell::UnsafeCell<Bucket>>);

// SAFETY: a bucket is Sync, and this is one: all zeros is an empty bucket. It is used only as a
// bucket, by shared reference.
unsafe impl Sync for ZeroedBucket {}

static RESERVE: Table = Table {
    buckets: (&raw const RESERVE_BUCKETS).cast(),
    bits: RESERVE_BITS,
    nodes: Nodes::ONE,
    previous: ptr::null(),
};

/// The small table that a process falls back to if not even the first can be mapped. It is slow,
/// but no wake-up is lost. The next growth replaces it.
pub(super) fn reserve() -> &'static Table {
    &RESERVE
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn key(address: usize, place: Place) -> Key {
        Key { address, place }
    }

    fn index_of(table: &Table, key: Key) -> usize {
        let bucket = table.find(key).bucket;
        (core::ptr::from_ref(bucket).addr() - table.buckets.addr()) / size_of::<Bucket>()
    }

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
    }

    /// A machine with nodes 0, 1, 4 and 5, as described here, not as found.
    fn four_nodes() -> &'static Table {
        let table = Table::allocate(LEAST_BITS, Nodes::from_mask(0b11_0011), || ()).unwrap();
        // SAFETY: never freed.
        unsafe { table.as_ref() }
    }

    #[test]
    fn words_that_name_no_node_spread_evenly_over_the_nodes() {
        let table = four_nodes();
        let mut on_node = [0usize; 4];
        for word in 0..40_000 {
            let index = index_of(table, key(0x7f00_0000_1000 + word * 4, Place::Anywhere));
            on_node[index >> table.bits] += 1;
        }
        assert!(on_node.iter().all(|&words| (9_000..11_000).contains(&words)), "{on_node:?}");
    }

    #[test]
    fn a_word_that_names_a_node_is_queued_in_that_node_s_memory() {
        let table = four_nodes();
        for (position, number) in table.nodes.numbers().enumerate() {
            for word in 0..1000 {
                let index = index_of(table, key(0x5000 + word, Place::OnNode(number)));
                assert_eq!(index >> table.bits, position);
            }
        }
    }

    #[test]
    fn a_word_on_a_node_without_table_memory_spreads_over_all_nodes() {
        let table = four_nodes();
        let served_by = (0..1000)
            .map(|word| index_of(table, key(0x5000 + word * 4, Place::OnNode(2))) >> table.bits)
            .collect::<std::collections::HashSet<_>>();
        assert_eq!(served_by.len(), 4);
    }

    #[test]
    fn neighbouring_bytes_spread_over_buckets_and_lanes() {
        let table = Table::allocate(8, Nodes::ONE, || ()).unwrap();
        // SAFETY: never freed.
        let table = unsafe { table.as_ref() };
        let mut used = [0usize; 256 * LANES];
        for byte in 0..2048 {
            let key = key(0x7fff_1234_5000 + byte, Place::Anywhere);
            used[index_of(table, key) * LANES + table.find(key).lane] += 1;
        }
        let touched = used.iter().filter(|&&words| words > 0).count();
        assert!(touched > 1000, "{touched} of 2048 lanes in use");
    }

    #[test]
    fn sizes_are_powers_of_two_of_at_least_a_page_a_node() {
        assert_eq!(Table::bits_for(0, Nodes::ONE), 6);
        assert_eq!(Table::bits_for(65, Nodes::ONE), 7);
        assert_eq!(Table::bits_for(1000, Nodes::from_mask(0b1111)), 8);
        assert_eq!(Table::bits_for(usize::MAX, Nodes::ONE), MOST_BITS);
    }
}
