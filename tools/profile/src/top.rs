//! The heaviest of many keys, in fixed memory.

/// At most `N` keys with their weights. When another one comes, it takes the place of the lightest
/// and adds to its weight ("space saving", Metwally and others, 2005): a key that has more than an
/// `N`th of all weight is always here, and no weight is less than the true one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top<K, const N: usize = 6>(Vec<(K, u64)>);

impl<K, const N: usize> Default for Top<K, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Eq, const N: usize> Top<K, N> {
    /// Adds to the weight of a key.
    pub fn add(&mut self, key: K, weight: u64) {
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| *known == key) {
            *known = known.saturating_add(weight);
        } else if self.0.len() < N {
            self.0.push((key, weight));
        } else if let Some(lightest) = self.0.iter_mut().min_by_key(|(_, weight)| *weight) {
            *lightest = (key, lightest.1.saturating_add(weight));
        }
    }

    /// Adds the weights of another one.
    pub fn merge(&mut self, other: &Self) {
        for (key, weight) in &other.0 {
            self.add(*key, *weight);
        }
    }

    /// The heaviest key, with its weight.
    pub fn first(&self) -> Option<(K, u64)> {
        // Of equal ones the first that came.
        self.0.iter().rev().max_by_key(|(_, weight)| *weight).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_key_stays_whatever_else_comes() {
        let mut top = Top::<u32, 3>::default();
        assert_eq!(top.first(), None);
        for number in 0..1000 {
            top.add(number, 1);
            top.add(7, 2);
        }
        let (key, weight) = top.first().unwrap();
        assert_eq!(key, 7);
        assert!((2001..=3000).contains(&weight), "{weight}");
    }
}
