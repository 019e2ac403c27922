//! A case with many metrics: a row for each variant, a column for each metric, split into as many
//! tables as the width of a terminal requires.
//!
//! Only the first metric is shown with its spread and its ratio to the baseline. The other metrics
//! have only their median; the JSON has everything.

use crate::cells::{ratio, table};
use waitword_bench::locks::marked;
use waitword_bench::report::{CaseReport, VariantReport};
use waitword_report::{figure, range};

/// A case with at least so many metrics is shown in this form.
pub(super) const MANY: usize = 5;
const WIDTH: usize = 120;

/// One column: its header and a text for each variant.
struct Column {
    header: String,
    cells: Vec<String>,
}

impl Column {
    fn new(
        header: impl Into<String>,
        case: &CaseReport,
        text: impl Fn(&VariantReport) -> String,
    ) -> Self {
        Self { header: header.into(), cells: case.variants.iter().map(text).collect() }
    }

    /// The width, including the bar before the column and the blanks around it.
    fn width(&self) -> usize {
        let texts = self.cells.iter().chain([&self.header]);
        3 + texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }
}

/// The case's name, and its tables.
pub(super) fn case(case: &CaseReport) -> String {
    let Some(first) = case.variants.first() else {
        return String::new();
    };
    // A unit shared by all metrics is shown once.
    let unit = first.metrics.first().map(|metric| metric.unit.as_str());
    let common = unit.filter(|unit| first.metrics.iter().all(|metric| metric.unit == *unit));
    let mut text = match common {
        Some(unit) => format!("\n### {} ({unit})\n", case.name),
        None => format!("\n### {}\n", case.name),
    };
    let mut columns = Vec::new();
    for (number, metric) in first.metrics.iter().enumerate() {
        let header = match common {
            Some(_) => metric.name.clone(),
            None => format!("{} {}", metric.name, metric.unit),
        };
        columns.push(Column::new(header.trim(), case, |variant| {
            figure(variant.metrics[number].summary.median)
        }));
        if number == 0 {
            columns
                .push(Column::new("min–max", case, |variant| range(variant.metrics[0].summary)));
            for (part, header) in ["ratio", "interval", "min–max"].into_iter().enumerate() {
                columns.push(Column::new(header, case, |variant| {
                    let texts = variant.metrics[0].ratio.as_ref().map(ratio);
                    texts.map_or_else(String::new, |texts| texts[part].clone())
                }));
            }
        }
    }
    let names = Column::new("variant", case, |variant| marked(&variant.name));
    for block in blocks(columns, WIDTH - 1 - names.width()) {
        let all = || [&names].into_iter().chain(&block);
        let header: Vec<&str> = all().map(|column| column.header.as_str()).collect();
        let mut table = table(&header, 1, block.len());
        for row in 0..case.variants.len() {
            table.add_row(all().map(|column| column.cells[row].as_str()));
        }
        text.push('\n');
        text += &table.to_string();
        text.push('\n');
    }
    text
}

/// Splits the columns into blocks of at most `width`, each with at least one column.
fn blocks(columns: Vec<Column>, width: usize) -> Vec<Vec<Column>> {
    let mut blocks: Vec<Vec<Column>> = Vec::new();
    let mut left = 0;
    for column in columns {
        match blocks.last_mut() {
            Some(block) if column.width() <= left => {
                left -= column.width();
                block.push(column);
            }
            _ => {
                left = width.saturating_sub(column.width());
                blocks.push(vec![column]);
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitword_bench::harness::Better;
    use waitword_bench::report::MetricReport;
    use waitword_bench::stats::{Ratio, Summary};
    use waitword_bench::usage::Usage;

    fn a_case(units: &[&str]) -> CaseReport {
        let metric = |(number, unit): (usize, &&str)| {
            let summary = Summary { median: 12345.0 + number as f64, min: 1.0, max: 2e7 };
            MetricReport {
                name: format!("metric number {number}"),
                unit: (*unit).to_owned(),
                values: Vec::new(),
                summary,
                better: Better::Less,
                ratio: Ratio::of(&[3.0; 7], &[2.0; 7]),
            }
        };
        let variant = |name: &str| VariantReport {
            name: name.to_owned(),
            baseline: None,
            cpu: None,
            metrics: units.iter().enumerate().map(metric).collect(),
            operations: 0,
            usage: Usage::default(),
        };
        CaseReport {
            name: "a case".to_owned(),
            seconds: 0.0,
            rounds: 1,
            repeated: 0,
            disturbed: 0,
            variants: ["short", "with a longer name"].map(variant).into(),
        }
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_and_nothing_is_left_out() {
        let text = case(&a_case(&["ns"; 14]));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        for number in 0..14 {
            assert!(text.contains(&format!("metric number {number} ")), "{text}");
            assert!(text.contains(&(12345 + number).to_string()), "{text}");
        }
        assert!(text.matches("with a longer name").count() > 1, "{text}");
    }

    #[test]
    fn a_unit_is_said_once_if_it_is_the_only_one() {
        let same = case(&a_case(&["ns"; 6]));
        assert_eq!(same.matches("ns").count(), 1, "{same}");
        let other = case(&a_case(&["ns", "ns", "/op", "ns", "ns"]));
        assert!(other.contains("metric number 2 /op"), "{other}");
        assert!(other.contains("metric number 1 ns"), "{other}");
    }
}
