//! The words of a program, and addresses that are not words.

use super::program::{Address, WORDS};
use rustix::mm::{MprotectFlags, mprotect};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use waitword_testkit::{
    Crew, Mapping,
    buckets::{APART, choose_words},
};

const PAGE: usize = 4096;
/// Pages from which words are chosen. The page after them must not be accessed.
const PAGES: usize = 4;
const PRIVATE: usize = 128;

/// See the module documentation.
pub(crate) struct Memory {
    mapping: Mapping,
    offsets: [usize; WORDS],
}

impl Memory {
    /// Words that the kernel keeps in buckets of their own, also distinct from those of the
    /// non-word addresses to which waiters can be moved.
    pub(crate) fn new(crew: &mut Crew) -> Self {
        let mapping = Mapping::anonymous((PAGES + 1) * PAGE);
        let untouchable = mapping.at::<u8>(PAGES * PAGE);
        // SAFETY: an unused page of this mapping.
        unsafe { mprotect(untouchable.cast(), PAGE, MprotectFlags::empty()) }.expect("mprotect");
        let mut memory = Self { mapping, offsets: [0; WORDS] };
        let addresses = [Address::Null, Address::Unmapped].map(|address| memory.number(address));
        let Self { mapping, .. } = &memory;
        memory.offsets = choose_words(mapping, PAGES * PAGE, &addresses, PRIVATE, crew);
        memory
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
        // SAFETY: an aligned word of the mapping, whose bytes are changed only by atomic
        // operations.
        unsafe { self.mapping.get(self.offsets[word]) }
    }

    pub(crate) fn load(&self) -> [u32; WORDS] {
        std::array::from_fn(|word| self.word(word).load(SeqCst))
    }

    pub(crate) fn store(&self, word: usize, value: u32) {
        self.word(word).store(value, SeqCst);
    }

    /// The value at an address, if it is a word's.
    pub(crate) fn value_at(&self, address: Address) -> Option<u32> {
        match address {
            Address::Word(word) => Some(self.word(word).load(SeqCst)),
            _ => None,
        }
    }
}
