//! futex(2).

use libc::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT};
use waitword::raw::SIZE_U32;
use waitword_testkit::raw::op::*;
use waitword_testkit::{
    cases,
    cases::{Case, PAST, Time, VALUE, check},
    watch,
};

/// The value of the words.
const SAME: u32 = VALUE as u32;
const OTHER: u32 = SAME + 1;
const ANY: u32 = u32::MAX;
const NULL: usize = 0;
/// In the kernel's half of the address space.
const KERNELS: usize = 0xffff_8000_0000_0000;
const SECOND: i64 = 1_000_000_000;
const MINUS_ONE: u32 = u32::MAX;

/// FUTEX_OP: a change and a comparison, packed.
const fn packed(op: u32, operand: u32, cmp: u32, comparand: u32) -> u32 {
    op << 28 | cmp << 24 | (operand & 0xfff) << 12 | comparand & 0xfff
}

#[test]
fn waits() {
    let _watchdog = watch();
    check(waits_by_address(), &[SIZE_U32]);
    check(waits_by_time(), &[SIZE_U32]);
}

fn waits_by_address() -> Vec<Case> {
    cases! { c:
        "wait, misaligned" => Err(EINVAL), c.timed(c.word(0) + 1, WAIT, SAME, Time::None, 0);
        "wait, misaligned before mismatch" => Err(EINVAL),
            c.timed(c.word(0) + 2, WAIT, OTHER, Time::None, 0);
        "wait, null" => Err(EFAULT), c.timed(NULL, WAIT, 0, Time::None, 0);
        "wait, the kernel's address" => Err(EFAULT), c.timed(KERNELS, WAIT, 0, Time::None, 0);
        "wait, misaligned before the kernel's address" => Err(EINVAL),
            c.timed(KERNELS + 1, WAIT, 0, Time::None, 0);
        "wait, mismatch" => Err(EAGAIN), c.timed(c.word(0), WAIT, OTHER, Time::None, 0);
        "wait_bitset, mismatch" => Err(EAGAIN),
            c.timed(c.word(0), WAIT_BITSET, OTHER, Time::None, 1);
        "wait_bitset, bitset 0" => Err(EINVAL),
            c.timed(c.word(0), WAIT_BITSET, SAME, Time::None, 0);
        "wait_bitset, bitset 0 before mismatch" => Err(EINVAL),
            c.timed(c.word(0), WAIT_BITSET, OTHER, PAST, 0);
        "wait_bitset, bitset 0 before null" => Err(EINVAL),
            c.timed(NULL, WAIT_BITSET, SAME, Time::None, 0);
    }
}

fn waits_by_time() -> Vec<Case> {
    cases! { c:
        "wait, 10^9 nanoseconds before mismatch" => Err(EINVAL),
            c.timed(c.word(0), WAIT, OTHER, Time::At(0, SECOND), 0);
        "wait, negative nanoseconds" => Err(EINVAL),
            c.timed(c.word(0), WAIT, OTHER, Time::At(0, -1), 0);
        "wait, negative seconds" => Err(EINVAL), c.timed(c.word(0), WAIT, SAME, Time::At(-1, 0), 0);
        "wait, bad time before null" => Err(EINVAL), c.timed(NULL, WAIT, SAME, Time::At(-1, 0), 0);
        "wait, bad time before the clock flag" => Err(EINVAL),
            c.timed(c.word(0), WAIT | CLOCK_REALTIME, SAME, Time::At(0, SECOND), 0);
        "wait, bad time before bitset 0" => Err(EINVAL),
            c.timed(c.word(0), WAIT_BITSET, SAME, Time::At(0, -1), 0);
        "wait, a time in the kernel's half" => Err(EFAULT),
            c.timed(c.word(0), WAIT, OTHER, Time::Address(KERNELS), 0);
        "wait, a time in the first page before the clock flag" => Err(EFAULT),
            c.timed(c.word(0), WAIT | CLOCK_REALTIME, OTHER, Time::Address(8), 0);
        "wake, no time is read" => Ok(0), c.timed(c.word(0), WAKE, 1, Time::Address(KERNELS), 0);
        "wait, mismatch before a zero time" => Err(EAGAIN),
            c.timed(c.word(0), WAIT, OTHER, Time::At(0, 0), 0);
        "wait, equal and a zero time" => Err(ETIMEDOUT),
            c.timed(c.word(0), WAIT, SAME, Time::At(0, 0), 0);
        "wait_bitset, mismatch before a past time" => Err(EAGAIN),
            c.timed(c.word(0), WAIT_BITSET, OTHER, PAST, ANY);
        "wait_bitset, equal and past" => Err(ETIMEDOUT),
            c.timed(c.word(0), WAIT_BITSET, SAME, PAST, ANY);
        "wait_bitset, equal and past on the wall clock" => Err(ETIMEDOUT),
            c.timed(c.word(0), WAIT_BITSET | CLOCK_REALTIME, SAME, PAST, ANY);
        "wait_bitset, mismatch, far" => Err(EAGAIN),
            c.timed(c.word(0), WAIT_BITSET, OTHER, Time::At(i64::MAX, SECOND - 1), ANY);
        "wait, mismatch, far" => Err(EAGAIN),
            c.timed(c.word(0), WAIT, OTHER, Time::At(i64::MAX, SECOND - 1), ANY);
    }
}

#[test]
fn operations_and_clocks() {
    let _watchdog = watch();
    check(
        cases! { c:
            "wait on the wall clock" => Err(ENOSYS),
                c.timed(c.word(0), WAIT | CLOCK_REALTIME, SAME, PAST, 0);
            "wait on the wall clock, without a time" => Err(ENOSYS),
                c.timed(c.word(0), WAIT | CLOCK_REALTIME, OTHER, Time::None, 0);
            "clock flag before misaligned" => Err(ENOSYS),
                c.timed(c.word(0) + 1, WAIT | CLOCK_REALTIME, SAME, PAST, 0);
            "wake on the wall clock" => Err(ENOSYS),
                c.futex(c.word(0), WAKE | CLOCK_REALTIME, 1, 0, 0, 0);
            "wake_bitset on the wall clock" => Err(ENOSYS),
                c.futex(c.word(0), WAKE_BITSET | CLOCK_REALTIME, 1, 0, 0, ANY);
            "requeue on the wall clock" => Err(ENOSYS),
                c.futex(c.word(0), REQUEUE | CLOCK_REALTIME, 1, 1, c.word(1), 0);
            "cmp_requeue on the wall clock" => Err(ENOSYS),
                c.futex(c.word(0), CMP_REQUEUE | CLOCK_REALTIME, 1, 1, c.word(1), SAME);
            "wake_op on the wall clock" => Err(ENOSYS),
                c.futex(c.word(0), WAKE_OP | CLOCK_REALTIME, 1, 1, c.word(1), 0);
            "unknown operation 14" => Err(ENOSYS), c.futex(c.word(0), 14, 1, 0, 0, 0);
            "unknown operation 127" => Err(ENOSYS), c.futex(c.word(0), 127, 1, 0, 0, 0);
            "unknown operation -1" => Err(ENOSYS), c.futex(c.word(0), -1, 1, 0, 0, 0);
            "unknown flag 512" => Err(ENOSYS), c.futex(c.word(0), WAKE | 512, 1, 0, 0, 0);
            "futex_fd" => Err(ENOSYS), c.futex(c.word(0), FD, 0, 0, 0, 0);
            "unknown operation, misaligned" => Err(ENOSYS), c.futex(c.word(0) + 1, 14, 1, 0, 0, 0);
        },
        &[SIZE_U32],
    );
}

#[test]
fn wakes_and_requeues() {
    let _watchdog = watch();
    check(wakes(), &[SIZE_U32]);
    check(requeues(), &[SIZE_U32]);
}

fn wakes() -> Vec<Case> {
    cases! { c:
        "wake, no waiters" => Ok(0), c.futex(c.word(0), WAKE, 1, 0, 0, 0);
        "wake 0, no waiters" => Ok(0), c.futex(c.word(0), WAKE, 0, 0, 0, 0);
        "wake, negative count, no waiters" => Ok(0), c.futex(c.word(0), WAKE, MINUS_ONE, 0, 0, 0);
        "wake, misaligned" => Err(EINVAL), c.futex(c.word(0) + 3, WAKE, 1, 0, 0, 0);
        // Nothing is read for a private word: the address is only a key.
        "wake, null".shared(Err(EFAULT)) => Ok(0), c.futex(NULL, WAKE, 1, 0, 0, 0);
        "wake, the kernel's address" => Err(EFAULT), c.futex(KERNELS, WAKE, 1, 0, 0, 0);
        "wake_bitset 0" => Err(EINVAL), c.futex(c.word(0), WAKE_BITSET, 1, 0, 0, 0);
        "wake_bitset 0 before null" => Err(EINVAL), c.futex(NULL, WAKE_BITSET, 1, 0, 0, 0);
        "wake_bitset, no waiters" => Ok(0), c.futex(c.word(0), WAKE_BITSET, 1, 0, 0, 4);
    }
}

fn requeues() -> Vec<Case> {
    cases! { c:
        "requeue, no waiters" => Ok(0), c.futex(c.word(0), REQUEUE, 1, 1, c.word(1), 0);
        "requeue onto itself, no waiters" => Ok(0), c.futex(c.word(0), REQUEUE, 1, 1, c.word(0), 0);
        "requeue, wake -1" => Err(EINVAL), c.futex(c.word(0), REQUEUE, MINUS_ONE, 1, c.word(1), 0);
        "requeue, move -1" => Err(EINVAL),
            c.futex(c.word(0), REQUEUE, 1, MINUS_ONE as usize, c.word(1), 0);
        "requeue, misaligned from" => Err(EINVAL),
            c.futex(c.word(0) + 1, REQUEUE, 1, 1, c.word(1), 0);
        "requeue, misaligned to" => Err(EINVAL),
            c.futex(c.word(0), REQUEUE, 1, 1, c.word(1) + 2, 0);
        "requeue, null from".shared(Err(EFAULT)) => Ok(0),
            c.futex(NULL, REQUEUE, 1, 1, c.word(1), 0);
        "requeue, null to".shared(Err(EFAULT)) => Ok(0), c.futex(c.word(0), REQUEUE, 1, 1, NULL, 0);
        "cmp_requeue, no waiters" => Ok(0), c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(1), SAME);
        "cmp_requeue, mismatch" => Err(EAGAIN),
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(1), OTHER);
        "cmp_requeue onto itself, mismatch" => Err(EAGAIN),
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(0), OTHER);
        "cmp_requeue, counts 0, mismatch" => Err(EAGAIN),
            c.futex(c.word(0), CMP_REQUEUE, 0, 0, c.word(1), OTHER);
        "cmp_requeue, wake -1 before mismatch" => Err(EINVAL),
            c.futex(c.word(0), CMP_REQUEUE, MINUS_ONE, 1, c.word(1), OTHER);
        "cmp_requeue, move -1 before null" => Err(EINVAL),
            c.futex(NULL, CMP_REQUEUE, 1, MINUS_ONE as usize, c.word(1), SAME);
        "cmp_requeue, misaligned to before mismatch" => Err(EINVAL),
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(1) + 1, OTHER);
        "cmp_requeue, null from" => Err(EFAULT), c.futex(NULL, CMP_REQUEUE, 1, 1, c.word(1), SAME);
        "cmp_requeue, misaligned to before null from".shared(Err(EFAULT)) => Err(EINVAL),
            c.futex(NULL, CMP_REQUEUE, 1, 1, c.word(1) + 1, SAME);
        // The second word is only a key, so the mismatch of the first is found.
        "cmp_requeue, null to, mismatch".shared(Err(EFAULT)) => Err(EAGAIN),
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, NULL, OTHER);
    }
}

#[test]
fn wake_ops() {
    let _watchdog = watch();
    check(wake_op_cases(), &[SIZE_U32]);
}

fn wake_op_cases() -> Vec<Case> {
    cases! { c:
        "wake_op, no waiters" => Ok(0), {
            let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(1, 5, 0, 0));
            assert_eq!(c.get(c.word(1)), VALUE + 5);
            answer
        };
        "wake_op, constants are signed" => Ok(0), {
            let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(0, 0xfff, 0, 0));
            assert_eq!(c.get(c.word(1)), u64::from(MINUS_ONE));
            answer
        };
        "wake_op, shift modulo 32" => Ok(0), {
            let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(8, 35, 0, 0));
            assert_eq!(c.get(c.word(1)), 1 << 3);
            answer
        };
        "wake_op, negative shift" => Ok(0), {
            let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(8, 0xfff, 0, 0));
            assert_eq!(c.get(c.word(1)), 1 << 31);
            answer
        };
        "wake_op, unknown change leaves the word alone" => Err(ENOSYS), {
            let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(5, 1, 0, 0));
            assert_eq!(c.get(c.word(1)), VALUE);
            answer
        };
        "wake_op, unknown shifted change" => Err(ENOSYS), {
            let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(8 | 7, 1, 0, 0));
            assert_eq!(c.get(c.word(1)), VALUE);
            answer
        };
        // For a shared word the kernel is called. It changes the word before it checks the
        // comparison. The library checks first.
        "wake_op, unknown comparison" => Err(ENOSYS),
            c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(1, 1, 6, 0));
        "wake_op, unknown comparison leaves the word alone"
            .shared(Ok(VALUE as usize + 1)).kernel_says(Ok(VALUE as usize + 1)) =>
            Ok(VALUE as usize), {
                let _ = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(1, 1, 15, 0));
                Ok(c.get(c.word(1)) as usize)
            };
        "wake_op, misaligned first before an unknown change" => Err(EINVAL),
            c.futex(c.word(0) + 1, WAKE_OP, 1, 1, c.word(1), packed(5, 1, 0, 0));
        "wake_op, misaligned second" => Err(EINVAL),
            c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1) + 1, packed(0, 1, 0, 0));
        "wake_op, null first".shared(Err(EFAULT)) => Ok(0),
            c.futex(NULL, WAKE_OP, 1, 1, c.word(1), packed(0, 1, 0, 0));
        "wake_op, null second" => Err(EFAULT),
            c.futex(c.word(0), WAKE_OP, 1, 1, NULL, packed(0, 1, 0, 0));
        "wake_op, null second, unknown change".shared(Err(EFAULT)) => Err(ENOSYS),
            c.futex(c.word(0), WAKE_OP, 1, 1, NULL, packed(5, 1, 0, 0));
        "wake_op, null second, unknown comparison" => Err(EFAULT),
            c.futex(c.word(0), WAKE_OP, 1, 1, NULL, packed(0, 1, 6, 0));
        "wake_op, negative counts, no waiters" => Ok(0), c.futex(c.word(0), WAKE_OP, MINUS_ONE,
            MINUS_ONE as usize, c.word(1), packed(0, 1, 0, 0));
    }
}
