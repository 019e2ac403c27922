//! Draws cells. A cell depends only on its family, its seed and its number. Neither the
//! surroundings nor the number of other cells drawn changes the load.

use super::cell::{Beside, Cell, CellId, Family, Interlude, Load, Signal};
use super::durations::{Durations, Shape};
use fastrand::Rng;

/// The number of threads ranges from 2 to this.
const MOST_THREADS: f64 = 64.0;
/// Length of a section, in nanoseconds.
const INSIDE: [f64; 2] = [20.0, 100_000.0];
/// Length of the gap between two sections, as a multiple of the section's length.
const GAP: [f64; 2] = [0.1, 20.0];
/// Length of the work on a queue's item, in nanoseconds.
const ITEM: [f64; 2] = [100.0, 20_000.0];
/// Fraction of the cells whose holders have interludes.
const INTERLUDES: f64 = 0.25;

/// The first `count` cells of a seed.
pub fn cells(family: Family, beside: Beside, seed: u64, count: u32) -> Vec<Cell> {
    let id = |number| CellId { family, seed, number, beside };
    (0..count).map(|number| cell(id(number))).collect()
}

/// Draws one cell.
pub fn cell(id: CellId) -> Cell {
    let mut rng = rng_of(id, 0);
    let draw = &mut rng;
    let inside = Durations { mean: between(draw, INSIDE), shape: shape(draw) };
    let mut outside = Durations { mean: inside.mean * between(draw, GAP), shape: shape(draw) };
    let mut threads = between(draw, [2.0, MOST_THREADS]).round() as u32;
    let interlude = interlude(draw);
    let load = match id.family {
        Family::Mutex => Load::Mutex,
        Family::ManyMutexes => Load::ManyMutexes {
            locks: between(draw, [2.0, 10_000.0]).round() as u32,
            skew: *one_of(draw, &[0.0, 0.0, 0.6, 1.0, 1.4]),
            nested: draw.u32(..3) == 0,
        },
        Family::RwLock => {
            Load::RwLock { writes: between(draw, [0.001, 0.5]), dedicated: draw.u32(..4) == 0 }
        }
        Family::Queue => {
            let producers = between(draw, [1.0, 16.0]).round() as u32;
            let consumers = between(draw, [1.0, 16.0]).round() as u32;
            threads = producers + consumers;
            outside.mean = between(draw, ITEM);
            Load::Queue {
                producers,
                consumers,
                capacity: between(draw, [1.0, 1024.0]).round() as u32,
                signal: *one_of(draw, &[Signal::Held, Signal::Unlocked, Signal::Broadcast]),
            }
        }
        Family::Pool => {
            Load::Pool { permits: between(draw, [1.0, f64::from(threads)]).round() as u32 }
        }
        Family::ForkJoin => Load::ForkJoin,
        Family::Burst => Load::Burst {
            sections: between(draw, [1.0, 100.0]).round() as u32,
            idle: between(draw, [50.0, 5000.0]),
        },
    };
    // A queue's sections are short; the work on the items takes the time.
    let inside = match id.family {
        Family::Queue => Durations { mean: inside.mean.min(500.0), ..inside },
        _ => inside,
    };
    Cell { id, threads, inside, outside, interlude, load }
}

/// A cell's random generator: `part` 0 draws the cell itself, other parts serve its threads.
pub(super) fn rng_of(id: CellId, part: u64) -> Rng {
    let mut rng = Rng::with_seed(id.seed);
    for number in [id.family as u64, u64::from(id.number), part] {
        rng = Rng::with_seed(rng.u64(..) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    rng
}

/// Uniform in the logarithm.
fn between(rng: &mut Rng, [least, most]: [f64; 2]) -> f64 {
    least * (most / least).powf(rng.f64())
}

fn one_of<'a, T>(rng: &mut Rng, these: &'a [T]) -> &'a T {
    &these[rng.usize(..these.len())]
}

fn shape(rng: &mut Rng) -> Shape {
    *one_of(rng, &[Shape::Fixed, Shape::Exponential, Shape::Bimodal, Shape::Pareto])
}

fn interlude(rng: &mut Rng) -> Option<(Interlude, f64)> {
    let has_one = rng.f64() < INTERLUDES;
    let which = *one_of(rng, &[Interlude::Yield, Interlude::Sleep, Interlude::Io]);
    let part = between(rng, [0.002, 0.5]);
    has_one.then_some((which, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_depends_neither_on_surroundings_nor_on_other_cells() {
        for family in Family::ALL {
            let quiet = cells(family, Beside::Quiet, 7, 50);
            for (cell, busy) in quiet.iter().zip(cells(family, Beside::BusyAll, 7, 20)) {
                let beside = Beside::Quiet;
                let id = CellId { beside, ..busy.id };
                assert_eq!(*cell, Cell { id, ..busy });
            }
            let other = cells(family, Beside::Quiet, 8, 50);
            let mut pairs = quiet.iter().zip(&other);
            assert!(pairs.all(|(one, other)| one.outside != other.outside));
        }
    }

    #[test]
    fn what_is_drawn_spans_what_it_should() {
        let cells = cells(Family::Mutex, Beside::Quiet, 1, 1000);
        let means = |of: fn(&Cell) -> f64| {
            let values = cells.iter().map(of);
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max))
        };
        let (least, most) = means(|cell| cell.inside.mean);
        assert!((20.0..25.0).contains(&least) && (80_000.0..100_000.0).contains(&most));
        let (least, most) = means(|cell| cell.outside.mean / cell.inside.mean);
        assert!((0.1..0.12).contains(&least) && (18.0..20.0).contains(&most));
        let (least, most) = means(|cell| f64::from(cell.threads));
        assert_eq!((least, most), (2.0, 64.0));
        let interludes = cells.iter().filter(|cell| cell.interlude.is_some()).count();
        assert!((200..300).contains(&interludes), "{interludes}");
    }

    #[test]
    fn a_cell_is_read_as_it_is_written() {
        for family in Family::ALL {
            for beside in Beside::ALL {
                let id = CellId { family, seed: 1001, number: 12, beside };
                assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
        for wrong in ["mutex/7/12", "lock/quiet/7/12", "mutex/loud/7/12", "mutex/quiet/7/x", ""] {
            assert!(wrong.parse::<CellId>().is_err(), "{wrong}");
        }
    }
}
