//! Calls on one word: `futex_wait` and `futex_wake`.

use super::{KERNELS, NULL, OTHER, SECOND, SIZES, UNKNOWN_FLAGS};
use super::{narrower_than_64, too_wide, wider_than_a_byte};
use libc::{CLOCK_MONOTONIC as MONOTONIC, CLOCK_REALTIME as REALTIME};
use libc::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT};
use waitword_testkit::{
    cases,
    cases::{Calls, Case, PAST, Time, VALUE, check},
    watch,
};

/// A wait with ordinary mask, flags and clock.
fn wait(c: &Calls, word: usize, val: u64, time: Time) -> Result<usize, i32> {
    c.wait(word, val, c.all_bits(), c.flags(), time, MONOTONIC)
}

#[test]
fn waits() {
    let _watchdog = watch();
    check(waits_by_argument(), SIZES);
    check(waits_by_time(), SIZES);
}

fn waits_by_argument() -> Vec<Case> {
    cases! { c:
        "wait, unknown flags" => Err(EINVAL), {
            for flag in UNKNOWN_FLAGS {
                let flags = c.flags() | flag;
                let answer = c.wait(c.word(0), OTHER, 1, flags, Time::None, MONOTONIC);
                assert_eq!(answer, Err(EINVAL), "flag {flag:#x}");
            }
            Err(EINVAL)
        };
        "wait, value too wide".only(narrower_than_64) => Err(EINVAL),
            wait(c, c.word(0), too_wide(c) | OTHER, Time::None);
        "wait, mask too wide".only(narrower_than_64) => Err(EINVAL),
            c.wait(c.word(0), OTHER, too_wide(c) | 1, c.flags(), Time::None, MONOTONIC);
        "wait, mask 0" => Err(EINVAL),
            c.wait(c.word(0), OTHER, 0, c.flags(), Time::None, MONOTONIC);
        "wait, mask 0 before null" => Err(EINVAL),
            c.wait(NULL, OTHER, 0, c.flags(), Time::None, MONOTONIC);
        "wait, misaligned".only(wider_than_a_byte) => Err(EINVAL),
            wait(c, c.word(0) + 1, OTHER, Time::None);
        "wait, misaligned by half".only(wider_than_a_byte) => Err(EINVAL),
            wait(c, c.word(0) + c.bytes() / 2, OTHER, Time::None);
        "wait, null" => Err(EFAULT), wait(c, NULL, 0, Time::None);
        "wait, the kernel's address" => Err(EFAULT), wait(c, KERNELS, 0, Time::None);
        "wait, mismatch" => Err(EAGAIN), wait(c, c.word(0), OTHER, Time::None);
        "wait, highest bit of the value counts" => Err(EAGAIN),
            wait(c, c.word(0), VALUE | 1 << (c.bits() - 1), PAST);
        "wait, the neighbours of the word do not count" => Err(ETIMEDOUT), {
            c.set(c.word(0) + c.bytes(), 1);
            wait(c, c.word(0), VALUE, PAST)
        };
    }
}

fn waits_by_time() -> Vec<Case> {
    cases! { c:
        "wait, 10^9 nanoseconds before mismatch" => Err(EINVAL),
            wait(c, c.word(0), OTHER, Time::At(0, SECOND));
        "wait, negative nanoseconds" => Err(EINVAL), wait(c, c.word(0), VALUE, Time::At(0, -1));
        "wait, negative seconds before null" => Err(EINVAL), wait(c, NULL, VALUE, Time::At(-1, 0));
        "wait, a time in the kernel's half" => Err(EFAULT),
            c.wait(c.word(0), OTHER, 1, c.flags(), Time::Address(KERNELS), MONOTONIC);
        "wait, another clock before a time in the kernel's half" => Err(EINVAL),
            c.wait(c.word(0), OTHER, 1, c.flags(), Time::Address(KERNELS), 99);
        "wait, a time in the first page before mask 0" => Err(EFAULT),
            c.wait(c.word(0), OTHER, 0, c.flags(), Time::Address(8), MONOTONIC);
        "wait, other clocks" => Err(EINVAL), {
            for clock in [-1, 2, libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_BOOTTIME, 99] {
                let answer = c.wait(c.word(0), OTHER, 1, c.flags(), PAST, clock);
                assert_eq!(answer, Err(EINVAL), "clock {clock}");
            }
            Err(EINVAL)
        };
        "wait, another clock, but no time" => Err(EAGAIN),
            c.wait(c.word(0), OTHER, c.all_bits(), c.flags(), Time::None, 99);
        "wait, mismatch before past" => Err(EAGAIN), wait(c, c.word(0), OTHER, PAST);
        "wait, equal and past" => Err(ETIMEDOUT), wait(c, c.word(0), VALUE, PAST);
        "wait, equal and past on the wall clock" => Err(ETIMEDOUT),
            c.wait(c.word(0), VALUE, c.all_bits(), c.flags(), PAST, REALTIME);
        // A shared 64-bit word cannot be waited for with a mask.
        "wait, equal and past with a mask".only(|c| c.private != 0 || c.bits() < 64) =>
            Err(ETIMEDOUT),
            c.wait(c.word(0), VALUE, 2, c.flags(), PAST, MONOTONIC);
        "wait, with a mask".only(|c| c.private == 0 && c.bits() == 64) => Err(ENOSYS),
            c.wait(c.word(0), VALUE, 2, c.flags(), PAST, MONOTONIC);
    }
}

#[test]
fn wakes() {
    let _watchdog = watch();
    check(
        cases! { c:
            "wake, no waiters" => Ok(0), c.wake(c.word(0), c.all_bits(), 1, c.flags());
            "wake 0, no waiters" => Ok(0), c.wake(c.word(0), c.all_bits(), 0, c.flags());
            "wake -1, no waiters" => Ok(0), c.wake(c.word(0), c.all_bits(), -1, c.flags());
            "wake, unknown flags" => Err(EINVAL), {
                for flag in UNKNOWN_FLAGS {
                    let answer = c.wake(c.word(0), 1, 1, c.flags() | flag);
                    assert_eq!(answer, Err(EINVAL), "flag {flag:#x}");
                }
                Err(EINVAL)
            };
            "wake, mask 0" => Err(EINVAL), c.wake(c.word(0), 0, 1, c.flags());
            "wake 0, mask 0" => Err(EINVAL), c.wake(c.word(0), 0, 0, c.flags());
            "wake, mask too wide".only(narrower_than_64) => Err(EINVAL),
                c.wake(c.word(0), too_wide(c) | 1, 1, c.flags());
            "wake, misaligned".only(wider_than_a_byte) => Err(EINVAL),
                c.wake(c.word(0) + 1, 1, 1, c.flags());
            "wake 0, misaligned".only(wider_than_a_byte) => Err(EINVAL),
                c.wake(c.word(0) + 1, 1, 0, c.flags());
            // The address of a private word is only a key.
            "wake, null".only(|c| c.private != 0) => Ok(0), c.wake(NULL, 1, 1, c.flags());
            "wake, null".only(|c| c.private == 0) => Err(EFAULT), c.wake(NULL, 1, 1, c.flags());
            "wake, the kernel's address" => Err(EFAULT), c.wake(KERNELS, 1, 1, c.flags());
        },
        SIZES,
    );
}
