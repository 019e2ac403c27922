//! Which cells were taken from a ring and will appear in the records file as well.
//!
//! A thread's cells are in its ring first, and later in a block of the records file. A follower
//! takes them from the ring, so as to show them at once, and then must pass over them in the block.
//! A block names the thread and the number of its first cell, but not the ring. Two rings can bear
//! the same thread's number if the kernel has used that number twice, so the first cell is compared
//! too.

use std::collections::HashMap;
use waitword_record::format::Cell;

/// Cells `from..until` of a ring.
#[derive(Debug)]
struct Range {
    ring: usize,
    from: u64,
    until: u64,
    /// The cell at `from`.
    first: Cell,
}

/// All ranges, by the number of the thread.
#[derive(Debug, Default)]
pub(super) struct Taken(HashMap<u32, Vec<Range>>);

impl Taken {
    /// These cells were taken from a ring whose cells before `flushed` were in the records file.
    pub(super) fn add(
        &mut self,
        ring: usize,
        thread: u32,
        from: u64,
        cells: &[Cell],
        flushed: u64,
    ) {
        let Some(&first) = cells.first() else {
            return;
        };
        let until = from.wrapping_add(cells.len() as u64);
        let ranges = self.0.entry(thread).or_default();
        // Not flushed in between, so the two will be in the same block.
        let earlier = ranges
            .iter_mut()
            .find(|range| range.ring == ring && range.until == from && flushed <= range.from);
        match earlier {
            Some(range) => range.until = until,
            None => ranges.push(Range { ring, from, until, first }),
        }
    }

    /// The parts of a block that have not been taken.
    pub(super) fn rest<'a>(&self, thread: u32, first: u64, cells: &'a [Cell]) -> Vec<&'a [Cell]> {
        let mut rest = Vec::new();
        let mut from = 0;
        let end = first.saturating_add(cells.len() as u64);
        let mut ranges: Vec<(usize, usize)> = self
            .0
            .get(&thread)
            .into_iter()
            .flatten()
            .filter(|range| (first..end).contains(&range.from))
            .map(|range| ((range.from - first) as usize, (range.until - first) as usize, range))
            .filter(|(at, _, range)| cells[*at] == range.first)
            .map(|(at, until, _)| (at, until.min(cells.len())))
            .collect();
        ranges.sort_unstable();
        for (at, until) in ranges {
            if at > from {
                rest.push(&cells[from..at]);
            }
            from = from.max(until);
        }
        if from < cells.len() {
            rest.push(&cells[from..]);
        }
        rest
    }

    /// The records file has been read up to and including the cells that each ring had `flushed`.
    pub(super) fn forget(&mut self, flushed: impl Fn(usize) -> u64) {
        self.0.retain(|_, ranges| {
            ranges.retain(|range| range.until > flushed(range.ring));
            !ranges.is_empty()
        });
    }

    /// What was taken from this ring was not what it seemed.
    pub(super) fn forget_ring(&mut self, ring: usize) {
        self.0.retain(|_, ranges| {
            ranges.retain(|range| range.ring != ring);
            !ranges.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(numbers: core::ops::Range<u64>) -> Vec<Cell> {
        numbers.map(|n| Cell([n; 8])).collect()
    }

    fn rest(taken: &Taken, thread: u32, numbers: core::ops::Range<u64>) -> Vec<u64> {
        let block = cells(numbers.clone());
        let rest = taken.rest(thread, numbers.start, &block);
        rest.into_iter().flatten().map(|cell| cell.0[0]).collect()
    }

    #[test]
    fn what_was_taken_is_passed_over_once() {
        let mut taken = Taken::default();
        taken.add(0, 7, 12, &cells(12..15), 10);
        taken.add(0, 7, 15, &cells(15..18), 10);
        assert_eq!(rest(&taken, 7, 10..20), [10, 11, 18, 19]);
        assert_eq!(rest(&taken, 8, 10..12), [10, 11]);
        assert_eq!(rest(&taken, 7, 20..22), [20, 21]);
        taken.forget(|_| 17);
        assert_eq!(rest(&taken, 7, 10..20), [10, 11, 18, 19]);
        taken.forget(|_| 18);
        assert_eq!(rest(&taken, 7, 12..14), [12, 13]);
    }

    #[test]
    fn cells_on_both_sides_of_a_flush_are_in_different_blocks() {
        let mut taken = Taken::default();
        taken.add(0, 7, 0, &cells(0..5), 0);
        taken.add(0, 7, 5, &cells(5..9), 5);
        assert!(rest(&taken, 7, 0..5).is_empty());
        assert_eq!(rest(&taken, 7, 5..11), [9, 10]);
    }

    #[test]
    fn another_ring_with_the_same_thread_is_told_apart() {
        let mut taken = Taken::default();
        taken.add(0, 7, 3, &cells(103..106), 3);
        // The same numbers, other cells.
        assert_eq!(rest(&taken, 7, 0..6), [0, 1, 2, 3, 4, 5]);
        taken.forget_ring(0);
        assert!(taken.0.is_empty());
    }
}
