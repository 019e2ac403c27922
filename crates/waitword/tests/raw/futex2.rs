//! futex2, at every width: `futex_wait`, `futex_wake`, `futex_requeue`, `futex_waitv`, and our own
//! `futex_wake_op`.

mod lists;
mod single;
mod wake_op;

use waitword::raw::{SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64};
use waitword_testkit::cases::{Calls, VALUE};

const SIZES: &[u32] = &[SIZE_U8, SIZE_U16, SIZE_U32, SIZE_U64];
const OTHER: u64 = VALUE + 1;
const NULL: usize = 0;
/// In the kernel's half of the address space.
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
