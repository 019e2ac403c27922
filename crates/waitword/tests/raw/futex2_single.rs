//! Calls on one word: `futex_wait` and `futex_wake`.

use super::{KERNELS, NULL, OTHER, SECOND, SIZES, UNKNOWN_FLAGS};
use super::{narrower_than_64, too_wide, wider_than_a_byte};
use crate::support::cases::{Calls, Case, PAST, Time, VALUE, case, check};
use crate::support::watchdog::watch;
use libc::{CLOCK_MONOTONIC as MONOTONIC, CLOCK_REALTIME as REALTIME};
use libc::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT};

/// A wait with ordinary mask, flags and clock.
fn wait(c: &Calls, word: usize, val: u64, time: Time) -> Result<usize, i32> {
    c.wait(word, val, c.all_bits(), c.flags(), time, MONOTONIC)
}

#[test]
fn waits() {
    let _watchdog = watch("raw::futex2::waits");
    check(&waits_by_argument(), SIZES);
    check(&waits_by_time(), SIZES);
}

fn waits_by_argument() -> Vec<Case> {
    vec![
        case("wait, unknown flags", Err(EINVAL), |c| {
            for flag in UNKNOWN_FLAGS {
                let flags = c.flags() | flag;
                let answer = c.wait(c.word(0), OTHER, 1, flags, Time::None, MONOTONIC);
                assert_eq!(answer, Err(EINVAL), "flag {flag:#x}");
            }
            Err(EINVAL)
        }),
        case("wait, value too wide", Err(EINVAL), |c| {
            wait(c, c.word(0), too_wide(c) | OTHER, Time::None)
        })
        .only(narrower_than_64),
        case("wait, mask too wide", Err(EINVAL), |c| {
            c.wait(
                c.word(0),
                OTHER,
                too_wide(c) | 1,
                c.flags(),
                Time::None,
                MONOTONIC,
            )
        })
        .only(narrower_than_64),
        case("wait, mask 0", Err(EINVAL), |c| {
            c.wait(c.word(0), OTHER, 0, c.flags(), Time::None, MONOTONIC)
        }),
        case("wait, mask 0 before null", Err(EINVAL), |c| {
            c.wait(NULL, OTHER, 0, c.flags(), Time::None, MONOTONIC)
        }),
        case("wait, misaligned", Err(EINVAL), |c| {
            wait(c, c.word(0) + 1, OTHER, Time::None)
        })
        .only(wider_than_a_byte),
        case("wait, misaligned by half", Err(EINVAL), |c| {
            wait(c, c.word(0) + c.bytes() / 2, OTHER, Time::None)
        })
        .only(wider_than_a_byte),
        case("wait, null", Err(EFAULT), |c| wait(c, NULL, 0, Time::None)),
        case("wait, the kernel's address", Err(EFAULT), |c| {
            wait(c, KERNELS, 0, Time::None)
        }),
        case("wait, mismatch", Err(EAGAIN), |c| {
            wait(c, c.word(0), OTHER, Time::None)
        }),
        case("wait, highest bit of the value counts", Err(EAGAIN), |c| {
            wait(c, c.word(0), VALUE | 1 << (c.bits() - 1), PAST)
        }),
        case(
            "wait, the neighbours of the word do not count",
            Err(ETIMEDOUT),
            |c| {
                c.set(c.word(0) + c.bytes(), 1);
                wait(c, c.word(0), VALUE, PAST)
            },
        ),
    ]
}

fn waits_by_time() -> Vec<Case> {
    vec![
        case("wait, 10^9 nanoseconds before mismatch", Err(EINVAL), |c| {
            wait(c, c.word(0), OTHER, Time::At(0, SECOND))
        }),
        case("wait, negative nanoseconds", Err(EINVAL), |c| {
            wait(c, c.word(0), VALUE, Time::At(0, -1))
        }),
        case("wait, negative seconds before null", Err(EINVAL), |c| {
            wait(c, NULL, VALUE, Time::At(-1, 0))
        }),
        case("wait, a time in the kernel's half", Err(EFAULT), |c| {
            c.wait(
                c.word(0),
                OTHER,
                1,
                c.flags(),
                Time::Address(KERNELS),
                MONOTONIC,
            )
        }),
        case(
            "wait, another clock before a time in the kernel's half",
            Err(EINVAL),
            |c| c.wait(c.word(0), OTHER, 1, c.flags(), Time::Address(KERNELS), 99),
        ),
        case(
            "wait, a time in the first page before mask 0",
            Err(EFAULT),
            |c| c.wait(c.word(0), OTHER, 0, c.flags(), Time::Address(8), MONOTONIC),
        ),
        case("wait, other clocks", Err(EINVAL), |c| {
            for clock in [-1, 2, libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_BOOTTIME, 99] {
                let answer = c.wait(c.word(0), OTHER, 1, c.flags(), PAST, clock);
                assert_eq!(answer, Err(EINVAL), "clock {clock}");
            }
            Err(EINVAL)
        }),
        case("wait, another clock, but no time", Err(EAGAIN), |c| {
            c.wait(c.word(0), OTHER, c.all_bits(), c.flags(), Time::None, 99)
        }),
        case("wait, mismatch before past", Err(EAGAIN), |c| {
            wait(c, c.word(0), OTHER, PAST)
        }),
        case("wait, equal and past", Err(ETIMEDOUT), |c| {
            wait(c, c.word(0), VALUE, PAST)
        }),
        case(
            "wait, equal and past on the wall clock",
            Err(ETIMEDOUT),
            |c| c.wait(c.word(0), VALUE, c.all_bits(), c.flags(), PAST, REALTIME),
        ),
        case("wait, equal and past with a mask", Err(ETIMEDOUT), |c| {
            c.wait(c.word(0), VALUE, 2, c.flags(), PAST, MONOTONIC)
        })
        // A shared 64-bit word cannot be waited for with a mask.
        .only(|c| c.private != 0 || c.bits() < 64),
        case("wait, with a mask", Err(ENOSYS), |c| {
            c.wait(c.word(0), VALUE, 2, c.flags(), PAST, MONOTONIC)
        })
        .only(|c| c.private == 0 && c.bits() == 64),
    ]
}

#[test]
fn wakes() {
    let _watchdog = watch("raw::futex2::wakes");
    check(
        &[
            case("wake, nobody", Ok(0), |c| {
                c.wake(c.word(0), c.all_bits(), 1, c.flags())
            }),
            case("wake 0, nobody", Ok(0), |c| {
                c.wake(c.word(0), c.all_bits(), 0, c.flags())
            }),
            case("wake -1, nobody", Ok(0), |c| {
                c.wake(c.word(0), c.all_bits(), -1, c.flags())
            }),
            case("wake, unknown flags", Err(EINVAL), |c| {
                for flag in UNKNOWN_FLAGS {
                    let answer = c.wake(c.word(0), 1, 1, c.flags() | flag);
                    assert_eq!(answer, Err(EINVAL), "flag {flag:#x}");
                }
                Err(EINVAL)
            }),
            case("wake, mask 0", Err(EINVAL), |c| {
                c.wake(c.word(0), 0, 1, c.flags())
            }),
            case("wake 0, mask 0", Err(EINVAL), |c| {
                c.wake(c.word(0), 0, 0, c.flags())
            }),
            case("wake, mask too wide", Err(EINVAL), |c| {
                c.wake(c.word(0), too_wide(c) | 1, 1, c.flags())
            })
            .only(narrower_than_64),
            case("wake, misaligned", Err(EINVAL), |c| {
                c.wake(c.word(0) + 1, 1, 1, c.flags())
            })
            .only(wider_than_a_byte),
            case("wake 0, misaligned", Err(EINVAL), |c| {
                c.wake(c.word(0) + 1, 1, 0, c.flags())
            })
            .only(wider_than_a_byte),
            // The address of a private word is only a key.
            case("wake, null", Ok(0), |c| c.wake(NULL, 1, 1, c.flags())).only(|c| c.private != 0),
            case("wake, null", Err(EFAULT), |c| c.wake(NULL, 1, 1, c.flags()))
                .only(|c| c.private == 0),
            case("wake, the kernel's address", Err(EFAULT), |c| {
                c.wake(KERNELS, 1, 1, c.flags())
            }),
        ],
        SIZES,
    );
}
