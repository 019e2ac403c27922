//! A word to torture, of any size, private or shared, with one interface for all.
//!
//! The library's types keep sizes apart, as they should. A scenario wants to pick any word at
//! random. So here values are `u64`, and each call looks up the size.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};
use waitword::{Cmp, Deadline, Error, Expecting, Futex, Mask, Op, Scope, WaitOptions, WakeOp};

/// A reference to a word. Words of a scenario live as long as its process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    U8(&'static AtomicU8),
    U16(&'static AtomicU16),
    U32(&'static AtomicU32),
    U64(&'static AtomicU64),
}

/// The word sizes, in bits.
pub(crate) const SIZES: [u32; 4] = [8, 16, 32, 64];

/// A word, with the number under which the context knows its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) number: u32,
    pub(crate) word: Word,
    pub(crate) scope: Scope,
}

/// How to wait: all mask bits and no deadline, unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) mask: u64,
    pub(crate) deadline: Option<Deadline>,
}

impl How {
    pub(crate) const ALWAYS: Self = Self { mask: u64::MAX, deadline: None };

    pub(crate) fn until(deadline: Deadline) -> Self {
        Self { deadline: Some(deadline), ..Self::ALWAYS }
    }
}

/// Evaluates an expression for the word's own type: `$w` is the atomic, `$v` its value type.
macro_rules! with {
    ($word:expr, |$w:ident, $v:ident| $body:expr) => {
        match $word {
            Word::U8($w) => {
                #[allow(dead_code)]
                type $v = u8;
                $body
            }
            Word::U16($w) => {
                #[allow(dead_code)]
                type $v = u16;
                $body
            }
            Word::U32($w) => {
                #[allow(dead_code)]
                type $v = u32;
                $body
            }
            Word::U64($w) => {
                #[allow(dead_code)]
                type $v = u64;
                $body
            }
        }
    };
}

/// Evaluates an expression with the word's futex, of its own type.
macro_rules! with_futex {
    ($spot:expr, |$f:ident, $v:ident| $body:expr) => {
        with!($spot.word, |word, $v| {
            let $f = match $spot.scope {
                Scope::Private => Futex::private(word),
                Scope::Shared => Futex::shared(word),
            };
            $body
        })
    };
}

// The conversion widens for three of the four sizes.
#[allow(clippy::useless_conversion)]
impl Word {
    /// The word of `bits` bits at `address`.
    ///
    /// # Safety
    /// `address` is mapped as long as the process lives, aligned, and accessed only by atomics of
    /// this size.
    pub(crate) unsafe fn at(address: *mut u8, bits: u32) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            match bits {
                8 => Word::U8(AtomicU8::from_ptr(address)),
                16 => Word::U16(AtomicU16::from_ptr(address.cast())),
                32 => Word::U32(AtomicU32::from_ptr(address.cast())),
                64 => Word::U64(AtomicU64::from_ptr(address.cast())),
                _ => unreachable!("no word has {bits} bits"),
            }
        }
    }

    pub(crate) fn bits(self) -> u32 {
        with!(self, |_w, V| V::BITS)
    }

    pub(crate) fn address(self) -> usize {
        with!(self, |w, V| (&raw const *w).addr())
    }

    pub(crate) fn load(self) -> u64 {
        with!(self, |w, V| w.load(SeqCst).into())
    }

    pub(crate) fn store(self, value: u64) {
        with!(self, |w, V| w.store(value as V, SeqCst));
    }

    pub(crate) fn swap(self, value: u64) -> u64 {
        with!(self, |w, V| w.swap(value as V, SeqCst).into())
    }

    pub(crate) fn add(self, value: u64) -> u64 {
        with!(self, |w, V| w.fetch_add(value as V, SeqCst).into())
    }

    pub(crate) fn set_bits(self, bits: u64) -> u64 {
        with!(self, |w, V| w.fetch_or(bits as V, SeqCst).into())
    }

    pub(crate) fn replace(self, old: u64, new: u64) -> bool {
        with!(self, |w, V| w.compare_exchange(old as V, new as V, SeqCst, SeqCst).is_ok())
    }
}

impl Spot {
    pub(crate) fn wait(self, expected: u64, how: How) -> Result<(), Error> {
        with_futex!(self, |futex, V| {
            let mut options = WaitOptions::new();
            if let Some(mask) = Mask::new(how.mask as V) {
                options = options.mask(mask);
            }
            if let Some(deadline) = how.deadline {
                options = options.deadline(deadline);
            }
            futex.wait_with(expected as V, options)
        })
    }

    pub(crate) fn expecting(self, expected: u64) -> Expecting<'static> {
        with_futex!(self, |futex, V| futex.expecting(expected as V))
    }

    pub(crate) fn wake(self, count: usize, mask: u64) -> Result<usize, Error> {
        with_futex!(self, |futex, V| match Mask::new(mask as V) {
            Some(mask) => futex.wake_mask(count, mask),
            None => futex.wake(count),
        })
    }

    pub(crate) fn requeue(
        self,
        expected: Option<u64>,
        to: Spot,
        wake: usize,
        moved: usize,
    ) -> Result<usize, Error> {
        with_futex!(self, |from, V| with_futex!(to, |to, W| match expected {
            Some(expected) => from.cmp_requeue(expected as V, to, wake, moved),
            None => from.requeue(to, wake, moved),
        }))
    }

    /// Changes `second`. Wakes waiters there only if its old value compares as `when` demands;
    /// always, if there is none.
    pub(crate) fn wake_op(
        self,
        count: usize,
        second: Spot,
        second_count: usize,
        (op, operand): (Op, u64),
        when: Option<(Cmp, u64)>,
    ) -> Result<usize, Error> {
        with_futex!(self, |first, V| with_futex!(second, |second, W| {
            let mut change = WakeOp::<W>::new(op, operand as W);
            if let Some((cmp, comparand)) = when {
                change = change.when(cmp, comparand as W);
            }
            first.wake_op(count, second, second_count, change)
        }))
    }
}
