//! Calls on lists of words: `futex_requeue` and `futex_waitv`.

use super::{KERNELS, NULL, OTHER, SECOND, SIZES, UNKNOWN_FLAGS};
use super::{narrower_than_64, too_wide, wider_than_a_byte};
use crate::support::cases::{Calls, Case, PAST, Time, VALUE, case, check};
use crate::support::kernel_has;
use crate::support::watchdog::watch;
use libc::{CLOCK_MONOTONIC as MONOTONIC, CLOCK_REALTIME as REALTIME};
use libc::{EAGAIN, EFAULT, EINVAL, ETIMEDOUT};
use syscalls::Sysno;
use waitword::raw::{PRIVATE, Waitv};

#[test]
fn requeues() {
    let _watchdog = watch("raw::futex2::requeues");
    check(&requeue_cases(), SIZES);
}

fn pair(c: &Calls) -> [Waitv; 2] {
    [c.entry(c.word(0), VALUE), c.entry(c.word(1), 0)]
}

fn requeue_cases() -> Vec<Case> {
    vec![
        case("requeue, nobody", Ok(0), |c| c.requeue(&pair(c), 0, 1, 1)),
        case("requeue onto itself, nobody", Ok(0), |c| {
            c.requeue(&[c.entry(c.word(0), VALUE); 2], 0, 1, 1)
        }),
        case("requeue, flags", Err(EINVAL), |c| {
            c.requeue(&pair(c), 1, 1, 1)
        }),
        case("requeue, no list", Err(EINVAL), |c| c.requeue(&[], 0, 1, 1)),
        case("requeue, a list in the kernel's half", Err(EFAULT), |c| {
            c.requeue_at(KERNELS, 0, 1, 1)
        }),
        case("requeue, mismatch", Err(EAGAIN), |c| {
            let [_, to] = pair(c);
            c.requeue(&[c.entry(c.word(0), OTHER), to], 0, 1, 1)
        }),
        case("requeue, wake -1 before mismatch", Err(EINVAL), |c| {
            let [_, to] = pair(c);
            c.requeue(&[c.entry(c.word(0), OTHER), to], 0, -1, 1)
        }),
        case("requeue, move -1", Err(EINVAL), |c| {
            c.requeue(&pair(c), 0, 1, -1)
        }),
        case("requeue, reserved field of the first", Err(EINVAL), |c| {
            let [from, to] = pair(c);
            c.requeue(
                &[
                    Waitv {
                        reserved: 1,
                        ..from
                    },
                    to,
                ],
                0,
                1,
                1,
            )
        }),
        case("requeue, reserved field of the second", Err(EINVAL), |c| {
            let [from, to] = pair(c);
            c.requeue(&[from, Waitv { reserved: 1, ..to }], 0, 1, 1)
        }),
        case("requeue, unknown flags of an entry", Err(EINVAL), |c| {
            let [from, to] = pair(c);
            for flag in UNKNOWN_FLAGS {
                let to = Waitv {
                    flags: to.flags | flag,
                    ..to
                };
                assert_eq!(
                    c.requeue(&[from, to], 0, 1, 1),
                    Err(EINVAL),
                    "flag {flag:#x}"
                );
            }
            Err(EINVAL)
        }),
        case("requeue, value too wide", Err(EINVAL), |c| {
            let [_, to] = pair(c);
            c.requeue(&[c.entry(c.word(0), too_wide(c) | VALUE), to], 0, 1, 1)
        })
        .only(narrower_than_64),
        case("requeue, the second's value too wide", Err(EINVAL), |c| {
            let [from, _] = pair(c);
            c.requeue(&[from, c.entry(c.word(1), too_wide(c))], 0, 1, 1)
        })
        .only(narrower_than_64),
        case("requeue, misaligned to before mismatch", Err(EINVAL), |c| {
            c.requeue(
                &[c.entry(c.word(0), OTHER), c.entry(c.word(1) + 1, 0)],
                0,
                1,
                1,
            )
        })
        .only(wider_than_a_byte),
        case("requeue, null from", Err(EFAULT), |c| {
            let [_, to] = pair(c);
            c.requeue(&[c.entry(NULL, VALUE), to], 0, 1, 1)
        }),
        case(
            "requeue, from private to shared and back",
            Err(EINVAL),
            |c| {
                let [from, to] = pair(c);
                c.requeue(
                    &[
                        from,
                        Waitv {
                            flags: to.flags ^ PRIVATE,
                            ..to
                        },
                    ],
                    0,
                    1,
                    1,
                )
            },
        ),
    ]
}

#[test]
fn waits_for_many() {
    let _watchdog = watch("raw::futex2::waits_for_many");
    check(&waitv_by_argument(), SIZES);
    check(&waitv_by_entry(), SIZES);
}

/// A wait for many words with ordinary count, flags and clock.
fn waitv(c: &Calls, list: &[Waitv], time: Time) -> Result<usize, i32> {
    c.waitv(list, list.len() as u32, 0, time, MONOTONIC)
}

fn good(c: &Calls, count: usize) -> Vec<Waitv> {
    vec![c.entry(c.word(0), VALUE); count]
}

fn waitv_by_argument() -> Vec<Case> {
    vec![
        case("waitv, equal and past", Err(ETIMEDOUT), |c| {
            waitv(c, &good(c, 2), PAST)
        }),
        case("waitv, on the wall clock", Err(ETIMEDOUT), |c| {
            c.waitv(&good(c, 1), 1, 0, PAST, REALTIME)
        }),
        case("waitv, as many as can be", Err(ETIMEDOUT), |c| {
            waitv(c, &good(c, 128), PAST)
        })
        // A shared 64-bit word takes two of the kernel's entries.
        .only(|c| c.private != 0 || c.bits() < 64),
        case("waitv, as many as can be", Err(ETIMEDOUT), |c| {
            waitv(c, &good(c, 64), PAST)
        })
        .only(|c| c.private == 0 && c.bits() == 64),
        case("waitv, one more than can be", Err(EINVAL), |c| {
            waitv(c, &good(c, 65), PAST)
        })
        .only(|c| c.private == 0 && c.bits() == 64),
        case("waitv, no words", Err(EINVAL), |c| {
            c.waitv(&good(c, 1), 0, 0, PAST, MONOTONIC)
        }),
        case("waitv, 129 words", Err(EINVAL), |c| {
            waitv(c, &good(c, 129), PAST)
        }),
        case("waitv, all the words there are", Err(EINVAL), |c| {
            c.waitv(&good(c, 1), u32::MAX, 0, PAST, MONOTONIC)
        }),
        case("waitv, flags", Err(EINVAL), |c| {
            c.waitv(&good(c, 1), 1, 1, PAST, MONOTONIC)
        }),
        case("waitv, no list", Err(EINVAL), |c| {
            c.waitv(&[], 1, 0, PAST, MONOTONIC)
        }),
        case("waitv, a list in the first page", Err(EFAULT), |c| {
            c.waitv_at(8, 1, 0, PAST, MONOTONIC)
        }),
        case("waitv, a list in the kernel's half", Err(EFAULT), |c| {
            c.waitv_at(KERNELS, 1, 0, PAST, MONOTONIC)
        }),
        case("waitv, bad time before the list", Err(EINVAL), |c| {
            c.waitv_at(KERNELS, 1, 0, Time::At(-1, 0), MONOTONIC)
        }),
        case("waitv, another clock", Err(EINVAL), |c| {
            c.waitv(&good(c, 1), 1, 0, PAST, 99)
        }),
        case("waitv, another clock, but no time", Err(EAGAIN), |c| {
            c.waitv(&[c.entry(c.word(0), OTHER)], 1, 0, Time::None, 99)
        }),
        case("waitv, bad time before mismatch", Err(EINVAL), |c| {
            waitv(c, &[c.entry(c.word(0), OTHER)], Time::At(0, SECOND))
        }),
    ]
}

fn waitv_by_entry() -> Vec<Case> {
    vec![
        case("waitv, the last differs", Err(EAGAIN), |c| {
            waitv(
                c,
                &[c.entry(c.word(0), VALUE), c.entry(c.word(1), OTHER)],
                PAST,
            )
        }),
        case("waitv, reserved field", Err(EINVAL), |c| {
            waitv(
                c,
                &[Waitv {
                    reserved: 1,
                    ..c.entry(c.word(0), OTHER)
                }],
                PAST,
            )
        }),
        case("waitv, unknown flags", Err(EINVAL), |c| {
            for flag in UNKNOWN_FLAGS {
                let entry = c.entry(c.word(0), OTHER);
                let answer = waitv(
                    c,
                    &[Waitv {
                        flags: entry.flags | flag,
                        ..entry
                    }],
                    PAST,
                );
                assert_eq!(answer, Err(EINVAL), "flag {flag:#x}");
            }
            Err(EINVAL)
        }),
        case("waitv, value too wide", Err(EINVAL), |c| {
            waitv(c, &[c.entry(c.word(0), too_wide(c) | VALUE)], PAST)
        })
        // Before Linux 6.7, which added the other calls, the kernel ignores the upper half.
        .only(|c| narrower_than_64(c) && (!c.are_the_kernel_s() || kernel_has(Sysno::futex_wait))),
        case(
            "waitv, misaligned before the mismatch of another",
            Err(EINVAL),
            |c| {
                waitv(
                    c,
                    &[c.entry(c.word(0), OTHER), c.entry(c.word(1) + 1, VALUE)],
                    PAST,
                )
            },
        )
        .only(wider_than_a_byte),
        case("waitv, null", Err(EFAULT), |c| {
            waitv(c, &[c.entry(NULL, 0)], PAST)
        }),
        case(
            "waitv, a bad entry before the null of another",
            Err(EINVAL),
            |c| {
                let bad = Waitv {
                    reserved: 1,
                    ..c.entry(c.word(0), VALUE)
                };
                waitv(c, &[c.entry(NULL, 0), bad], PAST)
            },
        ),
        // The private null is found only when it is read, in the order of the list.
        case("waitv, null after a mismatch", Err(EAGAIN), |c| {
            waitv(c, &[c.entry(c.word(0), OTHER), c.entry(NULL, 0)], PAST)
        })
        .only(|c| c.private != 0),
        case("waitv, null after a mismatch", Err(EFAULT), |c| {
            waitv(c, &[c.entry(c.word(0), OTHER), c.entry(NULL, 0)], PAST)
        })
        .only(|c| c.private == 0),
        case("waitv, null before a mismatch", Err(EFAULT), |c| {
            waitv(c, &[c.entry(NULL, 0), c.entry(c.word(0), OTHER)], PAST)
        }),
        case("waitv, without a size flag a byte", Err(ETIMEDOUT), |c| {
            waitv(
                c,
                &[Waitv {
                    flags: c.private,
                    ..c.entry(c.word(0), VALUE)
                }],
                PAST,
            )
        })
        // The kernel knows 32 bits only.
        .kernel_says(Err(EINVAL))
        .only(|c| c.private != 0),
    ]
}
