//! Memory for the arguments of calls that may crash: each argument in a page of its own between two
//! inaccessible pages, with known contents in the rest of its page.

use fastrand::Rng;
use std::ptr;

/// The size of a page.
pub const PAGE: usize = 4096;
/// The most pointers that any call takes.
const PLACES: usize = 4;
const CANARY: u8 = 0xc5;

/// One place for each pointer of a call.
pub struct Arena {
    start: *mut u8,
}

impl Arena {
    /// Maps the memory, which is never unmapped.
    #[expect(clippy::new_without_default, reason = "it maps memory")]
    pub fn new() -> Self {
        let length = (2 * PLACES + 1) * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, and access to every second page of it.
        unsafe {
            let start = libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let start = start.cast::<u8>();
            for place in 0..PLACES {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let page = start.add((2 * place + 1) * PAGE);
                assert_eq!(libc::mprotect(page.cast(), PAGE, access), 0);
            }
            Self { start }
        }
    }

    fn page(&self, place: usize) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.start.add((2 * place + 1) * PAGE) }
    }

    /// The address of `size` bytes: at the very end of their page, or at its start.
    pub fn at(&self, place: usize, size: usize, at_end: bool) -> *mut u8 {
        let offset = if at_end { PAGE - size } else { 0 };
        // SAFETY: inside the page.
        unsafe { self.page(place).add(offset) }
    }

    /// The page after the last place, which must not be accessed.
    pub fn untouchable(&self) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.start.add(2 * PLACES * PAGE) }
    }

    /// Fills everything with known contents.
    pub fn clear(&self) {
        for place in 0..PLACES {
            // SAFETY: the child's own pages.
            unsafe { ptr::write_bytes(self.page(place), CANARY, PAGE) };
        }
    }

    /// Whether everything except these bytes is unchanged.
    pub fn is_untouched_beside(&self, places: &[Option<(*mut u8, usize)>]) -> bool {
        (0..PLACES).all(|place| {
            let page = self.page(place);
            // SAFETY: a page of ours.
            let bytes = unsafe { std::slice::from_raw_parts(page, PAGE) };
            let (begin, length) = match places.get(place).copied().flatten() {
                Some((start, length)) => (start as usize - page as usize, length),
                None => (0, 0),
            };
            let (before, after) = (&bytes[..begin], &bytes[begin + length..]);
            before.iter().chain(after).all(|&byte| byte == CANARY)
        })
    }
}

/// The contents of memory that no function has initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// All bits clear.
    Zeros,
    /// All bits set.
    Ones,
    /// Random bytes from this seed; every second byte has few bits set, as states do.
    Chance(u64),
}

/// Fills memory with such bytes.
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the caller passes a place of an arena")]
pub fn fill(start: *mut u8, size: usize, bytes: Bytes) {
    let mut random = match bytes {
        Bytes::Chance(seed) => Rng::with_seed(seed),
        Bytes::Ones | Bytes::Zeros => Rng::with_seed(0),
    };
    for offset in 0..size {
        let byte = match bytes {
            Bytes::Chance(seed) if seed % 2 == 0 => random.u8(..),
            Bytes::Chance(_) => random.u8(..) & random.u8(..) & random.u8(..),
            Bytes::Ones => 0xff,
            Bytes::Zeros => 0,
        };
        // SAFETY: the caller's memory, of this size.
        unsafe { start.add(offset).write(byte) };
    }
}

/// The contents of each place.
pub fn contents(places: &[Option<(*mut u8, usize)>]) -> Vec<Vec<u8>> {
    let bytes = |at: &Option<(*mut u8, usize)>| {
        at.map_or_else(Vec::new, |(start, size)| {
            // SAFETY: a place of the arena.
            unsafe { std::slice::from_raw_parts(start, size) }.to_vec()
        })
    };
    places.iter().map(bytes).collect()
}
