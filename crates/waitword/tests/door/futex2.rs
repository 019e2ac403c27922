//! futex2: `futex_wait`, `futex_wake`, `futex_requeue`, `futex_waitv`, and ours, `futex_wake_op`.

use crate::support::cases::{Calls, Case, PAST, Time, VALUE, case, check};
use crate::support::watchdog::watch;
use libc::{CLOCK_MONOTONIC as MONOTONIC, CLOCK_REALTIME as REALTIME};
use libc::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT};
use waitword::door::{self, Errno, PRIVATE, SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64, Waitv};

const SIZES: &[u32] = &[SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64];
const OTHER: u64 = VALUE + 1;
const NULL: usize = 0;
/// In the kernel's half.
const KERNELS: usize = 0xffff_8000_0000_0000;
const SECOND: i64 = 1_000_000_000;
/// Flags that neither the kernel nor the library knows.
const UNKNOWN_FLAGS: [u32; 6] = [16, 32, 64, 256, 1 << 16, 1 << 31];

/// Words that can be misaligned.
fn wider_than_a_byte(c: &Calls) -> bool {
    c.bytes() > 1
}

/// Words that a number can be too wide for.
fn narrower_than_64(c: &Calls) -> bool {
    c.bits() < 64
}

fn too_wide(c: &Calls) -> u64 {
    1 << c.bits()
}

/// A wait with nothing special about mask, flags and clock.
fn wait(c: &Calls, word: usize, val: u64, time: Time) -> Result<usize, i32> {
    c.wait(word, val, c.all_bits(), c.flags(), time, MONOTONIC)
}

#[test]
fn waits() {
    let _watchdog = watch("door::futex2::waits");
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
    let _watchdog = watch("door::futex2::wakes");
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

#[test]
fn requeues() {
    let _watchdog = watch("door::futex2::requeues");
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
    let _watchdog = watch("door::futex2::waits_for_many");
    check(&waitv_by_argument(), SIZES);
    check(&waitv_by_entry(), SIZES);
}

/// A wait for many words with nothing special about count, flags and clock.
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
        .only(narrower_than_64),
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
        // The private null is found only as it is read, in the order of the list.
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

#[test]
fn wake_ops() {
    let _watchdog = watch("door::futex2::wake_ops");
    // The kernel has none; what it would say follows from futex(2).
    for &size in SIZES {
        for private in [PRIVATE, 0] {
            wake_ops_at(size, private);
        }
    }
}

fn wake_ops_at(size: u32, private: u32) {
    #[repr(align(64))]
    struct Words([u64; 2]);
    let mut words = Words([VALUE, VALUE]);
    let [first, second] = words
        .0
        .each_mut()
        .map(|word| (&raw mut *word).cast::<std::ffi::c_void>());
    let bits = 8 << size;
    let all: u64 = u64::MAX >> (64 - bits);
    let read = || {
        // SAFETY: nobody changes it between calls; the upper bytes are never written.
        unsafe { second.cast::<u64>().read_volatile() }
    };
    let call = |first, second, op, operand, cmp, comparand, flags| {
        // SAFETY: words of this size, or bad addresses that are told by their number.
        unsafe { door::futex_wake_op(first, 1, second, 1, op, operand, cmp, comparand, flags) }
    };
    let flags = size | private;
    let null = std::ptr::null_mut();
    let (add, eq) = (1, 0);
    // The word is VALUE as long as calls are refused.
    for flag in UNKNOWN_FLAGS {
        let answer = call(first, second, add, 1, eq, 0, flags | flag);
        assert_eq!(answer, Err(Errno::INVAL), "flag {flag:#x}");
    }
    if bits < 64 {
        let wide = all + 1;
        assert_eq!(
            call(first, second, add, wide, eq, 0, flags),
            Err(Errno::INVAL)
        );
        assert_eq!(
            call(first, second, add, 1, eq, wide, flags),
            Err(Errno::INVAL)
        );
    }
    if bits > 8 {
        let misaligned = second.wrapping_byte_add(1);
        assert_eq!(
            call(first, misaligned, add, 1, eq, 0, flags),
            Err(Errno::INVAL)
        );
        assert_eq!(
            call(misaligned, second, 5, 1, eq, 0, flags),
            Err(Errno::INVAL)
        );
    }
    assert_eq!(call(first, null, add, 1, eq, 0, flags), Err(Errno::FAULT));
    assert_eq!(call(first, second, 5, 1, eq, 0, flags), Err(Errno::NOSYS));
    assert_eq!(call(first, second, add, 1, 6, 0, flags), Err(Errno::NOSYS));
    assert_eq!(
        read(),
        VALUE,
        "changed by a call that was refused, {bits} bits"
    );
    // A sign-extended number is as good as an unsigned one.
    assert_eq!(
        call(first, second, add, u64::MAX, eq, u64::MAX, flags),
        Ok(0)
    );
    assert_eq!(read(), VALUE - 1);
    assert_eq!(call(first, second, add, all, eq, 0, flags), Ok(0));
    assert_eq!(read(), VALUE - 2);
    // The shift form, modulo the width.
    let shifted_set = 8;
    assert_eq!(
        call(first, second, shifted_set, bits as u64 + 3, eq, 0, flags),
        Ok(0)
    );
    assert_eq!(read(), 1 << 3);
    assert_eq!(
        call(first, second, shifted_set, bits as u64 - 1, eq, 0, flags),
        Ok(0)
    );
    assert_eq!(read(), 1 << (bits - 1));
}
