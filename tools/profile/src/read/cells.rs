//! Cells become waits and stacks.

use super::{Fold, Reading, number};
use waitword_record::format::{Cell, Hold, Turns, Wait, cells_of_stack, stack_frames, stack_head};

const BYTES: usize = size_of::<Cell>();

/// Adds the waits and stacks in these cells. A stack is in one block, or in a ring's rest: what is
/// missing of it at the end is lost.
pub(super) fn add<'a>(
    reading: &mut Reading,
    fold: &mut impl Fold,
    thread: u32,
    mut cells: impl Iterator<Item = &'a [u8]>,
) {
    while let Some(bytes) = cells.next() {
        let first = cell(bytes);
        if let Some(wait) = Wait::of_cell(first) {
            fold.add(thread, &wait);
            continue;
        }
        if let Some(hold) = Hold::of_cell(first) {
            fold.add_hold(thread, &hold);
            continue;
        }
        if let Some(turns) = Turns::of_cell(first) {
            reading.turns(thread, turns);
            continue;
        }
        let Some((stack, frames)) = stack_head(first) else {
            reading.lose(1);
            continue;
        };
        let len = cells_of_stack(frames);
        let mut these = vec![first];
        these.extend(cells.by_ref().take(len - 1).map(cell));
        if these.len() == len {
            reading.stack(stack, stack_frames(&these).collect());
        } else {
            reading.lose(these.len());
        }
    }
}

/// The cells in these bytes.
pub(super) fn of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks_exact(BYTES)
}

fn cell(bytes: &[u8]) -> Cell {
    Cell(core::array::from_fn(|n| number(bytes, 8 * n)))
}
