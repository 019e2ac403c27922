//! How far numbers are apart: mean, median, standard deviation.

use crate::stats::median;

/// Of at least one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) median: f64,
    /// The standard deviation of these numbers themselves, not of a population that they sample.
    pub(super) deviation: f64,
}

impl Spread {
    /// # Panics
    /// If there are no values.
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        Self { mean, median: median(values), deviation: (squares.sum::<f64>() / count).sqrt() }
    }

    /// The deviation in percent of the mean; 0 if all numbers are 0.
    pub(super) fn percent(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { 100.0 * self.deviation / self.mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_alike_do_not_deviate_and_others_by_the_root_of_the_mean_square() {
        let alike = Spread::of(&[3.0, 3.0, 3.0]);
        assert_eq!((alike.mean, alike.median, alike.deviation), (3.0, 3.0, 0.0));
        let apart = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((apart.mean, apart.median, apart.deviation), (5.0, 4.5, 2.0));
        assert_eq!(apart.percent(), 40.0);
        assert_eq!(Spread::of(&[0.0, 0.0]).percent(), 0.0);
    }
}
