//! The words of a program, and addresses that are none.

use super::program::{Address, WORDS};
use crate::support::crew::Crew;
use crate::support::kernel;
use crate::support::memory::Mapping;
use rustix::mm::{MprotectFlags, mprotect};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use syscalls::Sysno;

const PAGE: usize = 4096;
/// Pages that words are chosen from; the one after them may not be touched.
const PAGES: usize = 4;
const APART: usize = 64;

const WAIT: usize = 128;
const WAKE: usize = 129;
const REQUEUE: usize = 131;

/// See the module above.
pub(crate) struct Memory {
    mapping: Mapping,
    offsets: [usize; WORDS],
}

impl Memory {
    /// Words that the kernel has in buckets of their own, also when compared with the addresses that are none but
    /// can be moved to.
    ///
    /// The kernel moves a requeued waiter behind those of its new word only if the two words' buckets differ, and
    /// else leaves it in its place. That is an accident of hashing, and our order is the other case's.
    pub(crate) fn new(crew: &mut Crew) -> Self {
        use_global_hash();
        let mapping = Mapping::anonymous((PAGES + 1) * PAGE);
        let untouchable = mapping.at::<u8>(PAGES * PAGE);
        // SAFETY: a page of this mapping, which nobody has touched.
        unsafe { mprotect(untouchable.cast(), PAGE, MprotectFlags::empty()) }.expect("mprotect");
        let mut memory = Self {
            mapping,
            offsets: [0; WORDS],
        };
        let fixed = [
            memory.number(Address::Null),
            memory.number(Address::Unmapped),
        ];
        let mut chosen = 0;
        for offset in (0..PAGES * PAGE).step_by(APART) {
            let candidate = memory.mapping.at::<u8>(offset).expose_provenance();
            // The first one is compared with the next one's.
            let helper = memory.mapping.at::<u8>(offset ^ APART).expose_provenance();
            let taken = (0..chosen).map(|word| memory.number(Address::Word(word)));
            let others: Vec<usize> = taken.chain(fixed).collect();
            if others
                .into_iter()
                .all(|other| buckets_differ(candidate, helper, other, crew))
            {
                memory.offsets[chosen] = offset;
                chosen += 1;
                if chosen == WORDS {
                    return memory;
                }
            }
        }
        panic!("the kernel puts all words into fewer than {WORDS} buckets");
    }

    pub(crate) fn number(&self, address: Address) -> usize {
        let at = |offset| self.mapping.at::<u8>(offset).expose_provenance();
        match address {
            Address::Word(word) => at(self.offsets[word]),
            Address::Into(word, bytes) => at(self.offsets[word] + bytes),
            Address::Null => 0,
            Address::FirstPage => 64,
            Address::Unmapped => at(PAGES * PAGE + APART),
            Address::Kernels => 0xffff_8000_0000_0000,
        }
    }

    fn word(&self, word: usize) -> &AtomicU32 {
        // SAFETY: an aligned word of the mapping, made of bytes that are changed by atomic operations only.
        unsafe { self.mapping.get(self.offsets[word]) }
    }

    pub(crate) fn load(&self) -> [u32; WORDS] {
        std::array::from_fn(|word| self.word(word).load(SeqCst))
    }

    pub(crate) fn store(&self, word: usize, value: u32) {
        self.word(word).store(value, SeqCst);
    }

    /// What lies at an address, if it is a word's.
    pub(crate) fn value_at(&self, address: Address) -> Option<u32> {
        match address {
            Address::Word(word) => Some(self.word(word).load(SeqCst)),
            _ => None,
        }
    }
}

/// Whether two private words' waiters stand in different buckets of the kernel. `helper` is a word too; `other` need not
/// be one.
///
/// Somebody waits on `word`, then another on `helper`. Both are moved to `other`, the second one first. In a bucket of its
/// own `other` has them in that order; if its bucket is `word`'s, who waits there was never moved, and is first.
fn buckets_differ(word: usize, helper: usize, other: usize, crew: &mut Crew) -> bool {
    let call = |operation: usize, word: usize, count: usize, moved: usize, second: usize| {
        kernel(Sysno::futex, [word, operation, count, moved, second, 0])
    };
    for (thread, word) in [(0, word), (1, helper)] {
        crew.order(thread, 0, move || call(WAIT, word, 0, 0, 0));
        crew.settle();
    }
    assert_eq!(call(REQUEUE, helper, 0, 1, other), Ok(1));
    assert_eq!(call(REQUEUE, word, 0, 1, other), Ok(1));
    assert_eq!(call(WAKE, other, 1, 0, 0), Ok(1));
    let first = crew.settle();
    assert_eq!(call(WAKE, other, 1, 0, 0), Ok(1));
    crew.settle();
    first == [(1, Ok(0))]
}

/// Puts the process on the kernel's global hash table for good (Linux 6.16): its own would be rebuilt as
/// threads come, and words would change buckets in the middle of a run. Others have no table of their own.
fn use_global_hash() {
    static ONCE: Once = Once::new();
    const PR_FUTEX_HASH: usize = 78;
    const SET_SLOTS: usize = 1;
    ONCE.call_once(|| {
        let _ = kernel(Sysno::prctl, [PR_FUTEX_HASH, SET_SLOTS, 0, 0, 0, 0]);
    });
}
