//! Axes: their ends, and the positions of their labels.

use crate::number::tick;

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
/// The greatest number of labels that fit on an axis.
const MOST_TICKS: usize = 8;
/// The multiples of powers of ten that have a label: the first entry that gives enough labels.
const MULTIPLES: [&[f64]; 5] = [
    &[1.0],
    &[1.0, 3.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
    &[
        1.0, 1.1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0,
    ],
];

impl Axis {
    /// An axis that covers all of these values that can be drawn; `None` if none can.
    pub(crate) fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Option<Self> {
        let drawn: Vec<f64> = values.filter(|value| scale.can(*value)).collect();
        let least = drawn.iter().copied().reduce(f64::min)?;
        let most = drawn.iter().copied().reduce(f64::max)?;
        Some(match scale {
            Scale::Linear => Self::linear(most),
            Scale::Logarithmic => Self::logarithmic(least, most),
        })
    }

    /// A linear axis from 0 to `most`.
    fn linear(most: f64) -> Self {
        let most = most.max(LEAST);
        let decade = 10f64.powf(most.log10().floor());
        let steps = [0.25, 0.5, 1.0, 2.0, 2.5].map(|step| step * decade);
        let step = steps
            .into_iter()
            .find(|step| most / step <= 4.5)
            .unwrap_or(5.0 * decade);
        let ticks = (0..)
            .map(|n| f64::from(n) * step)
            .take_while(|value| *value <= most * 1.001);
        Self {
            scale: Scale::Linear,
            from: 0.0,
            // Leaves room for the number at the end of the longest bar.
            to: most * 1.28,
            ticks: ticks.map(|value| (value, tick(value))).collect(),
        }
    }

    fn logarithmic(least: f64, most: f64) -> Self {
        let (from, to) = (least.ln(), most.ln());
        let room = ((to - from) * 0.06).max(0.05);
        let (from, to) = (from - room, to + room);
        let lies_in = |value: &f64| (from..=to).contains(&value.ln());
        let decades = (least.log10().floor() as i32 - 1)..=(most.log10().ceil() as i32);
        let ticks_of = |multiples: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|decade| {
                multiples
                    .iter()
                    .map(move |multiple| multiple * 10f64.powi(decade))
            });
            all.filter(lies_in).collect()
        };
        let mut ticks = MULTIPLES
            .map(ticks_of)
            .into_iter()
            .find(|ticks| ticks.len() >= 3)
            .unwrap_or_else(|| vec![least, most]);
        while ticks.len() > MOST_TICKS {
            ticks = ticks.into_iter().step_by(2).collect();
        }
        Self {
            scale: Scale::Logarithmic,
            from,
            to,
            ticks: ticks
                .into_iter()
                .map(|value| (value, tick(value)))
                .collect(),
        }
    }

    /// A logarithmic axis with a label at each of these counts.
    pub(crate) fn of_counts(counts: &[f64]) -> Option<Self> {
        let mut axis = Self::of(Scale::Logarithmic, counts.iter().copied())?;
        axis.ticks = counts.iter().map(|count| (*count, tick(*count))).collect();
        Some(axis)
    }

    /// An axis of the places 1 to `places`, some of which have labels.
    pub(crate) fn of_places(places: usize, most_ticks: usize) -> Self {
        let step = places.div_ceil(most_ticks).max(1);
        let ticks = (1..=places).step_by(step);
        Self {
            scale: Scale::Linear,
            from: 0.5,
            to: places as f64 + 0.5,
            ticks: ticks
                .map(|place| (place as f64, place.to_string()))
                .collect(),
        }
    }

    /// An axis of names, at 0, 1, 2 and so on.
    pub(crate) fn of_names(names: &[&str]) -> Self {
        let ticks = names
            .iter()
            .enumerate()
            .map(|(place, name)| (place as f64, (*name).to_owned()));
        Self {
            scale: Scale::Linear,
            from: -0.25,
            to: names.len() as f64 - 0.75,
            ticks: ticks.collect(),
        }
    }

    /// The position of a value between the ends, from 0 to 1; `None` if it cannot be drawn.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        self.scale.can(value).then(|| {
            let value = match self.scale {
                Scale::Linear => value,
                Scale::Logarithmic => value.ln(),
            };
            (value - self.from) / (self.to - self.from)
        })
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

    fn numbers(axis: &Axis) -> Vec<&str> {
        axis.ticks
            .iter()
            .map(|(_, number)| number.as_str())
            .collect()
    }

    #[test]
    fn a_linear_axis_begins_at_0_and_has_round_numbers() {
        let axis = Axis::of(Scale::Linear, [3.0, 87.0].into_iter()).unwrap();
        assert_eq!(numbers(&axis), ["0", "20", "40", "60", "80"]);
        assert_eq!(axis.place(0.0), Some(0.0));
        assert!(axis.place(87.0).unwrap() < 1.0);
        let nothing = Axis::of(Scale::Linear, [0.0].into_iter()).unwrap();
        assert_eq!(nothing.place(0.0), Some(0.0));
    }

    #[test]
    fn a_logarithmic_axis_has_decades_or_what_lies_between() {
        let axis = |values: [f64; 2]| Axis::of(Scale::Logarithmic, values.into_iter()).unwrap();
        assert_eq!(
            numbers(&axis([0.9, 1.1e6])),
            ["1", "10", "100", "1000", "10000", "100000", "1M"]
        );
        assert_eq!(numbers(&axis([9.0, 60.0])), ["10", "20", "50"]);
        for span in [[1.0, 1.0], [0.97, 1.03], [1e-9, 1e12], [4.0, 4.0001]] {
            let axis = axis(span);
            assert!((2..=MOST_TICKS).contains(&axis.ticks.len()), "{axis:?}");
            for value in span {
                assert!(
                    (0.0..=1.0).contains(&axis.place(value).unwrap()),
                    "{axis:?}"
                );
            }
        }
    }

    #[test]
    fn what_has_no_place_is_left_out() {
        let values = [f64::NAN, f64::INFINITY, 0.0, -1.0];
        assert_eq!(Axis::of(Scale::Logarithmic, values.into_iter()), None);
        let axis = Axis::of(Scale::Logarithmic, values.into_iter().chain([2.0])).unwrap();
        assert!(values.iter().all(|value| axis.place(*value).is_none()));
        assert!(axis.place(2.0).is_some());
    }
}
