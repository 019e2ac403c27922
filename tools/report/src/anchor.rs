//! Names for the targets of links.

use std::collections::HashSet;

/// The anchors used so far on the page. All are different.
#[derive(Default)]
pub(crate) struct Anchors(HashSet<String>);

impl Anchors {
    /// A new anchor for this name: its letters and digits, with a number if that anchor is taken.
    pub(crate) fn of(&mut self, name: &str) -> String {
        let mut words = String::new();
        for letter in name.chars().flat_map(char::to_lowercase) {
            if letter.is_ascii_alphanumeric() {
                words.push(letter);
            } else if !words.ends_with('-') && !words.is_empty() {
                words.push('-');
            }
        }
        let words = words.trim_end_matches('-');
        let mut anchor = words.to_owned();
        let mut number = 1;
        while anchor.is_empty() || !self.0.insert(anchor.clone()) {
            number += 1;
            anchor = format!("{words}-{number}");
        }
        anchor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_has_letters_and_digits_and_is_the_only_one_of_its_name() {
        let mut anchors = Anchors::default();
        assert_eq!(anchors.of("mutex: t = 2, L = 5"), "mutex-t-2-l-5");
        assert_eq!(anchors.of("mutex, t = 2; L = 5"), "mutex-t-2-l-5-2");
        assert_ne!(anchors.of("<&>"), anchors.of("µ"));
    }
}
