//! Calls on lists of words: `futex_requeue` and `futex_waitv`.

use super::{KERNELS, NULL, OTHER, SECOND, SIZES, UNKNOWN_FLAGS};
use super::{narrower_than_64, too_wide, wider_than_a_byte};
use libc::{CLOCK_MONOTONIC as MONOTONIC, CLOCK_REALTIME as REALTIME};
use libc::{EAGAIN, EFAULT, EINVAL, ETIMEDOUT};
use syscalls::Sysno;
use waitword::raw::{PRIVATE, Waitv};
use waitword_testkit::{
    cases,
    cases::{Calls, Case, PAST, Time, VALUE, check},
    kernel_has, watch,
};

#[test]
fn requeues() {
    let _watchdog = watch();
    check(requeue_cases(), SIZES);
}

fn pair(c: &Calls) -> [Waitv; 2] {
    [c.entry(c.word(0), VALUE), c.entry(c.word(1), 0)]
}

fn requeue_cases() -> Vec<Case> {
    cases! { c:
        "requeue, no waiters" => Ok(0), c.requeue(&pair(c), 0, 1, 1);
        "requeue onto itself, no waiters" => Ok(0),
            c.requeue(&[c.entry(c.word(0), VALUE); 2], 0, 1, 1);
        "requeue, flags" => Err(EINVAL), c.requeue(&pair(c), 1, 1, 1);
        "requeue, no list" => Err(EINVAL), c.requeue(&[], 0, 1, 1);
        "requeue, a list in the kernel's half" => Err(EFAULT), c.requeue_at(KERNELS, 0, 1, 1);
        "requeue, mismatch" => Err(EAGAIN),
            c.requeue(&[c.entry(c.word(0), OTHER), c.entry(c.word(1), 0)], 0, 1, 1);
        "requeue, wake -1 before mismatch" => Err(EINVAL),
            c.requeue(&[c.entry(c.word(0), OTHER), c.entry(c.word(1), 0)], 0, -1, 1);
        "requeue, move -1" => Err(EINVAL), c.requeue(&pair(c), 0, 1, -1);
        "requeue, reserved field of the first" => Err(EINVAL), {
            let [from, to] = pair(c);
            c.requeue(&[Waitv { reserved: 1, ..from }, to], 0, 1, 1)
        };
        "requeue, reserved field of the second" => Err(EINVAL), {
            let [from, to] = pair(c);
            c.requeue(&[from, Waitv { reserved: 1, ..to }], 0, 1, 1)
        };
        "requeue, unknown flags of an entry" => Err(EINVAL), {
            let [from, to] = pair(c);
            for flag in UNKNOWN_FLAGS {
                let to = Waitv { flags: to.flags | flag, ..to };
                assert_eq!(c.requeue(&[from, to], 0, 1, 1), Err(EINVAL), "flag {flag:#x}");
            }
            Err(EINVAL)
        };
        "requeue, value too wide".only(narrower_than_64) => Err(EINVAL),
            c.requeue(&[c.entry(c.word(0), too_wide(c) | VALUE), pair(c)[1]], 0, 1, 1);
        "requeue, the second's value too wide".only(narrower_than_64) => Err(EINVAL),
            c.requeue(&[pair(c)[0], c.entry(c.word(1), too_wide(c))], 0, 1, 1);
        "requeue, misaligned to before mismatch".only(wider_than_a_byte) => Err(EINVAL),
            c.requeue(&[c.entry(c.word(0), OTHER), c.entry(c.word(1) + 1, 0)], 0, 1, 1);
        "requeue, null from" => Err(EFAULT),
            c.requeue(&[c.entry(NULL, VALUE), pair(c)[1]], 0, 1, 1);
        "requeue, from private to shared and back" => Err(EINVAL), {
            let [from, to] = pair(c);
            c.requeue(&[from, Waitv { flags: to.flags ^ PRIVATE, ..to }], 0, 1, 1)
        };
    }
}

#[test]
fn waits_for_many() {
    let _watchdog = watch();
    check(waitv_by_argument(), SIZES);
    check(waitv_by_entry(), SIZES);
}

/// A wait for many words with ordinary count, flags and clock.
fn waitv(c: &Calls, list: &[Waitv], time: Time) -> Result<usize, i32> {
    c.waitv(list, list.len() as u32, 0, time, MONOTONIC)
}

fn good(c: &Calls, count: usize) -> Vec<Waitv> {
    vec![c.entry(c.word(0), VALUE); count]
}

fn waitv_by_argument() -> Vec<Case> {
    cases! { c:
        "waitv, equal and past" => Err(ETIMEDOUT), waitv(c, &good(c, 2), PAST);
        "waitv, on the wall clock" => Err(ETIMEDOUT), c.waitv(&good(c, 1), 1, 0, PAST, REALTIME);
        // A shared 64-bit word takes two of the kernel's entries.
        "waitv, as many as can be".only(|c| c.private != 0 || c.bits() < 64) => Err(ETIMEDOUT),
            waitv(c, &good(c, 128), PAST);
        "waitv, as many as can be".only(|c| c.private == 0 && c.bits() == 64) => Err(ETIMEDOUT),
            waitv(c, &good(c, 64), PAST);
        "waitv, one more than can be".only(|c| c.private == 0 && c.bits() == 64) => Err(EINVAL),
            waitv(c, &good(c, 65), PAST);
        "waitv, no words" => Err(EINVAL), c.waitv(&good(c, 1), 0, 0, PAST, MONOTONIC);
        "waitv, 129 words" => Err(EINVAL), waitv(c, &good(c, 129), PAST);
        "waitv, all the words there are" => Err(EINVAL),
            c.waitv(&good(c, 1), u32::MAX, 0, PAST, MONOTONIC);
        "waitv, flags" => Err(EINVAL), c.waitv(&good(c, 1), 1, 1, PAST, MONOTONIC);
        "waitv, no list" => Err(EINVAL), c.waitv(&[], 1, 0, PAST, MONOTONIC);
        "waitv, a list in the first page" => Err(EFAULT), c.waitv_at(8, 1, 0, PAST, MONOTONIC);
        "waitv, a list in the kernel's half" => Err(EFAULT),
            c.waitv_at(KERNELS, 1, 0, PAST, MONOTONIC);
        "waitv, bad time before the list" => Err(EINVAL),
            c.waitv_at(KERNELS, 1, 0, Time::At(-1, 0), MONOTONIC);
        "waitv, another clock" => Err(EINVAL), c.waitv(&good(c, 1), 1, 0, PAST, 99);
        "waitv, another clock, but no time" => Err(EAGAIN),
            c.waitv(&[c.entry(c.word(0), OTHER)], 1, 0, Time::None, 99);
        "waitv, bad time before mismatch" => Err(EINVAL),
            waitv(c, &[c.entry(c.word(0), OTHER)], Time::At(0, SECOND));
    }
}

/// Before Linux 6.7, which added the other calls, the kernel ignores the upper half.
fn is_checked_for_width(c: &Calls) -> bool {
    narrower_than_64(c) && (!c.are_the_kernel_s() || kernel_has(Sysno::futex_wait))
}

fn waitv_by_entry() -> Vec<Case> {
    cases! { c:
        "waitv, the last differs" => Err(EAGAIN),
            waitv(c, &[c.entry(c.word(0), VALUE), c.entry(c.word(1), OTHER)], PAST);
        "waitv, reserved field" => Err(EINVAL),
            waitv(c, &[Waitv { reserved: 1, ..c.entry(c.word(0), OTHER) }], PAST);
        "waitv, unknown flags" => Err(EINVAL), {
            for flag in UNKNOWN_FLAGS {
                let entry = c.entry(c.word(0), OTHER);
                let entry = Waitv { flags: entry.flags | flag, ..entry };
                assert_eq!(waitv(c, &[entry], PAST), Err(EINVAL), "flag {flag:#x}");
            }
            Err(EINVAL)
        };
        "waitv, value too wide".only(is_checked_for_width) => Err(EINVAL),
            waitv(c, &[c.entry(c.word(0), too_wide(c) | VALUE)], PAST);
        "waitv, misaligned before the mismatch of another".only(wider_than_a_byte) => Err(EINVAL),
            waitv(c, &[c.entry(c.word(0), OTHER), c.entry(c.word(1) + 1, VALUE)], PAST);
        "waitv, null" => Err(EFAULT), waitv(c, &[c.entry(NULL, 0)], PAST);
        "waitv, a bad entry before the null of another" => Err(EINVAL), {
            let bad = Waitv { reserved: 1, ..c.entry(c.word(0), VALUE) };
            waitv(c, &[c.entry(NULL, 0), bad], PAST)
        };
        // The private null is found only when it is read, in the order of the list.
        "waitv, null after a mismatch".only(|c| c.private != 0) => Err(EAGAIN),
            waitv(c, &[c.entry(c.word(0), OTHER), c.entry(NULL, 0)], PAST);
        "waitv, null after a mismatch".only(|c| c.private == 0) => Err(EFAULT),
            waitv(c, &[c.entry(c.word(0), OTHER), c.entry(NULL, 0)], PAST);
        "waitv, null before a mismatch" => Err(EFAULT),
            waitv(c, &[c.entry(NULL, 0), c.entry(c.word(0), OTHER)], PAST);
        // The kernel knows 32 bits only.
        "waitv, without a size flag a byte".kernel_says(Err(EINVAL)).only(|c| c.private != 0) =>
            Err(ETIMEDOUT),
            waitv(c, &[Waitv { flags: c.private, ..c.entry(c.word(0), VALUE) }], PAST);
    }
}
