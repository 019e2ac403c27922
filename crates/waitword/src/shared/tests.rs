use super::*;
use crate::futex::{Futex, wait_any};
use crate::sys::futex_raw::pretend::WITHOUT_WAITV;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

fn ptr<A>(word: &A, size: Size) -> WordPtr {
    WordPtr { address: (&raw const *word).cast_mut().cast(), size }
}

#[test]
fn a_lane_is_the_word_s_own_part_of_the_bits_around_it() {
    let around = AtomicU32::new(u32::from_ne_bytes([0x11, 0x22, 0x33, 0x44]));
    let byte = |offset: usize| WordPtr {
        address: (&raw const around).cast_mut().cast::<()>().wrapping_byte_add(offset),
        size: Size::U8,
    };
    for (offset, value) in [0x11, 0x22, 0x33, 0x44].into_iter().enumerate() {
        let lane = Lane::of(byte(offset));
        assert_eq!(lane.around.cast_const(), (&raw const around).cast());
        // SAFETY: the word is on this stack.
        assert_eq!(lane.value(unsafe { lane.load_around() }), value);
    }
    let half = AtomicU16::new(0xabcd);
    let lane = Lane::of(ptr(&half, Size::U16));
    // The aligned 32 bits around a lone 16-bit word on the stack are in the word's page, so mapped.
    // SAFETY: as above.
    assert_eq!(lane.value(unsafe { lane.load_around() }), 0xabcd);
}

#[test]
fn the_halves_are_the_low_one_first_and_add_up() {
    let word = AtomicU64::new(0);
    let [low, high] = halves(ptr(&word, Size::U64), 0x1122_3344_5566_7788);
    assert_eq!((low.val, high.val), (0x5566_7788, 0x1122_3344));
    assert_eq!(low.uaddr.abs_diff(high.uaddr), 4);
}

/// On a kernel before 5.16, the result is ENOSYS, never a wait that could miss its wake.
#[test]
fn waits_that_need_futex_waitv_are_refused_without_it() {
    let (word, narrow) = (AtomicU64::new(0), AtomicU32::new(0));
    WITHOUT_WAITV.store(true, Ordering::Relaxed);
    let answers = [
        Futex::shared(&word).wait(0),
        wait_any(&[Futex::shared(&narrow).expecting(0)], None).map(drop),
        wait_any(&[Futex::private(&word).expecting(0), Futex::shared(&narrow).expecting(0)], None)
            .map(drop),
    ];
    WITHOUT_WAITV.store(false, Ordering::Relaxed);
    assert_eq!(answers, [Err(Error::Unsupported); 3]);
    assert_eq!(crate::table::snapshot(&mut []).locked_buckets, 0);
}

#[test]
fn a_masked_wait_for_a_shared_64_bit_word_is_refused() {
    use crate::{Mask, WaitOptions};
    let word = AtomicU64::new(0);
    let masked = WaitOptions::new().mask(Mask::new(1).unwrap());
    assert_eq!(Futex::shared(&word).wait_with(0, masked), Err(Error::Unsupported));
}
