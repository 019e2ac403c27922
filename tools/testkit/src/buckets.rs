//! Words that are in different buckets of the kernel, found by trial.
//!
//! The kernel moves a requeued waiter behind those of its new word only if the two words' buckets
//! differ; otherwise it leaves the waiter in its place. That is an accident of hashing. Our order
//! (behind the waiters of the new word) must be compared with the other case.

use crate::answer::kernel;
use crate::crew::Crew;
use crate::mapping::Mapping;
use std::sync::Once;
use syscalls::Sysno;

/// Words lie at multiples of this.
pub const APART: usize = 64;

const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;

/// Offsets of `WORDS` words in the first `bytes` of zeroed memory. No two are in one bucket, or in
/// that of an address of `others`, which need not be words. `flag`: FUTEX_PRIVATE_FLAG or 0.
pub fn choose_words<const WORDS: usize>(
    memory: &Mapping,
    bytes: usize,
    others: &[usize],
    flag: usize,
    crew: &mut Crew,
) -> [usize; WORDS] {
    use_global_hash();
    let address = |offset| memory.at::<u32>(offset).expose_provenance();
    let mut chosen = Vec::new();
    for offset in (0..bytes).step_by(APART) {
        // The first one is compared with the next one's.
        let words = [address(offset), address(offset ^ APART)];
        let taken = chosen.iter().map(|&offset| address(offset));
        let apart =
            taken.chain(others.iter().copied()).all(|other| differ(words, other, flag, crew));
        if apart {
            chosen.push(offset);
        }
        if let Ok(chosen) = chosen.as_slice().try_into() {
            return chosen;
        }
    }
    panic!("the kernel puts all words into fewer than {WORDS} buckets");
}

/// Whether no two of these words are in one bucket. There are at least three, and all hold zero.
pub fn are_apart(words: &[usize], flag: usize, crew: &mut Crew) -> bool {
    use_global_hash();
    words.iter().enumerate().all(|(number, &word)| {
        let mut others = words[number + 1..].iter();
        others.all(|&other| {
            let helper = words.iter().find(|&&helper| helper != word && helper != other);
            differ([word, *helper.expect("a third word")], other, flag, crew)
        })
    })
}

/// Whether a word's waiters are in another bucket than those of `other`, which need not be a word.
/// `helper` is one.
///
/// One thread waits on `word`, then another on `helper`. Both are moved to `other`, the second one
/// first. If `other` has a bucket of its own, they are in that order. If its bucket is that of
/// `word`, the waiter there was never moved, and is first.
fn differ([word, helper]: [usize; 2], other: usize, flag: usize, crew: &mut Crew) -> bool {
    let call = move |operation: usize, word: usize, count: usize, moved: usize, second: usize| {
        let arguments = [word, operation | flag, count, moved, second, 0];
        kernel(Sysno::futex, arguments)
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

/// Puts the process on the kernel's global hash table for good (Linux 6.16). The process's own
/// table would be rebuilt as threads come, and words would change buckets in the middle of a run.
/// Other kernels have no such table.
fn use_global_hash() {
    static ONCE: Once = Once::new();
    const PR_FUTEX_HASH: usize = 78;
    const SET_SLOTS: usize = 1;
    ONCE.call_once(|| {
        let _ = kernel(Sysno::prctl, [PR_FUTEX_HASH, SET_SLOTS, 0, 0, 0, 0]);
    });
}
