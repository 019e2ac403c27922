//! How each variant is drawn: the same on the whole page, and never distinguished by colour alone.
//!
//! The colours are those of Okabe and Ito, which colour-blind readers can distinguish. There are
//! more variants than colours, so each variant also has a marker and dashes. Our variants have
//! three colours of their own and thick lines without dashes; other variants have the other five
//! colours. The numbers of colours, markers and dashes have no common factor, so stepping through
//! all three at once gives every combination before one repeats.

use std::collections::HashMap;
use std::fmt::Write;
use waitword_bench::locks::is_ours;

/// The mark at each point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Marker {
    Circle,
    Square,
    Up,
    Diamond,
    Down,
    Cross,
    Plus,
}

const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Up,
    Marker::Diamond,
    Marker::Down,
    Marker::Cross,
    Marker::Plus,
];
/// Indices of the style sheet's colours, `--c0` and so on.
const OURS: [usize; 3] = [0, 1, 2];
const OTHERS: [usize; 5] = [3, 4, 5, 6, 7];
const DASHES: [&str; 4] = ["none", "12 6", "4 6", "16 6 4 6"];

/// How one variant is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The variant's number on the page.
    pub(crate) number: usize,
    /// Whether the variant is waitword's.
    pub(crate) is_ours: bool,
    /// The mark at its points.
    pub(crate) marker: Marker,
    colour: usize,
    dashes: &'static str,
}

/// How every variant of a report is drawn.
pub(crate) struct Looks(HashMap<String, Look>);

impl Looks {
    /// Assigns looks to these names, in this order.
    pub(crate) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut looks = HashMap::new();
        let mut counts = [0, 0];
        for name in names {
            let number = looks.len();
            looks.entry(name.to_owned()).or_insert_with(|| {
                let is_ours = is_ours(name);
                let count = &mut counts[usize::from(is_ours)];
                *count += 1;
                look(number, *count - 1, is_ours)
            });
        }
        Self(looks)
    }

    /// The look of the variant with this name.
    ///
    /// # Panics
    /// If the report has no such variant.
    pub(crate) fn get(&self, name: &str) -> Look {
        self.0[name]
    }

    /// All looks, in the order of the report.
    pub(crate) fn all(&self) -> Vec<Look> {
        let mut all: Vec<_> = self.0.values().copied().collect();
        all.sort_by_key(|look| look.number);
        all
    }

    /// The rules of the style sheet that give the placeholders their colours, widths and dashes.
    pub(crate) fn style_sheet(&self) -> String {
        let mut css = String::new();
        for look in self.all() {
            let [line, mark] = [line_hex(look.number), mark_hex(look.number)];
            let (colour, number) = (look.colour, look.number);
            let width = if look.is_ours { 5 } else { 2 };
            let rules = [
                format!(
                    "[stroke=\"{line}\"]\
                     {{stroke:var(--c{colour});stroke-width:{width};stroke-dasharray:{}}}",
                    look.dashes
                ),
                format!("[stroke=\"{mark}\"]{{stroke:var(--c{colour})}}"),
                format!("[fill=\"{mark}\"]{{fill:var(--c{colour})}}"),
                // While the pointer is on a line's key, other lines fade.
                format!(
                    "figure:has([data-key=\"{number}\"]:hover) svg.plot \
                     :is([stroke^=\"#02\"],[stroke^=\"#03\"],[fill^=\"#03\"])\
                     :not([stroke=\"{line}\"],[stroke=\"{mark}\"],[fill=\"{mark}\"]){{opacity:.1}}"
                ),
            ];
            for rule in rules {
                writeln!(css, "{rule}").expect("a string takes what is written");
            }
        }
        css
    }
}

/// The placeholder of a variant's line.
pub(crate) fn line_placeholder(number: usize) -> (u8, u8, u8) {
    (2, (number >> 8) as u8, number as u8)
}

/// The placeholder of a variant's marks, bars and whiskers.
pub(crate) fn mark_placeholder(number: usize) -> (u8, u8, u8) {
    (3, (number >> 8) as u8, number as u8)
}

fn line_hex(number: usize) -> String {
    hex(line_placeholder(number))
}

fn mark_hex(number: usize) -> String {
    hex(mark_placeholder(number))
}

fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

fn look(number: usize, count: usize, is_ours: bool) -> Look {
    let (colours, dashes) = if is_ours {
        (&OURS[..], DASHES[0])
    } else {
        (&OTHERS[..], DASHES[(count + 1) % DASHES.len()])
    };
    Look {
        number,
        is_ours,
        marker: MARKERS[count % MARKERS.len()],
        colour: colours[count % colours.len()],
        dashes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_variants_look_alike() {
        let distinct = |ours: bool, variants: usize| {
            let looks = (0..variants).map(|count| look(count, count, ours));
            let seen: HashSet<_> = looks.map(|l| (l.colour, l.marker, l.dashes)).collect();
            assert_eq!(seen.len(), variants);
        };
        distinct(true, 21);
        distinct(false, 140);
        let colours = |ours| (0..50).map(move |count| look(count, count, ours).colour);
        assert!(colours(true).all(|colour| !colours(false).any(|other| other == colour)));
    }
}
