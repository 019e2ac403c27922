//! One long run of a cell, with a timeline of which thread held and which waited. This is the tool
//! for understanding why a cell is slow.

use super::cell::Cell;
use super::child::{Figures, Order};
use super::contender::Contender;
use super::rounds::{Method, carry_out};
use super::timeline::{Event, Timeline};
use crate::harness::Failure;

/// What a contender did in a cell.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Its figures.
    pub figures: Figures,
    timelines: Vec<Timeline>,
    nanoseconds_per_tick: f64,
}

/// Runs the cell.
///
/// # Errors
/// The contender misbehaved, or could not be started.
pub fn replay(cell: &Cell, contender: Contender, method: &Method) -> Result<Replayed, Failure> {
    let busy = super::surroundings::Busy::beside(cell.id.beside)?;
    let order =
        Order { cell: *cell, contender, milliseconds: method.milliseconds, is_traced: true };
    let answer = carry_out(&order, method)?;
    drop(busy);
    Ok(Replayed {
        figures: answer.figures,
        timelines: answer.timelines,
        nanoseconds_per_tick: answer.nanoseconds_per_tick,
    })
}

impl Replayed {
    /// Draws the last part of the run: one line per thread, one column per `step` microseconds. `#`
    /// means holding, `.` waiting, a blank working; each column shows what took most of the step.
    pub fn chart(&self, columns: usize, step: f64) -> String {
        let step = step * 1e3 / self.nanoseconds_per_tick;
        let last = self.timelines.iter().filter_map(|line| line.events().last());
        let end = last.map(|(at, _)| at).max().unwrap_or(0) as f64;
        let start = end - step * columns as f64;
        let lines = self.timelines.iter().enumerate().map(|(number, timeline)| {
            format!("{number:3} {}\n", line(timeline, start, step, columns))
        });
        lines.collect()
    }
}

fn line(timeline: &Timeline, start: f64, step: f64, columns: usize) -> String {
    // Ticks of each column spent holding, waiting, working.
    let mut spent = vec![[0.0; 3]; columns];
    let events: Vec<_> = timeline.events().collect();
    for (place, &(at, event)) in events.iter().enumerate() {
        let from = at as f64 - start;
        let until =
            events.get(place + 1).map_or(step * columns as f64, |&(at, _)| at as f64 - start);
        let kind = match event {
            Event::Holds => 0,
            Event::Waits => 1,
            Event::Works => 2,
        };
        let first = (from.max(0.0) / step) as usize;
        for (column, spent) in spent.iter_mut().enumerate().skip(first) {
            let (left, right) = (step * column as f64, step * (column + 1) as f64);
            if left >= until {
                break;
            }
            spent[kind] += (until.min(right) - from.max(left)).max(0.0);
        }
    }
    let most = |spent: &[f64; 3]| match spent {
        [0.0, 0.0, 0.0] => '?',
        [holds, waits, works] if holds >= waits && holds >= works => '#',
        [_, waits, works] if waits >= works => '.',
        _ => ' ',
    };
    spent.iter().map(most).collect()
}
