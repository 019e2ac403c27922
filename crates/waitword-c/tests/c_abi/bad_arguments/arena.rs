//! Memory for the arguments: each in a page of its own between two that may not be touched, and the rest of its page known.

use super::values::{LIST, State, Value};
use std::ptr;

const PAGE: usize = 4096;
const PLACES: usize = 4;
const CANARY: u8 = 0xc5;
/// What lies at a place for a word.
pub(crate) const WORD: usize = 16;

/// One place for each pointer of a call. Shared, so that what a child wrote can be looked at.
pub(crate) struct Arena {
    start: *mut u8,
}

impl Arena {
    pub(crate) fn new() -> Self {
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

    /// Where `size` bytes lie: at the very end of their page, or at its start.
    pub(crate) fn at(&self, place: usize, size: usize, at_end: bool) -> *mut u8 {
        let offset = if at_end { PAGE - size } else { 0 };
        // SAFETY: inside the page.
        unsafe { self.page(place).add(offset) }
    }

    /// The page behind the last place, which may not be touched.
    pub(crate) fn untouchable(&self) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.start.add(2 * PLACES * PAGE) }
    }

    /// Makes everything known.
    pub(crate) fn clear(&self) {
        for place in 0..PLACES {
            // SAFETY: the child's own pages.
            unsafe { ptr::write_bytes(self.page(place), CANARY, PAGE) };
        }
    }

    /// Whether everything but these bytes is as it was.
    pub(crate) fn is_untouched_beside(&self, places: &[Option<(*mut u8, usize)>]) -> bool {
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

/// Fills memory with the bytes of a state that no function makes.
pub(crate) fn fill(start: *mut u8, size: usize, state: State) {
    let mut random = match state {
        State::Chance(seed) => seed | 1 << 40,
        _ => 0,
    };
    for offset in 0..size {
        let mut next = || {
            // Marsaglia's xorshift.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 24) as u8
        };
        let byte = match state {
            State::Chance(seed) if seed % 2 == 0 => next(),
            State::Chance(_) => next() & next() & next(),
            State::Ones => 0xff,
            _ => 0,
        };
        // SAFETY: the caller's memory, of this size.
        unsafe { start.add(offset).write(byte) };
    }
}

/// How many bytes a value takes.
pub(crate) fn size(value: Value) -> Option<usize> {
    match value {
        Value::Object(kind, _) => Some(kind.size()),
        // Room to be wrong in: a misaligned object is not to reach into the canary.
        Value::Into(kind, _) => Some(2 * kind.size()),
        Value::Time(..) | Value::Word => Some(WORD),
        Value::IntoWord(_) => Some(2 * WORD),
        Value::List(_) => Some(LIST + 8),
        _ => None,
    }
}
