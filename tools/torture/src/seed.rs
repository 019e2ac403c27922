//! Seeds: every random choice derives from the seed of the run, mixed with names and numbers.

/// The finaliser of splitmix64: every bit of the input changes half of the output bits.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Mixes a name into a seed.
pub(crate) fn mix_with(seed: u64, name: &str) -> u64 {
    name.bytes().fold(seed, |mixed, byte| mix(mixed ^ u64::from(byte)))
}
