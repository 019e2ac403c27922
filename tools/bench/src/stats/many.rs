//! Many comparisons at once. Of a thousand comparisons without any difference, ten lie outside
//! their 99 % intervals. If wins and losses are counted, each of them must therefore be more
//! significant.
//!
//! The procedure is that of Benjamini and Hochberg (1995). Sort the m probabilities and find the
//! greatest k-th one that is at most k/m of 1 %. It and all smaller ones count. Of these, 1 % are
//! expected to be noise. (Holm's procedure would bound the probability of *any* error, and with a
//! thousand comparisons would require 20 of 21 rounds on one side.)

/// The fraction of the reported differences that is expected to be noise.
pub const FALSE_DISCOVERIES: f64 = 0.01;

/// The greatest of these probabilities that counts; 0 if none does.
pub fn greatest_that_counts(chances: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = chances.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let all = sorted.len() as f64;
    let places = sorted.iter().enumerate().rev();
    let counts = |(place, chance): (usize, &f64)| {
        (*chance <= (place + 1) as f64 / all * FALSE_DISCOVERIES).then_some(*chance)
    };
    places.into_iter().find_map(counts).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_expected_of_each_among_many() {
        // Alone, or if all agree, 1 % is enough.
        assert_eq!(greatest_that_counts([0.01]), 0.01);
        assert_eq!(greatest_that_counts([0.01; 3]), 0.01);
        // Among noise, 1 % is not enough, but a stronger difference is.
        let mut chances = vec![0.5; 98];
        chances.push(0.005);
        assert_eq!(greatest_that_counts(chances.iter().copied()), 0.0);
        chances.push(0.0001);
        assert_eq!(greatest_that_counts(chances.iter().copied()), 0.0001);
        // A weak difference counts if enough other differences do.
        assert_eq!(greatest_that_counts([0.0001, 0.0001, 0.007, 0.9]), 0.007);
        assert_eq!(greatest_that_counts([]), 0.0);
    }
}
