//! Who is measured: a [`Variant`], and as part of a case a [`Contender`].

use super::{Context, Failure, Measured};
use std::collections::HashMap;

/// One contender in a case: anything that can be measured in that case's metrics.
pub trait Variant {
    /// As the report calls it.
    fn name(&self) -> String;

    /// Does the work once, checks it, and says what it took.
    ///
    /// # Errors
    /// If the work was not done as it should be, or the user wants to stop.
    fn measure(&mut self, context: &Context) -> Result<Measured, Failure>;
}

/// A [`Variant`] made of a name and a closure.
pub struct Named<F>(pub String, pub F);

impl<F: FnMut(&Context) -> Result<Measured, Failure>> Variant for Named<F> {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn measure(&mut self, context: &Context) -> Result<Measured, Failure> {
        (self.1)(context)
    }
}

/// Nothing that is measured: in each metric the greatest of what some others of the case have reached in the same round.
struct Best(String);

impl Variant for Best {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn measure(&mut self, _: &Context) -> Result<Measured, Failure> {
        Err(Failure::new("made of others' figures, not measured"))
    }
}

/// A variant, and which of the case's variants it is compared with (itself: none).
pub struct Contender {
    /// What is measured.
    pub variant: Box<dyn Variant>,
    /// Index of the variant that its ratio is taken to.
    pub baseline: usize,
    /// Indices of those it is made of, if it is not measured itself.
    pub(super) best_of: Vec<usize>,
}

impl Contender {
    /// Compared with the case's first variant.
    pub fn new(variant: impl Variant + 'static) -> Self {
        Self::against(0, variant)
    }

    /// Compared with the variant of this index.
    pub fn against(baseline: usize, variant: impl Variant + 'static) -> Self {
        Self {
            variant: Box::new(variant),
            baseline,
            best_of: Vec::new(),
        }
    }

    /// Not measured: in each metric the greatest of what those of these indices have reached, round by round. For
    /// metrics of which more is better, and to compare others with. Those are measured, not such a one themselves.
    pub fn best_of(name: impl Into<String>, indices: Vec<usize>) -> Self {
        Self {
            best_of: indices,
            ..Self::new(Best(name.into()))
        }
    }

    /// Made of a name and a closure, compared with the case's first variant.
    pub fn named(
        name: impl Into<String>,
        body: impl FnMut(&Context) -> Result<Measured, Failure> + 'static,
    ) -> Self {
        Self::new(Named(name.into(), body))
    }
}

/// Those of these names that `wanted` says yes to, and whoever one of them is compared with or made of.
pub(super) fn only(contenders: Vec<Contender>, wanted: impl Fn(&str) -> bool) -> Vec<Contender> {
    let mut kept: Vec<bool> = contenders
        .iter()
        .map(|contender| wanted(&contender.variant.name()))
        .collect();
    // A baseline has a baseline, too, and it may stand before or after.
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
    contenders
        .into_iter()
        .enumerate()
        .filter_map(moved)
        .collect()
}

/// Each of the second, made like the first but anew, compared with its twin: what noise alone makes of nothing.
pub(super) fn twins(first: Vec<Contender>, second: Vec<Contender>) -> Vec<Contender> {
    let measured = |contender: &Contender| contender.best_of.is_empty();
    let first: Vec<Contender> = first.into_iter().filter(measured).collect();
    let second: Vec<Contender> = second.into_iter().filter(measured).collect();
    debug_assert_eq!(first.len(), second.len());
    let count = first.len();
    let alone = |(index, contender)| Contender {
        baseline: index,
        ..contender
    };
    let both = first.into_iter().chain(second).enumerate().map(alone);
    both.map(|contender| match contender.baseline.checked_sub(count) {
        None => contender,
        Some(twin) => Contender::against(twin, Again(contender.variant)),
    })
    .collect()
}

/// The second of twins.
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
            Ok(Measured {
                values: Vec::new(),
                operations: 1,
                usage: Usage::default(),
            })
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
        (0..contenders.len())
            .map(|index| (name(index), name(contenders[index].baseline)))
            .collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(one, other): &(&str, &str)| ((*one).to_owned(), (*other).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn those_wanted_stay_with_all_they_are_compared_with() {
        let kept = only(all(), |name| name == "waitword");
        let wanted = [
            ("glibc", "glibc"),
            ("old", "glibc"),
            ("waitword", "nsync"),
            ("nsync", "old"),
        ];
        assert_eq!(shown(&kept), pairs(&wanted));
        let kept = only(all(), |name| name == "the best");
        assert_eq!(kept.len(), 6);
        assert_eq!(kept[5].best_of, [1, 3]);
        assert_eq!(only(all(), |name| name == "std").len(), 2);
        assert!(only(all(), |_| false).is_empty());
    }

    #[test]
    fn twins_are_compared_with_each_other_and_nobody_else() {
        let all = twins(all(), all());
        assert_eq!(all.len(), 10);
        let shown = shown(&all);
        assert_eq!(shown[3], ("waitword".to_owned(), "waitword".to_owned()));
        let again = ("waitword, again".to_owned(), "waitword".to_owned());
        assert_eq!(shown[8], again);
    }
}
