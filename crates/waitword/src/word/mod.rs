//! The four word sizes: what a word is, how it is read, and how `wake_op` changes it.
//!
//! The modules above this one treat a word as an address and a [`Size`]. Its value travels as a
//! `u64` whose upper bits are zero.

mod numa;
mod op;

pub use numa::NumaWord;
pub(crate) use op::RawWakeOp;
pub use op::{Cmp, Op, WakeOp};

use core::fmt::Debug;
use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst,
};

mod sealed {
    pub trait Sealed {}
}

/// The value of a futex word: `u8`, `u16`, `u32` or `u64`.
pub trait Word: sealed::Sealed + Copy + Eq + Debug + Send + Sync + 'static {
    #[doc(hidden)]
    const SIZE: Size;
    #[doc(hidden)]
    fn to_u64(self) -> u64;
}

/// A futex word: `AtomicU8`, `AtomicU16`, `AtomicU32` or `AtomicU64`.
pub trait FutexWord: sealed::Sealed + Send + Sync + 'static {
    /// The type of the word's value.
    type Value: Word;
    #[doc(hidden)]
    type PairAlign: Send + Sync + Debug + Default;
}

macro_rules! words {
    ($($value:ty, $atomic:ty, $pair:ty, $size:ident;)*) => {$(
        impl sealed::Sealed for $value {}
        impl sealed::Sealed for $atomic {}
        impl Word for $value {
            const SIZE: Size = Size::$size;
            fn to_u64(self) -> u64 {
                self.into()
            }
        }
        impl FutexWord for $atomic {
            type Value = $value;
            type PairAlign = $pair;
        }
    )*};
}

words! {
    u8, AtomicU8, u16, U8;
    u16, AtomicU16, u32, U16;
    u32, AtomicU32, u64, U32;
    u64, AtomicU64, u128, U64;
}

/// The width of a futex word. The numbers are those of futex2's `FUTEX2_SIZE_*`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    U64 = 3,
}

impl Size {
    pub(crate) const fn bytes(self) -> usize {
        1 << self as usize
    }

    /// A value with all bits of a word of this size set.
    pub(crate) const fn all_bits(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }

    /// Whether `value` fits into a word of this size.
    pub(crate) const fn holds(self, value: u64) -> bool {
        value & !self.all_bits() == 0
    }
}

/// Selects waiters: a wake finds a waiter if its mask shares a bit with the waiter's.
///
/// As wide as the word (futex2's rule) and never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask<V>(u64, core::marker::PhantomData<V>);

impl<V: Word> Mask<V> {
    /// All bits set: is found by every wake, or finds every waiter.
    pub const ANY: Self = Self(V::SIZE.all_bits(), core::marker::PhantomData);

    /// A mask of these bits. `None` if there are none, since such a mask would never match.
    pub fn new(bits: V) -> Option<Self> {
        let bits = bits.to_u64();
        (bits != 0).then_some(Self(bits, core::marker::PhantomData))
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

impl<V: Word> Default for Mask<V> {
    fn default() -> Self {
        Self::ANY
    }
}

/// A word by address and size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordPtr {
    pub(crate) address: *mut (),
    pub(crate) size: Size,
}

impl WordPtr {
    /// Reads the value.
    ///
    /// Relaxed: where order against other memory matters, it comes from the fence of the waiter
    /// count (`private`) or from the kernel's own check (`shared`).
    ///
    /// # Safety
    /// The word is mapped, aligned, and accessed by atomic operations only while this runs.
    #[inline(always)]
    pub(crate) unsafe fn load(self) -> u64 {
        // SAFETY: `from_ptr` requires a valid, aligned word of the atomic's size that others access
        // atomically while the reference lives. The arm is chosen by the word's size, the rest is
        // this function's own contract, and each reference lives only for its load.
        unsafe {
            match self.size {
                Size::U8 => AtomicU8::from_ptr(self.address.cast()).load(Relaxed).into(),
                Size::U16 => AtomicU16::from_ptr(self.address.cast()).load(Relaxed).into(),
                Size::U32 => AtomicU32::from_ptr(self.address.cast()).load(Relaxed).into(),
                Size::U64 => AtomicU64::from_ptr(self.address.cast()).load(Relaxed),
            }
        }
    }

    /// Replaces `old` by `new` if the word holds `old`. Returns the value that the word holds then.
    ///
    /// Sequentially consistent, like [`RawWakeOp::apply`]; this happens once in a word's life.
    ///
    /// # Safety
    /// As [`load`](Self::load); the word is writable.
    pub(crate) unsafe fn replace(self, old: u64, new: u64) -> u64 {
        macro_rules! replace {
            ($atomic:ty) => {{
                // SAFETY: valid, aligned, writable, and accessed by atomic operations only, by this
                // function's contract. `$atomic` is chosen by the word's size.
                let word = unsafe { <$atomic>::from_ptr(self.address.cast()) };
                match word.compare_exchange(old as _, new as _, SeqCst, SeqCst) {
                    Ok(_) => new,
                    Err(found) => found.into(),
                }
            }};
        }
        match self.size {
            Size::U8 => replace!(AtomicU8),
            Size::U16 => replace!(AtomicU16),
            Size::U32 => replace!(AtomicU32),
            Size::U64 => replace!(AtomicU64),
        }
    }
}
