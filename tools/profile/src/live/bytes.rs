//! Numbers and cells in the bytes of a recording.

use waitword_record::format::Cell;

/// The number at this offset; 0 beyond the end.
pub(super) fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// The same, of half the size.
pub(super) fn half(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// The cell that begins here.
pub(super) fn cell(bytes: &[u8]) -> Cell {
    Cell(core::array::from_fn(|n| number(bytes, 8 * n)))
}
