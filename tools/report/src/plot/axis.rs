//! Axes: coordinates for `plotters`, with its ticks.

use crate::number::tick;
use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    scale: Scale,
    /// The ends, in the units of the scale.
    from: f64,
    to: f64,
    /// The labels: each a value and its text.
    pub(super) ticks: Vec<(f64, String)>,
}

/// How values map to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Linear, starting at 0.
    Linear,
    /// Equal factors have equal lengths.
    Logarithmic,
}

/// A linear axis extends at least to this value. Smaller values are negligible, and all labels
/// would read 0.
const LEAST: f64 = 0.01;

impl Axis {
    /// An axis that covers all of these values that can be drawn; `None` if none can.
    pub(crate) fn of(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        most_ticks: usize,
    ) -> Option<Self> {
        let drawn: Vec<f64> = values.filter(|value| scale.can(*value)).collect();
        let least = drawn.iter().copied().reduce(f64::min)?;
        let most = drawn.iter().copied().reduce(f64::max)?;
        let (from, to, ticks) = match scale {
            Scale::Linear => {
                let most = most.max(LEAST);
                let ticks = RangedCoordf64::from(0.0..most).key_points(most_ticks);
                // Leaves room for the number at the end of the longest bar.
                (0.0, most * 1.28, ticks)
            }
            Scale::Logarithmic => {
                let (from, to) = (least.ln(), most.ln());
                let room = ((to - from) * 0.06).max(0.05);
                let (from, to) = (from - room, to + room);
                (from, to, logarithmic(from.exp(), to.exp(), most_ticks))
            }
        };
        let ticks = ticks.into_iter().map(|value| (value, tick(value)));
        Some(Self { scale, from, to, ticks: ticks.collect() })
    }

    /// A logarithmic axis with a label at each of these counts.
    pub(crate) fn of_counts(counts: &[f64]) -> Option<Self> {
        let mut axis = Self::of(Scale::Logarithmic, counts.iter().copied(), counts.len())?;
        axis.ticks = counts.iter().map(|count| (*count, tick(*count))).collect();
        Some(axis)
    }

    /// An axis without labels, for so many rows.
    pub(super) fn of_rows(rows: i32) -> Self {
        Self { scale: Scale::Linear, from: 0.0, to: f64::from(rows), ticks: Vec::new() }
    }

    /// An axis of the places 1 to `places`, some of which have labels.
    pub(crate) fn of_places(places: usize, most_ticks: usize) -> Self {
        let step = places.div_ceil(most_ticks).max(1);
        let ticks = (1..=places).step_by(step);
        Self {
            scale: Scale::Linear,
            from: 0.5,
            to: places as f64 + 0.5,
            ticks: ticks.map(|place| (place as f64, place.to_string())).collect(),
        }
    }

    /// An axis of names, at 0, 1, 2 and so on.
    pub(crate) fn of_names(names: &[&str]) -> Self {
        let ticks =
            names.iter().enumerate().map(|(place, name)| (place as f64, (*name).to_owned()));
        Self {
            scale: Scale::Linear,
            from: -0.25,
            to: names.len() as f64 - 0.75,
            ticks: ticks.collect(),
        }
    }

    /// Whether the axis can show this value.
    pub(super) fn can(&self, value: f64) -> bool {
        self.scale.can(value)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = match self.scale {
            Scale::Linear => *value,
            Scale::Logarithmic => value.ln(),
        };
        RangedCoordf64::from(self.from..self.to).map(&place, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        match self.scale {
            Scale::Linear => self.from..self.to,
            Scale::Logarithmic => self.from.exp()..self.to.exp(),
        }
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let found = self.ticks.iter().find(|tick| tick.0 == *value);
        found.map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// The labels of a logarithmic axis: powers of ten; with fewer than two decades, also twice and
/// five times these; with less than one, those of a linear axis.
fn logarithmic(from: f64, to: f64, most_ticks: usize) -> Vec<f64> {
    /// So many that `plotters` gives all multiples of the powers.
    const ALL: usize = 40;
    let power = |value: f64| 10f64.powf(value.log10().floor());
    let multiple = |value: f64| (value / power(value * 1.001)).round() as u32;
    match to / from {
        ..10.0 => RangedCoordf64::from(from..to).key_points(most_ticks),
        ..100.0 => {
            let mut ticks = LogCoord::from((power(from)..to).log_scale()).key_points(ALL);
            ticks.dedup();
            ticks.retain(|value| *value >= from && matches!(multiple(*value), 1 | 2 | 5));
            ticks
        }
        _ => LogCoord::from((from..to).log_scale()).key_points(most_ticks),
    }
}

impl Scale {
    /// Whether the scale can show this value.
    fn can(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 8;

    fn axis(scale: Scale, values: &[f64]) -> Option<Axis> {
        Axis::of(scale, values.iter().copied(), MOST)
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn a_linear_axis_begins_at_0_and_has_round_numbers() {
        let axis = |values| axis(Scale::Linear, values).unwrap();
        assert_eq!(labels(&axis(&[3.0, 87.0])), ["0", "20", "40", "60", "80"]);
        assert_eq!(labels(&axis(&[0.0]))[0], "0");
        assert_eq!(axis(&[87.0]).range().start, 0.0);
    }

    #[test]
    fn a_logarithmic_axis_covers_its_values_and_has_some_labels() {
        let axis = |values: &[f64]| axis(Scale::Logarithmic, values).unwrap();
        assert_eq!(
            labels(&axis(&[0.9, 1.1e6])),
            ["1", "10", "100", "1000", "10000", "100000", "1M"]
        );
        assert_eq!(labels(&axis(&[3.0, 60.0])), ["5", "10", "20", "50"]);
        for span in [[1.0, 1.0], [0.97, 1.03], [1e-9, 1e12], [4.0, 4.0001], [2.0, 20.0]] {
            let axis = axis(&span);
            assert!((2..=MOST).contains(&axis.ticks.len()), "{axis:?}");
            for value in span.iter().chain(axis.ticks.iter().map(|(value, _)| value)) {
                assert!(axis.range().contains(value), "{axis:?}");
            }
        }
    }

    #[test]
    fn a_value_without_a_position_is_left_out() {
        let values = [f64::NAN, f64::INFINITY, 0.0, -1.0];
        assert_eq!(axis(Scale::Logarithmic, &values), None);
        let axis = axis(Scale::Logarithmic, &[&values[..], &[2.0]].concat()).unwrap();
        assert!(values.iter().all(|value| !axis.can(*value)));
        assert!(axis.can(2.0));
    }
}
