//! Numbers with three significant digits, as in the terminal's tables.

use waitword_bench::harness::Better;
use waitword_bench::stats::{Interval, Ratio, Summary, Verdict, coverage};

/// A number with three significant digits, and an `M` for millions. NaN and infinities are a dash.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    match size {
        // A whole number.
        0.0..1e6 if value.fract() == 0.0 => format!("{value:.0}"),
        1e6.. => format!("{}M", figure(value / 1e6)),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ if size < 5e-5 => "0".to_owned(),
        0.1.. => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// The same for an axis, without trailing zeros.
pub(crate) fn tick(value: f64) -> String {
    let text = figure(value);
    let (digits, millions) = text.strip_suffix('M').map_or((&text[..], ""), |digits| (digits, "M"));
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    format!("{digits}{millions}")
}

/// The least and the greatest value.
pub fn range(summary: Summary) -> String {
    format!("{}–{}", figure(summary.min), figure(summary.max))
}

/// The two ends of an interval; empty if there is none.
pub fn interval(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |of| format!("{}–{}", figure(of.low), figure(of.high)))
}

/// How reliable an interval over so many rounds is.
pub fn how_sure(rounds: usize) -> String {
    match coverage(rounds) {
        None => format!("{rounds} rounds are too few for an interval and a verdict."),
        Some(part) => format!(
            "An interval of {rounds} rounds holds the true median in {:.1} % of runs.",
            100.0 * part
        ),
    }
}

/// The ratio and its verdict.
pub fn ratio_told(ratio: &Ratio, better: Better) -> String {
    format!("{} {}", figure(ratio.summary.median), told(ratio, better))
}

/// The verdict of a ratio on its variant.
pub fn told(ratio: &Ratio, better: Better) -> &'static str {
    match (ratio.verdict, better) {
        (Verdict::TooFewRounds, _) => "too few rounds",
        (Verdict::Same, _) => "same",
        (Verdict::Undecided, _) => "undecided",
        (Verdict::Less, Better::Less) | (Verdict::More, Better::More) => "better",
        (Verdict::More, Better::Less) | (Verdict::Less, Better::More) => "worse",
        (Verdict::Less, Better::Neither) => "less",
        (Verdict::More, Better::Neither) => "more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.0, 0.01234, 0.5, 2.71, 27.12, 271.2, 27123.9, 2.71e7];
        let shown = ["0", "0.0123", "0.500", "2.71", "27.1", "271", "27124", "27.1M"];
        assert_eq!(texts.map(figure), shown);
        for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(figure(none), "–");
        }
    }

    #[test]
    fn how_sure_an_interval_is_depends_on_the_rounds() {
        assert!(how_sure(7).contains("98.4 %") && how_sure(21).contains("99.3 %"));
        assert!(how_sure(3).contains("too few"));
    }

    #[test]
    fn an_axis_has_no_more_digits_than_it_needs() {
        let texts = [0.25, 0.5, 1.5e6, 2e6, 100.0, 0.0].map(tick);
        assert_eq!(texts, ["0.25", "0.5", "1.5M", "2M", "100", "0"]);
    }

    #[test]
    fn a_ratio_is_told_by_what_is_better() {
        let half = Ratio::of(&[0.5; 7], &[1.0; 7]).unwrap();
        assert_eq!(told(&half, Better::Less), "better");
        assert_eq!(told(&half, Better::More), "worse");
        assert_eq!(told(&half, Better::Neither), "less");
        let same = Ratio::of(&[1.0; 7], &[1.0; 7]).unwrap();
        assert_eq!(told(&same, Better::More), "same");
        let open = Ratio::of(&[0.9, 1.2, 1.3, 1.3, 1.3, 1.3, 1.3], &[1.0; 7]).unwrap();
        assert_eq!(ratio_told(&open, Better::Less), "1.30 undecided");
        let few = Ratio::of(&[0.5; 3], &[1.0; 3]).unwrap();
        assert_eq!(told(&few, Better::Less), "too few rounds");
    }
}
