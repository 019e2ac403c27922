//! The change that WAKE_OP makes to the second word, and the comparison with its old value.
//!
//! Source: Jakub Jelinek's patch of 2005 and futex(2), `FUTEX_WAKE_OP`. The kernel's encoding packs
//! operation, operand, comparison and comparand into 32 bits:
//!
//! ```text
//!   31   30..28  27..24   23..12    11..0
//!  shift   op     cmp     oparg     cmparg      oparg, cmparg: signed 12 bits
//! ```
//!
//! Here operand and comparand are as wide as the word; [`RawWakeOp::decode`] reads the kernel's
//! form.

use super::{Size, Word, WordPtr};
use crate::atomic::full_fence_after_rmw;
use crate::sys::Errno;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// The change that `wake_op` makes to the second word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// `word = operand`
    Set = 0,
    /// `word += operand`, wrapping
    Add = 1,
    /// `word |= operand`
    Or = 2,
    /// `word &= !operand`
    AndNot = 3,
    /// `word ^= operand`
    Xor = 4,
}

/// How `wake_op` compares the second word's *old* value with the comparand. Both are read as signed
/// numbers of the word's width, as in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cmp {
    /// old == comparand
    Eq = 0,
    /// old != comparand
    Ne = 1,
    /// old < comparand
    Lt = 2,
    /// old <= comparand
    Le = 3,
    /// old > comparand
    Gt = 4,
    /// old >= comparand
    Ge = 5,
}

/// The change and the comparison of [`Futex::wake_op`](crate::Futex::wake_op).
///
/// ```
/// use waitword::{Cmp, Op, WakeOp};
/// // Release a lock word, and wake its waiters if it was marked contended.
/// let unlock = WakeOp::<u32>::new(Op::Set, 0).when(Cmp::Gt, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct WakeOp<V> {
    pub(crate) raw: RawWakeOp,
    width: PhantomData<V>,
}

impl<V: Word> WakeOp<V> {
    /// Applies `op` with `operand`. Waiters of the second word are woken whatever it held, unless
    /// [`when`](Self::when) sets a condition.
    pub fn new(op: Op, operand: V) -> Self {
        // "old >= the least signed number" is always true.
        let least = 1 << (8 * V::SIZE.bytes() - 1);
        let raw = RawWakeOp { op, operand: operand.to_u64(), cmp: Cmp::Ge, comparand: least };
        Self { raw, width: PhantomData }
    }

    /// Wakes waiters of the second word only if `cmp` holds between its old value and `comparand`.
    pub fn when(mut self, cmp: Cmp, comparand: V) -> Self {
        self.raw.cmp = cmp;
        self.raw.comparand = comparand.to_u64();
        self
    }
}

/// [`WakeOp`] without its type: operand and comparand in the low bits, the rest zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawWakeOp {
    pub(crate) op: Op,
    pub(crate) operand: u64,
    pub(crate) cmp: Cmp,
    pub(crate) comparand: u64,
}

/// The low bits of `value`, as many as a word of `size` has, read as a signed number.
#[inline]
fn signed(value: u64, size: Size) -> i64 {
    let unused = 64 - 8 * size.bytes() as u32;
    (value << unused) as i64 >> unused
}

impl RawWakeOp {
    /// Combines the operation with number `op` (futex(2)'s `FUTEX_OP_*`, bit 3 being
    /// `FUTEX_OP_ARG_SHIFT`) and the comparison with number `cmp`, for a word of `size`.
    ///
    /// The shift form takes the operand modulo the width. Unknown numbers are `ENOSYS`, as in the
    /// kernel, but before the word is touched (the kernel changes the word before it looks at an
    /// unknown comparison).
    #[inline]
    pub(crate) fn from_numbers(
        op: u32,
        operand: u64,
        cmp: u32,
        comparand: u64,
        size: Size,
    ) -> Result<Self, Errno> {
        const SHIFT: u32 = 8;
        let operand =
            if op & SHIFT != 0 { 1 << (operand & (8 * size.bytes() as u64 - 1)) } else { operand };
        let op = match op & !SHIFT {
            0 => Op::Set,
            1 => Op::Add,
            2 => Op::Or,
            3 => Op::AndNot,
            4 => Op::Xor,
            _ => return Err(Errno::NOSYS),
        };
        let cmp = match cmp {
            0 => Cmp::Eq,
            1 => Cmp::Ne,
            2 => Cmp::Lt,
            3 => Cmp::Le,
            4 => Cmp::Gt,
            5 => Cmp::Ge,
            _ => return Err(Errno::NOSYS),
        };
        Ok(Self {
            op,
            operand: operand & size.all_bits(),
            cmp,
            comparand: comparand & size.all_bits(),
        })
    }

    /// Reads the kernel's packed form for a 32-bit word (`FUTEX_OP` of futex(2)).
    #[inline]
    pub(crate) fn decode(packed: u32) -> Result<Self, Errno> {
        let sign_extend = |twelve: u32| ((twelve << 20) as i32 >> 20) as u32;
        Self::from_numbers(
            packed >> 28,
            sign_extend(packed >> 12 & 0xfff).into(),
            packed >> 24 & 0xf,
            sign_extend(packed & 0xfff).into(),
            Size::U32,
        )
    }

    /// The packed form, if operand and comparand fit into it.
    #[inline]
    pub(crate) fn encode(self) -> Option<u32> {
        let fits = |value: u64| (-2048..2048).contains(&signed(value, Size::U32));
        let (shift, operand) = if fits(self.operand) {
            (0, self.operand as u32)
        } else if self.operand.is_power_of_two() {
            (8, self.operand.trailing_zeros())
        } else {
            return None;
        };
        fits(self.comparand).then_some(
            (shift | self.op as u32) << 28
                | (self.cmp as u32) << 24
                | (operand & 0xfff) << 12
                | (self.comparand as u32 & 0xfff),
        )
    }

    /// Changes the word in one atomic step and returns its old value.
    ///
    /// Sequentially consistent, and followed by a full fence, as in the kernel: callers build locks
    /// on it and may rely on the order of their own earlier stores and later loads. On x86-64 a
    /// weaker order would cost the same.
    ///
    /// # Safety
    /// As [`WordPtr::load`]; the word is writable.
    #[inline]
    pub(crate) unsafe fn apply(self, word: WordPtr) -> u64 {
        macro_rules! apply {
            ($atomic:ty) => {{
                // SAFETY: valid, aligned, writable, and accessed by atomic operations only, by this
                // function's contract. `$atomic` is chosen by the word's size.
                let word = unsafe { <$atomic>::from_ptr(word.address.cast()) };
                let operand = self.operand as _;
                let old = match self.op {
                    Op::Set => word.swap(operand, SeqCst),
                    Op::Add => word.fetch_add(operand, SeqCst),
                    Op::Or => word.fetch_or(operand, SeqCst),
                    Op::AndNot => word.fetch_and(!operand, SeqCst),
                    Op::Xor => word.fetch_xor(operand, SeqCst),
                };
                full_fence_after_rmw();
                u64::from(old)
            }};
        }
        match word.size {
            Size::U8 => apply!(AtomicU8),
            Size::U16 => apply!(AtomicU16),
            Size::U32 => apply!(AtomicU32),
            Size::U64 => apply!(AtomicU64),
        }
    }

    /// Whether the old value of a word of `size` satisfies the comparison.
    #[inline]
    pub(crate) fn compares(self, old: u64, size: Size) -> bool {
        let (old, comparand) = (signed(old, size), signed(self.comparand, size));
        match self.cmp {
            Cmp::Eq => old == comparand,
            Cmp::Ne => old != comparand,
            Cmp::Lt => old < comparand,
            Cmp::Le => old <= comparand,
            Cmp::Gt => old > comparand,
            Cmp::Ge => old >= comparand,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packed_form_survives_a_round_trip() {
        for op in 0..5 {
            for cmp in 0..6 {
                for arg in [0u32, 1, 7, 0x7ff, 0x800, 0xfff] {
                    let packed = op << 28 | cmp << 24 | arg << 12 | arg;
                    let decoded = RawWakeOp::decode(packed).unwrap();
                    assert_eq!(decoded.encode(), Some(packed));
                }
            }
        }
    }

    #[test]
    fn shift_form_takes_the_operand_modulo_the_width() {
        let shifted =
            |operand, size| RawWakeOp::from_numbers(8 | 2, operand, 0, 0, size).unwrap().operand;
        assert_eq!(shifted(33, Size::U32), 2);
        assert_eq!(shifted(33, Size::U64), 1 << 33);
        assert_eq!(shifted(9, Size::U8), 2);
        assert_eq!(RawWakeOp::decode(0xa001_f000).unwrap().operand, 1 << 31);
        assert_eq!(RawWakeOp::decode(0xa001_f000).unwrap().encode(), Some(0xa001_f000));
    }

    #[test]
    fn a_constant_too_wide_for_the_packed_form_is_not_encoded() {
        let op = WakeOp::<u32>::new(Op::Add, 5000).raw;
        assert_eq!(op.encode(), None);
        let op = WakeOp::<u32>::new(Op::Add, 1).when(Cmp::Eq, 5000).raw;
        assert_eq!(op.encode(), None);
    }

    #[test]
    fn unknown_numbers_are_enosys_before_the_word_is_touched() {
        assert_eq!(RawWakeOp::decode(5 << 28), Err(Errno::NOSYS));
        assert_eq!(RawWakeOp::decode(6 << 24), Err(Errno::NOSYS));
    }

    #[test]
    fn comparison_is_signed_at_the_word_s_width() {
        let below_zero = WakeOp::<u8>::new(Op::Set, 0).when(Cmp::Lt, 0).raw;
        assert!(below_zero.compares(0x80, Size::U8));
        assert!(!below_zero.compares(0x7f, Size::U8));
        let below_zero = WakeOp::<u64>::new(Op::Set, 0).when(Cmp::Lt, 0).raw;
        assert!(below_zero.compares(1 << 63, Size::U64));
        assert!(!below_zero.compares(1 << 62, Size::U64));
    }

    #[test]
    fn without_a_condition_every_old_value_compares() {
        let always = WakeOp::<u16>::new(Op::Xor, 1).raw;
        assert!(
            [0, 1, 0x7fff, 0x8000, 0xffff].map(|old| always.compares(old, Size::U16)) == [true; 5]
        );
    }

    #[test]
    fn every_operation_at_every_width() {
        fn check<A>(word: A, size: Size, start: u64) {
            let ptr = WordPtr { address: (&raw const word).cast_mut().cast(), size };
            let bits = size.all_bits();
            type Model = fn(u64, u64) -> u64;
            let ops: [(Op, Model); 5] = [
                (Op::Set, |_, b| b),
                (Op::Add, |a, b| a.wrapping_add(b)),
                (Op::Or, |a, b| a | b),
                (Op::AndNot, |a, b| a & !b),
                (Op::Xor, |a, b| a ^ b),
            ];
            let mut expected = start & bits;
            for (op, model) in ops {
                for operand in [1, 0x5a, bits] {
                    let raw = RawWakeOp { op, operand, cmp: Cmp::Eq, comparand: 0 };
                    // SAFETY: `word` is an atomic of that size on this stack.
                    assert_eq!(unsafe { raw.apply(ptr) }, expected, "{op:?} {size:?}");
                    expected = model(expected, operand) & bits;
                }
            }
        }
        check(AtomicU8::new(3), Size::U8, 3);
        check(AtomicU16::new(3), Size::U16, 3);
        check(AtomicU32::new(3), Size::U32, 3);
        check(AtomicU64::new(3), Size::U64, 3);
    }
}
