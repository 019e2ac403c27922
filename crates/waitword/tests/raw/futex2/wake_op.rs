//! `futex_wake_op`, which the kernel does not have. Its answers follow from futex(2).

use super::{SIZES, UNKNOWN_FLAGS};
use waitword::raw::{self, Errno, PRIVATE};
use waitword_testkit::{cases::VALUE, watch};

#[test]
fn wake_ops() {
    let _watchdog = watch();
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
    let [first, second] =
        words.0.each_mut().map(|word| (&raw mut *word).cast::<std::ffi::c_void>());
    let bits = 8 << size;
    let all: u64 = u64::MAX >> (64 - bits);
    let read = || {
        // SAFETY: no other thread changes it between calls; the upper bytes are never written.
        unsafe { second.cast::<u64>().read_volatile() }
    };
    let call = |first, second, op, operand, cmp, comparand, flags| {
        // SAFETY: words of this size, or bad addresses that the library recognises by their value.
        unsafe { raw::futex_wake_op(first, 1, second, 1, op, operand, cmp, comparand, flags) }
    };
    let flags = size | private;
    let null = std::ptr::null_mut();
    let (add, eq) = (1, 0);
    // The word holds VALUE as long as calls are refused.
    for flag in UNKNOWN_FLAGS {
        let answer = call(first, second, add, 1, eq, 0, flags | flag);
        assert_eq!(answer, Err(Errno::INVAL), "flag {flag:#x}");
    }
    if bits < 64 {
        let wide = all + 1;
        assert_eq!(call(first, second, add, wide, eq, 0, flags), Err(Errno::INVAL));
        assert_eq!(call(first, second, add, 1, eq, wide, flags), Err(Errno::INVAL));
    }
    if bits > 8 {
        let misaligned = second.wrapping_byte_add(1);
        assert_eq!(call(first, misaligned, add, 1, eq, 0, flags), Err(Errno::INVAL));
        assert_eq!(call(misaligned, second, 5, 1, eq, 0, flags), Err(Errno::INVAL));
    }
    assert_eq!(call(first, null, add, 1, eq, 0, flags), Err(Errno::FAULT));
    assert_eq!(call(first, second, 5, 1, eq, 0, flags), Err(Errno::NOSYS));
    assert_eq!(call(first, second, add, 1, 6, 0, flags), Err(Errno::NOSYS));
    assert_eq!(read(), VALUE, "changed by a call that was refused, {bits} bits");
    // A sign-extended number is as valid as an unsigned one.
    assert_eq!(call(first, second, add, u64::MAX, eq, u64::MAX, flags), Ok(0));
    assert_eq!(read(), VALUE - 1);
    assert_eq!(call(first, second, add, all, eq, 0, flags), Ok(0));
    assert_eq!(read(), VALUE - 2);
    // The shift form, modulo the width.
    let shifted_set = 8;
    assert_eq!(call(first, second, shifted_set, bits as u64 + 3, eq, 0, flags), Ok(0));
    assert_eq!(read(), 1 << 3);
    assert_eq!(call(first, second, shifted_set, bits as u64 - 1, eq, 0, flags), Ok(0));
    assert_eq!(read(), 1 << (bits - 1));
}
