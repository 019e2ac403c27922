//! futex(2).

use crate::support::cases::{Case, PAST, Time, VALUE, case, check};
use crate::support::watchdog::watch;
use libc::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT};
use waitword::raw::SIZE_U32;

const WAIT: i32 = 0;
const WAKE: i32 = 1;
const FD: i32 = 2;
const REQUEUE: i32 = 3;
const CMP_REQUEUE: i32 = 4;
const WAKE_OP: i32 = 5;
const WAIT_BITSET: i32 = 9;
const WAKE_BITSET: i32 = 10;
const CLOCK_REALTIME: i32 = 256;

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
    let _watchdog = watch("raw::classic::waits");
    check(&waits_by_address(), &[SIZE_U32]);
    check(&waits_by_time(), &[SIZE_U32]);
}

fn waits_by_address() -> Vec<Case> {
    vec![
        case("wait, misaligned", Err(EINVAL), |c| {
            c.timed(c.word(0) + 1, WAIT, SAME, Time::None, 0)
        }),
        case("wait, misaligned before mismatch", Err(EINVAL), |c| {
            c.timed(c.word(0) + 2, WAIT, OTHER, Time::None, 0)
        }),
        case("wait, null", Err(EFAULT), |c| {
            c.timed(NULL, WAIT, 0, Time::None, 0)
        }),
        case("wait, the kernel's address", Err(EFAULT), |c| {
            c.timed(KERNELS, WAIT, 0, Time::None, 0)
        }),
        case(
            "wait, misaligned before the kernel's address",
            Err(EINVAL),
            |c| c.timed(KERNELS + 1, WAIT, 0, Time::None, 0),
        ),
        case("wait, mismatch", Err(EAGAIN), |c| {
            c.timed(c.word(0), WAIT, OTHER, Time::None, 0)
        }),
        case("wait_bitset, mismatch", Err(EAGAIN), |c| {
            c.timed(c.word(0), WAIT_BITSET, OTHER, Time::None, 1)
        }),
        case("wait_bitset, bitset 0", Err(EINVAL), |c| {
            c.timed(c.word(0), WAIT_BITSET, SAME, Time::None, 0)
        }),
        case("wait_bitset, bitset 0 before mismatch", Err(EINVAL), |c| {
            c.timed(c.word(0), WAIT_BITSET, OTHER, PAST, 0)
        }),
        case("wait_bitset, bitset 0 before null", Err(EINVAL), |c| {
            c.timed(NULL, WAIT_BITSET, SAME, Time::None, 0)
        }),
    ]
}

fn waits_by_time() -> Vec<Case> {
    vec![
        case("wait, 10^9 nanoseconds before mismatch", Err(EINVAL), |c| {
            c.timed(c.word(0), WAIT, OTHER, Time::At(0, SECOND), 0)
        }),
        case("wait, negative nanoseconds", Err(EINVAL), |c| {
            c.timed(c.word(0), WAIT, OTHER, Time::At(0, -1), 0)
        }),
        case("wait, negative seconds", Err(EINVAL), |c| {
            c.timed(c.word(0), WAIT, SAME, Time::At(-1, 0), 0)
        }),
        case("wait, bad time before null", Err(EINVAL), |c| {
            c.timed(NULL, WAIT, SAME, Time::At(-1, 0), 0)
        }),
        case("wait, bad time before the clock flag", Err(EINVAL), |c| {
            c.timed(
                c.word(0),
                WAIT | CLOCK_REALTIME,
                SAME,
                Time::At(0, SECOND),
                0,
            )
        }),
        case("wait, bad time before bitset 0", Err(EINVAL), |c| {
            c.timed(c.word(0), WAIT_BITSET, SAME, Time::At(0, -1), 0)
        }),
        case("wait, a time in the kernel's half", Err(EFAULT), |c| {
            c.timed(c.word(0), WAIT, OTHER, Time::Address(KERNELS), 0)
        }),
        case(
            "wait, a time in the first page before the clock flag",
            Err(EFAULT),
            |c| c.timed(c.word(0), WAIT | CLOCK_REALTIME, OTHER, Time::Address(8), 0),
        ),
        case("wake, no time is read", Ok(0), |c| {
            c.timed(c.word(0), WAKE, 1, Time::Address(KERNELS), 0)
        }),
        case("wait, mismatch before a zero time", Err(EAGAIN), |c| {
            c.timed(c.word(0), WAIT, OTHER, Time::At(0, 0), 0)
        }),
        case("wait, equal and a zero time", Err(ETIMEDOUT), |c| {
            c.timed(c.word(0), WAIT, SAME, Time::At(0, 0), 0)
        }),
        case(
            "wait_bitset, mismatch before a past time",
            Err(EAGAIN),
            |c| c.timed(c.word(0), WAIT_BITSET, OTHER, PAST, ANY),
        ),
        case("wait_bitset, equal and past", Err(ETIMEDOUT), |c| {
            c.timed(c.word(0), WAIT_BITSET, SAME, PAST, ANY)
        }),
        case(
            "wait_bitset, equal and past on the wall clock",
            Err(ETIMEDOUT),
            |c| c.timed(c.word(0), WAIT_BITSET | CLOCK_REALTIME, SAME, PAST, ANY),
        ),
        case("wait_bitset, mismatch, far", Err(EAGAIN), |c| {
            c.timed(
                c.word(0),
                WAIT_BITSET,
                OTHER,
                Time::At(i64::MAX, SECOND - 1),
                ANY,
            )
        }),
        case("wait, mismatch, far", Err(EAGAIN), |c| {
            c.timed(c.word(0), WAIT, OTHER, Time::At(i64::MAX, SECOND - 1), ANY)
        }),
    ]
}

#[test]
fn operations_and_clocks() {
    let _watchdog = watch("raw::classic::operations_and_clocks");
    check(
        &[
            case("wait on the wall clock", Err(ENOSYS), |c| {
                c.timed(c.word(0), WAIT | CLOCK_REALTIME, SAME, PAST, 0)
            }),
            case("wait on the wall clock, without a time", Err(ENOSYS), |c| {
                c.timed(c.word(0), WAIT | CLOCK_REALTIME, OTHER, Time::None, 0)
            }),
            case("clock flag before misaligned", Err(ENOSYS), |c| {
                c.timed(c.word(0) + 1, WAIT | CLOCK_REALTIME, SAME, PAST, 0)
            }),
            case("wake on the wall clock", Err(ENOSYS), |c| {
                c.futex(c.word(0), WAKE | CLOCK_REALTIME, 1, 0, 0, 0)
            }),
            case("wake_bitset on the wall clock", Err(ENOSYS), |c| {
                c.futex(c.word(0), WAKE_BITSET | CLOCK_REALTIME, 1, 0, 0, ANY)
            }),
            case("requeue on the wall clock", Err(ENOSYS), |c| {
                c.futex(c.word(0), REQUEUE | CLOCK_REALTIME, 1, 1, c.word(1), 0)
            }),
            case("cmp_requeue on the wall clock", Err(ENOSYS), |c| {
                c.futex(
                    c.word(0),
                    CMP_REQUEUE | CLOCK_REALTIME,
                    1,
                    1,
                    c.word(1),
                    SAME,
                )
            }),
            case("wake_op on the wall clock", Err(ENOSYS), |c| {
                c.futex(c.word(0), WAKE_OP | CLOCK_REALTIME, 1, 1, c.word(1), 0)
            }),
            case("unknown operation 14", Err(ENOSYS), |c| {
                c.futex(c.word(0), 14, 1, 0, 0, 0)
            }),
            case("unknown operation 127", Err(ENOSYS), |c| {
                c.futex(c.word(0), 127, 1, 0, 0, 0)
            }),
            case("unknown operation -1", Err(ENOSYS), |c| {
                c.futex(c.word(0), -1, 1, 0, 0, 0)
            }),
            case("unknown flag 512", Err(ENOSYS), |c| {
                c.futex(c.word(0), WAKE | 512, 1, 0, 0, 0)
            }),
            case("futex_fd", Err(ENOSYS), |c| {
                c.futex(c.word(0), FD, 0, 0, 0, 0)
            }),
            case("unknown operation, misaligned", Err(ENOSYS), |c| {
                c.futex(c.word(0) + 1, 14, 1, 0, 0, 0)
            }),
        ],
        &[SIZE_U32],
    );
}

#[test]
fn wakes_and_requeues() {
    let _watchdog = watch("raw::classic::wakes_and_requeues");
    check(&wakes(), &[SIZE_U32]);
    check(&requeues(), &[SIZE_U32]);
}

fn wakes() -> Vec<Case> {
    vec![
        case("wake, nobody", Ok(0), |c| {
            c.futex(c.word(0), WAKE, 1, 0, 0, 0)
        }),
        case("wake 0, nobody", Ok(0), |c| {
            c.futex(c.word(0), WAKE, 0, 0, 0, 0)
        }),
        case("wake, negative count, nobody", Ok(0), |c| {
            c.futex(c.word(0), WAKE, MINUS_ONE, 0, 0, 0)
        }),
        case("wake, misaligned", Err(EINVAL), |c| {
            c.futex(c.word(0) + 3, WAKE, 1, 0, 0, 0)
        }),
        // Nothing is read for a private word: the address is only a key.
        case("wake, null", Ok(0), |c| c.futex(NULL, WAKE, 1, 0, 0, 0)).shared(Err(EFAULT)),
        case("wake, the kernel's address", Err(EFAULT), |c| {
            c.futex(KERNELS, WAKE, 1, 0, 0, 0)
        }),
        case("wake_bitset 0", Err(EINVAL), |c| {
            c.futex(c.word(0), WAKE_BITSET, 1, 0, 0, 0)
        }),
        case("wake_bitset 0 before null", Err(EINVAL), |c| {
            c.futex(NULL, WAKE_BITSET, 1, 0, 0, 0)
        }),
        case("wake_bitset, nobody", Ok(0), |c| {
            c.futex(c.word(0), WAKE_BITSET, 1, 0, 0, 4)
        }),
    ]
}

fn requeues() -> Vec<Case> {
    vec![
        case("requeue, nobody", Ok(0), |c| {
            c.futex(c.word(0), REQUEUE, 1, 1, c.word(1), 0)
        }),
        case("requeue onto itself, nobody", Ok(0), |c| {
            c.futex(c.word(0), REQUEUE, 1, 1, c.word(0), 0)
        }),
        case("requeue, wake -1", Err(EINVAL), |c| {
            c.futex(c.word(0), REQUEUE, MINUS_ONE, 1, c.word(1), 0)
        }),
        case("requeue, move -1", Err(EINVAL), |c| {
            c.futex(c.word(0), REQUEUE, 1, MINUS_ONE as usize, c.word(1), 0)
        }),
        case("requeue, misaligned from", Err(EINVAL), |c| {
            c.futex(c.word(0) + 1, REQUEUE, 1, 1, c.word(1), 0)
        }),
        case("requeue, misaligned to", Err(EINVAL), |c| {
            c.futex(c.word(0), REQUEUE, 1, 1, c.word(1) + 2, 0)
        }),
        case("requeue, null from", Ok(0), |c| {
            c.futex(NULL, REQUEUE, 1, 1, c.word(1), 0)
        })
        .shared(Err(EFAULT)),
        case("requeue, null to", Ok(0), |c| {
            c.futex(c.word(0), REQUEUE, 1, 1, NULL, 0)
        })
        .shared(Err(EFAULT)),
        case("cmp_requeue, nobody", Ok(0), |c| {
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(1), SAME)
        }),
        case("cmp_requeue, mismatch", Err(EAGAIN), |c| {
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(1), OTHER)
        }),
        case("cmp_requeue onto itself, mismatch", Err(EAGAIN), |c| {
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(0), OTHER)
        }),
        case("cmp_requeue, counts 0, mismatch", Err(EAGAIN), |c| {
            c.futex(c.word(0), CMP_REQUEUE, 0, 0, c.word(1), OTHER)
        }),
        case("cmp_requeue, wake -1 before mismatch", Err(EINVAL), |c| {
            c.futex(c.word(0), CMP_REQUEUE, MINUS_ONE, 1, c.word(1), OTHER)
        }),
        case("cmp_requeue, move -1 before null", Err(EINVAL), |c| {
            c.futex(NULL, CMP_REQUEUE, 1, MINUS_ONE as usize, c.word(1), SAME)
        }),
        case(
            "cmp_requeue, misaligned to before mismatch",
            Err(EINVAL),
            |c| c.futex(c.word(0), CMP_REQUEUE, 1, 1, c.word(1) + 1, OTHER),
        ),
        case("cmp_requeue, null from", Err(EFAULT), |c| {
            c.futex(NULL, CMP_REQUEUE, 1, 1, c.word(1), SAME)
        }),
        case(
            "cmp_requeue, misaligned to before null from",
            Err(EINVAL),
            |c| c.futex(NULL, CMP_REQUEUE, 1, 1, c.word(1) + 1, SAME),
        )
        .shared(Err(EFAULT)),
        // The second word is only a key, so the mismatch of the first is found.
        case("cmp_requeue, null to, mismatch", Err(EAGAIN), |c| {
            c.futex(c.word(0), CMP_REQUEUE, 1, 1, NULL, OTHER)
        })
        .shared(Err(EFAULT)),
    ]
}

#[test]
fn wake_ops() {
    let _watchdog = watch("raw::classic::wake_ops");
    check(&wake_op_cases(), &[SIZE_U32]);
}

fn wake_op_cases() -> Vec<Case> {
    vec![
        case("wake_op, nobody", Ok(0), |c| {
            assert_eq!(
                c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(1, 5, 0, 0)),
                Ok(0)
            );
            assert_eq!(c.get(c.word(1)), VALUE + 5);
            Ok(0)
        }),
        case("wake_op, constants are signed", Ok(0), |c| {
            assert_eq!(
                c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(0, 0xfff, 0, 0)),
                Ok(0)
            );
            assert_eq!(c.get(c.word(1)), u64::from(MINUS_ONE));
            Ok(0)
        }),
        case("wake_op, shift modulo 32", Ok(0), |c| {
            assert_eq!(
                c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(8, 35, 0, 0)),
                Ok(0)
            );
            assert_eq!(c.get(c.word(1)), 1 << 3);
            Ok(0)
        }),
        case("wake_op, negative shift", Ok(0), |c| {
            assert_eq!(
                c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(8, 0xfff, 0, 0)),
                Ok(0)
            );
            assert_eq!(c.get(c.word(1)), 1 << 31);
            Ok(0)
        }),
        case(
            "wake_op, unknown change leaves the word alone",
            Err(ENOSYS),
            |c| {
                let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(5, 1, 0, 0));
                assert_eq!(c.get(c.word(1)), VALUE);
                answer
            },
        ),
        case("wake_op, unknown shifted change", Err(ENOSYS), |c| {
            let answer = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(8 | 7, 1, 0, 0));
            assert_eq!(c.get(c.word(1)), VALUE);
            answer
        }),
        // For a shared word the kernel is called. It changes the word before it checks the
        // comparison. The library checks first.
        case("wake_op, unknown comparison", Err(ENOSYS), |c| {
            c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(1, 1, 6, 0))
        }),
        case(
            "wake_op, unknown comparison leaves the word alone",
            Ok(VALUE as usize),
            |c| {
                let _ = c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1), packed(1, 1, 15, 0));
                Ok(c.get(c.word(1)) as usize)
            },
        )
        .shared(Ok(VALUE as usize + 1))
        .kernel_says(Ok(VALUE as usize + 1)),
        case(
            "wake_op, misaligned first before an unknown change",
            Err(EINVAL),
            |c| c.futex(c.word(0) + 1, WAKE_OP, 1, 1, c.word(1), packed(5, 1, 0, 0)),
        ),
        case("wake_op, misaligned second", Err(EINVAL), |c| {
            c.futex(c.word(0), WAKE_OP, 1, 1, c.word(1) + 1, packed(0, 1, 0, 0))
        }),
        case("wake_op, null first", Ok(0), |c| {
            c.futex(NULL, WAKE_OP, 1, 1, c.word(1), packed(0, 1, 0, 0))
        })
        .shared(Err(EFAULT)),
        case("wake_op, null second", Err(EFAULT), |c| {
            c.futex(c.word(0), WAKE_OP, 1, 1, NULL, packed(0, 1, 0, 0))
        }),
        case("wake_op, null second, unknown change", Err(ENOSYS), |c| {
            c.futex(c.word(0), WAKE_OP, 1, 1, NULL, packed(5, 1, 0, 0))
        })
        .shared(Err(EFAULT)),
        case(
            "wake_op, null second, unknown comparison",
            Err(EFAULT),
            |c| c.futex(c.word(0), WAKE_OP, 1, 1, NULL, packed(0, 1, 6, 0)),
        ),
        case("wake_op, negative counts, nobody", Ok(0), |c| {
            let counts = (MINUS_ONE, MINUS_ONE as usize);
            c.futex(
                c.word(0),
                WAKE_OP,
                counts.0,
                counts.1,
                c.word(1),
                packed(0, 1, 0, 0),
            )
        }),
    ]
}
