//! Many comparisons at once. Of a thousand that differ in nothing, ten lie outside of intervals of
//! 99 %: who counts wins and losses must expect more of each of them.
//!
//! The procedure is that of Benjamini and Hochberg (1995): of the m chances, sorted, find the
//! greatest k-th that is at most k/m of 1 %. It and all below it count. Of what counts then, 1 % is
//! expected to be noise. (Holm's would bound the chance of *any* error, and with a thousand
//! comparisons would ask for 20 of 21 rounds on one side.)

/// What part of those told is expected to be noise.
pub const FALSE_DISCOVERIES: f64 = 0.01;

/// The greatest chance that counts among these; 0 if none does.
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
        // Alone, or where all say so, 1 % is enough.
        assert_eq!(greatest_that_counts([0.01]), 0.01);
        assert_eq!(greatest_that_counts([0.01; 3]), 0.01);
        // Among noise it is not, and something stronger is.
        let mut chances = vec![0.5; 98];
        chances.push(0.005);
        assert_eq!(greatest_that_counts(chances.iter().copied()), 0.0);
        chances.push(0.0001);
        assert_eq!(greatest_that_counts(chances.iter().copied()), 0.0001);
        // A weak one counts if enough others do.
        assert_eq!(greatest_that_counts([0.0001, 0.0001, 0.007, 0.9]), 0.007);
        assert_eq!(greatest_that_counts([]), 0.0);
    }
}
