//! Flags and operations for the preprocessor: macros, so that `#ifdef` works on each of them.
//!
//! The numbers are the kernel's (`FUTEX2_*` and `FUTEX_OP_*` of linux/futex.h). They are checked
//! against the core crate's numbers at compile time.

use waitword_core::{Cmp, Op, WAIT_ANY_MAX, raw};

/// Flag: the word has 8 bits (`uint8_t`).
pub const WW_SIZE_U8: u32 = 0;
/// Flag: the word has 16 bits (`uint16_t`, 2-byte aligned).
pub const WW_SIZE_U16: u32 = 1;
/// Flag: the word has 32 bits (`uint32_t`, 4-byte aligned).
pub const WW_SIZE_U32: u32 = 2;
/// Flag: the word has 64 bits (`uint64_t`, 8-byte aligned).
pub const WW_SIZE_U64: u32 = 3;
/// Flag: the word is followed by a node word of the same size, which holds the number of the NUMA
/// node that its waiters are queued on; -1 (all bits set) is replaced by the caller's node. The
/// pair is aligned to its own size. A shared word with this flag is passed to the kernel as it is,
/// and the kernel supports 32-bit words only (Linux 6.16).
pub const WW_NUMA: u32 = 4;
/// Flag: the waiters are queued on the node given by the memory policy of the word's page. Has no
/// effect on a private word. A shared word is passed to the kernel as it is, and the kernel
/// supports 32-bit words only (Linux 6.16).
pub const WW_MPOL: u32 = 8;
/// Flag: only threads of this process use the word. Its waiters are queued in the process's own
/// table, and a call that need not sleep or wake a thread makes no system call.
pub const WW_PRIVATE: u32 = 128;

/// Mask of all bits of an 8-bit word. A wait with it is found by every wake; a wake with it finds
/// every waiter.
pub const WW_MASK_U8: u64 = 0xff;
/// Mask of all bits of a 16-bit word.
pub const WW_MASK_U16: u64 = 0xffff;
/// Mask of all bits of a 32-bit word.
pub const WW_MASK_U32: u64 = 0xffff_ffff;
/// Mask of all bits of a 64-bit word.
pub const WW_MASK_U64: u64 = 0xffff_ffff_ffff_ffff;

/// The maximum number of words that `ww_futex_waitv` waits for.
pub const WW_WAITV_MAX: u32 = 128;

/// Operation of `ww_futex_wake_op`: `word = oparg`.
pub const WW_OP_SET: u32 = 0;
/// Operation: `word += oparg`, wrapping at the word's width.
pub const WW_OP_ADD: u32 = 1;
/// Operation: `word |= oparg`.
pub const WW_OP_OR: u32 = 2;
/// Operation: `word &= ~oparg`.
pub const WW_OP_ANDN: u32 = 3;
/// Operation: `word ^= oparg`.
pub const WW_OP_XOR: u32 = 4;
/// Added to an operation: the operand is `1 << oparg`, with `oparg` taken modulo the word's width.
pub const WW_OP_ARG_SHIFT: u32 = 8;

/// Comparison of `ww_futex_wake_op`: `old == cmparg`. All comparisons are signed, in the word's
/// width.
pub const WW_OP_CMP_EQ: u32 = 0;
/// Comparison: `old != cmparg`.
pub const WW_OP_CMP_NE: u32 = 1;
/// Comparison: `old < cmparg`.
pub const WW_OP_CMP_LT: u32 = 2;
/// Comparison: `old <= cmparg`.
pub const WW_OP_CMP_LE: u32 = 3;
/// Comparison: `old > cmparg`.
pub const WW_OP_CMP_GT: u32 = 4;
/// Comparison: `old >= cmparg`.
pub const WW_OP_CMP_GE: u32 = 5;

const _: () = {
    assert!(WW_SIZE_U8 == raw::SIZE_U8 && WW_SIZE_U16 == raw::SIZE_U16);
    assert!(WW_SIZE_U32 == raw::SIZE_U32 && WW_SIZE_U64 == raw::SIZE_U64);
    assert!(WW_NUMA == raw::NUMA && WW_MPOL == raw::MPOL && WW_PRIVATE == raw::PRIVATE);
    assert!(WW_WAITV_MAX as usize == WAIT_ANY_MAX);
    assert!(WW_OP_SET == Op::Set as u32 && WW_OP_ADD == Op::Add as u32);
    assert!(WW_OP_OR == Op::Or as u32 && WW_OP_ANDN == Op::AndNot as u32);
    assert!(WW_OP_XOR == Op::Xor as u32);
    assert!(WW_OP_CMP_EQ == Cmp::Eq as u32 && WW_OP_CMP_NE == Cmp::Ne as u32);
    assert!(WW_OP_CMP_LT == Cmp::Lt as u32 && WW_OP_CMP_LE == Cmp::Le as u32);
    assert!(WW_OP_CMP_GT == Cmp::Gt as u32 && WW_OP_CMP_GE == Cmp::Ge as u32);
};
