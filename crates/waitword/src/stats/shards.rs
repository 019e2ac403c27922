//! The storage of the counters: a line for each CPU, so that threads that count at the same time do
//! not write to the same one.
//!
//! A thread uses the line of the CPU it runs on, which costs a load to find out (`sys/cpu.rs`).
//! Where the CPU is not known, the address of its stack selects the line. A thread may be migrated
//! between the two steps, so the additions are atomic; which line they land in does not affect the
//! sum. With more than 64 CPUs, some share a line.

use super::Event;
use crate::sys::cpu::current_cpu;
use crate::sys::mem;
use core::array::from_fn;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const SHARDS: usize = 64;

/// The counters of one CPU. Aligned to two lines, since processors fetch them in pairs.
#[repr(C, align(128))]
struct Shard([AtomicU64; Event::COUNT]);

#[repr(C)]
pub(super) struct Shards([Shard; SHARDS]);

/// The pages that are wiped in children; null before the first use.
static MAPPED: AtomicPtr<Shards> = AtomicPtr::new(core::ptr::null_mut());
/// Used instead if memory is short or the kernel does not wipe.
static RESERVE: Shards =
    Shards([const { Shard([const { AtomicU64::new(0) }; Event::COUNT]) }; SHARDS]);

/// The counters of the process.
pub(super) fn shards() -> &'static Shards {
    // Acquire: the pages are mapped before their address is known.
    // SAFETY: null, the static `RESERVE`, or a mapping of that size that is never unmapped and was
    // zeroed before its address was stored. All zeros is a valid value, because every field is
    // atomic.
    unsafe { MAPPED.load(Ordering::Acquire).as_ref() }.unwrap_or_else(first)
}

#[cold]
fn first() -> &'static Shards {
    let ours = wiped().unwrap_or_else(|| (&raw const RESERVE).cast_mut());
    // Release: a thread that finds the address finds the pages. The pages of threads that lose the
    // race stay mapped, unused.
    let _ =
        MAPPED.compare_exchange(core::ptr::null_mut(), ours, Ordering::Release, Ordering::Relaxed);
    shards()
}

fn wiped() -> Option<*mut Shards> {
    let length = size_of::<Shards>().next_multiple_of(mem::PAGE);
    let pages = mem::map(length)?;
    // SAFETY: `pages` is one whole mapping of this length, made just above. Zeros are valid
    // counters that have counted nothing.
    match unsafe { mem::wipe_on_fork(pages, length) } {
        Ok(()) => Some(pages.as_ptr().cast()),
        Err(_) => {
            // SAFETY: `pages` is the mapping made just above. Its address is stored nowhere else.
            unsafe { mem::unmap(pages, length) };
            None
        }
    }
}

impl Shards {
    #[inline]
    pub(super) fn add(&self, event: Event, count: u64) {
        let Shard(counters) = &self.0[here() % SHARDS];
        // Relaxed: only a number; it orders nothing.
        counters[event as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn sum(&self, event: Event) -> u64 {
        let each: [u64; SHARDS] =
            from_fn(|shard| self.0[shard].0[event as usize].load(Ordering::Relaxed));
        each.into_iter().fold(0, u64::wrapping_add)
    }
}

/// A number that threads running at the same time are unlikely to share.
fn here() -> usize {
    /// The stacks of threads are further apart than 2^16 bytes.
    const STACK: u32 = 16;
    current_cpu().map_or_else(
        || {
            let on_the_stack = 0_u8;
            (&raw const on_the_stack).addr() >> STACK
        },
        |cpu| cpu as usize,
    )
}
