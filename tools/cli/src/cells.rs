//! What the tables have in common: how they look, and the cells of a ratio.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use waitword_bench::stats::{Ratio, Verdict as Told};
use waitword_report::{figure, interval, range};

/// A ratio with its verdict, its interval, and the range of the rounds. A question mark means too
/// few rounds for a verdict.
pub(crate) fn ratio(ratio: &Ratio) -> [String; 3] {
    let median = figure(ratio.summary.median);
    let told = match ratio.verdict {
        Told::Same => median + " same",
        Told::Undecided => median + " undecided",
        Told::Less | Told::More => median,
        Told::TooFewRounds => median + "?",
    };
    [told, interval(ratio.interval), range(ratio.summary)]
}

/// An empty table whose columns from `first_number` on are `numbers` columns of numbers.
pub(crate) fn table(header: &[&str], first_number: usize, numbers: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.to_vec());
    for column in first_number..first_number + numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_that_may_be_1_is_same_and_one_of_few_rounds_is_in_question() {
        let of = |values: &[f64]| ratio(&Ratio::of(values, &vec![1.0; values.len()]).unwrap());
        let values = [0.9, 0.95, 0.96, 0.97, 0.98, 0.99, 1.01];
        assert_eq!(of(&values), ["0.970 undecided", "0.900–1.01", "0.900–1.01"]);
        assert_eq!(of(&[0.99; 7])[0], "0.990 same");
        assert_eq!(of(&values[..6]), ["0.965", "0.900–0.990", "0.900–0.990"]);
        assert_eq!(of(&values[..3]), ["0.950?", "", "0.900–0.960"]);
    }
}
