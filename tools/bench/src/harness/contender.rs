//! The subjects of a measurement: a [`Variant`], and as part of a case a [`Contender`].

use super::context::Context;
use super::failure::Failure;
use super::metric::Measured;
use std::collections::HashMap;

/// Anything that can be measured in the metrics of a case.
pub trait Variant {
    /// The name in reports.
    fn name(&self) -> String;

    /// Does the work once, checks it, and returns the measured values.
    ///
    /// # Errors
    /// The work was not done correctly, or the user wants to stop.
    fn measure(&mut self, context: &Context) -> Result<Measured, Failure>;
}

/// A [`Variant`] made from a name and a closure.
pub struct Named<F>(pub String, pub F);

impl<F: FnMut(&Context) -> Result<Measured, Failure>> Variant for Named<F> {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn measure(&mut self, context: &Context) -> Result<Measured, Failure> {
        (self.1)(context)
    }
}

/// Not measured itself: in each metric, the greatest value that some other contenders of the case
/// reached in the same round.
struct Best(String);

impl Variant for Best {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn measure(&mut self, _: &Context) -> Result<Measured, Failure> {
        Err(Failure::new("computed from other figures, not measured"))
    }
}

/// A variant, and the index of the variant it is compared with (its own index means none).
pub struct Contender {
    /// The variant.
    pub variant: Box<dyn Variant>,
    /// Index of the baseline for its ratio.
    pub baseline: usize,
    /// Indices of the contenders it is computed from, if it is not measured itself.
    pub(super) best_of: Vec<usize>,
}

impl Contender {
    /// Compared with the case's first variant.
    pub fn new(variant: impl Variant + 'static) -> Self {
        Self::against(0, variant)
    }

    /// Compared with the variant that has this index.
    pub fn against(baseline: usize, variant: impl Variant + 'static) -> Self {
        Self { variant: Box::new(variant), baseline, best_of: Vec::new() }
    }

    /// Not measured: in each metric, the greatest value that these contenders reached, round by
    /// round. It serves as a baseline, for metrics of which more is better. The indices must be
    /// those of measured contenders.
    pub fn best_of(name: impl Into<String>, indices: Vec<usize>) -> Self {
        Self { best_of: indices, ..Self::new(Best(name.into())) }
    }

    /// Made from a name and a closure, compared with the case's first variant.
    pub fn named(
        name: impl Into<String>,
        body: impl FnMut(&Context) -> Result<Measured, Failure> + 'static,
    ) -> Self {
        Self::new(Named(name.into(), body))
    }
}

/// Keeps the contenders whose names `wanted` accepts, and all that they are compared with or
/// computed from.
pub(super) fn only(contenders: Vec<Contender>, wanted: impl Fn(&str) -> bool) -> Vec<Contender> {
    let mut kept: Vec<bool> =
        contenders.iter().map(|contender| wanted(&contender.variant.name())).collect();
    // A baseline has a baseline of its own, which may come earlier or later in the list.
    let mut before = 0;
    while before < kept.iter().filter(|kept| **kept).count() {
        before = kept.iter().filter(|kept| **kept).count();
        for (index, contender) in contenders.iter().enumerate() {
            if kept[index] {
                kept[contender.baseline] = true;
                contender.best_of.iter().for_each(|&one| kept[one] = true);
            }
        }
    }
    let places: HashMap<usize, usize> = (0..kept.len())
        .filter(|&index| kept[index])
        .enumerate()
        .map(|(place, index)| (index, place))
        .collect();
    let moved = |(index, contender): (usize, Contender)| {
        kept[index].then(|| Contender {
            baseline: places[&contender.baseline],
            best_of: contender.best_of.iter().map(|one| places[one]).collect(),
            ..contender
        })
    };
    contenders.into_iter().enumerate().filter_map(moved).collect()
}

/// Compares each contender of `second` with its twin in `first`. The result shows what noise alone
/// does.
pub(super) fn twins(first: Vec<Contender>, second: Vec<Contender>) -> Vec<Contender> {
    let measured = |contender: &Contender| contender.best_of.is_empty();
    let first: Vec<Contender> = first.into_iter().filter(measured).collect();
    let second: Vec<Contender> = second.into_iter().filter(measured).collect();
    debug_assert_eq!(first.len(), second.len());
    let count = first.len();
    let alone = |(index, contender)| Contender { baseline: index, ..contender };
    let both = first.into_iter().chain(second).enumerate().map(alone);
    both.map(|contender| match contender.baseline.checked_sub(count) {
        None => contender,
        Some(twin) => Contender::against(twin, Again(contender.variant)),
    })
    .collect()
}

/// The second of two twins.
struct Again(Box<dyn Variant>);

impl Variant for Again {
    fn name(&self) -> String {
        format!("{}, again", self.0.name())
    }

    fn measure(&mut self, context: &Context) -> Result<Measured, Failure> {
        self.0.measure(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Usage;

    fn contender(name: &str, baseline: usize) -> Contender {
        let body = |_: &Context| {
            Ok(Measured { values: Vec::new(), operations: 1, usage: Usage::default() })
        };
        Contender::against(baseline, Named(name.to_owned(), body))
    }

    fn all() -> Vec<Contender> {
        let mut all = vec![
            contender("glibc", 0),
            contender("std", 0),
            contender("old", 0),
            contender("waitword", 4),
            contender("nsync", 2),
        ];
        all.push(Contender::best_of("the best", vec![1, 3]));
        all
    }

    fn shown(contenders: &[Contender]) -> Vec<(String, String)> {
        let name = |index: usize| contenders[index].variant.name();
        (0..contenders.len()).map(|index| (name(index), name(contenders[index].baseline))).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(one, other): &(&str, &str)| ((*one).to_owned(), (*other).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn wanted_contenders_stay_with_all_they_are_compared_with() {
        let kept = only(all(), |name| name == "waitword");
        let wanted =
            [("glibc", "glibc"), ("old", "glibc"), ("waitword", "nsync"), ("nsync", "old")];
        assert_eq!(shown(&kept), pairs(&wanted));
        let kept = only(all(), |name| name == "the best");
        assert_eq!(kept.len(), 6);
        assert_eq!(kept[5].best_of, [1, 3]);
        assert_eq!(only(all(), |name| name == "std").len(), 2);
        assert!(only(all(), |_| false).is_empty());
    }

    #[test]
    fn twins_are_compared_only_with_each_other() {
        let all = twins(all(), all());
        assert_eq!(all.len(), 10);
        let shown = shown(&all);
        assert_eq!(shown[3], ("waitword".to_owned(), "waitword".to_owned()));
        let again = ("waitword, again".to_owned(), "waitword".to_owned());
        assert_eq!(shown[8], again);
    }
}
