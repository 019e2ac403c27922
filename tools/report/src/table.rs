//! Tables: numbers right-aligned, names left-aligned. On the page, each is in a box of its own that
//! scrolls sideways.

use crate::number::{figure, interval, range, told};
use maud::{Markup, html};
use waitword_bench::harness::Better;
use waitword_bench::locks::{is_ours, marked, remark, remarks};
use waitword_bench::report::MetricReport;
use waitword_bench::stats::{Ratio, Summary};

/// The contents of one cell.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// Nothing.
    Empty,
    /// A text.
    Text(String),
    /// A variant's name.
    Variant(String),
    /// A variant and its figure.
    Ranked(String, String),
    /// A number. Three digits are shown; the page's source has all of them.
    Number(f64),
    /// A text that consists of numbers.
    Numbers(String),
    /// The verdict of a ratio.
    Told(&'static str),
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    fn markdown(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Variant(name) if is_ours(name) => format!("**{name}**"),
            // In Markdown, a star begins emphasis.
            Self::Variant(name) => marked(name).replace('*', "\\*"),
            Self::Ranked(name, figure) if is_ours(name) => format!("**{name}** {figure}"),
            Self::Ranked(name, figure) => {
                format!("{} {figure}", marked(name).replace('*', "\\*"))
            }
            Self::Text(text) | Self::Numbers(text) => text.clone(),
            Self::Number(value) => figure(*value),
            Self::Told(told) => format!("*{told}*"),
        }
    }

    fn markup(&self) -> Markup {
        html! {
            @match self {
                Self::Empty => td {},
                Self::Text(text) => td { (text) },
                Self::Variant(name) => th scope="row" class=[is_ours(name).then_some("ours")]
                    title=[remark(name)] { (marked(name)) },
                Self::Ranked(name, figure) => td class=[is_ours(name).then_some("ours")]
                    title=[remark(name)] { (marked(name)) " " span.s { (figure) } },
                Self::Number(value) => td.n data-value=(value) { (figure(*value)) },
                Self::Numbers(text) => td.n.s { (text) },
                Self::Told(told) => td class=(format!("told {}", told.replace(' ', "-"))) {
                    (told)
                },
            }
        }
    }
}

/// A heading over one or more columns.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    text: String,
    columns: usize,
}

impl Head {
    /// A heading over so many columns.
    pub(crate) fn over(columns: usize, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { text, columns }
    }
}

/// Rows of headings, and rows of cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) heads: Vec<Vec<Head>>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table with one row of headings.
    pub(crate) fn new(head: &[&str]) -> Self {
        let head = head.iter().map(|text| Head::over(1, *text)).collect();
        Self { heads: vec![head], rows: Vec::new() }
    }

    fn head(&self, head: &[Head]) -> Markup {
        let firsts = head.iter().scan(0, |next, over| {
            let first = *next;
            *next += over.columns;
            Some(first)
        });
        html! {
            @for (over, first) in head.iter().zip(firsts) {
                @if over.columns > 1 {
                    th scope="col" colspan=(over.columns) { span { (over.text) } }
                } @else {
                    th scope="col" class=[self.is_of_numbers(first).then_some("n")] { (over.text) }
                }
            }
        }
    }

    fn is_of_numbers(&self, column: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.into_iter().any(|cell| matches!(cell, Cell::Number(_) | Cell::Numbers(_)))
    }

    /// The table as Markdown, which allows only one row of headings. A heading over several columns
    /// is repeated in front of each of their headings.
    pub(crate) fn markdown(&self) -> String {
        let width = self.heads.iter().map(|heads| heads.iter().map(|head| head.columns).sum());
        let mut heads = vec![String::new(); width.max().unwrap_or(0)];
        for row in &self.heads {
            let texts = row.iter().flat_map(|head| vec![&head.text; head.columns]);
            for (head, text) in heads.iter_mut().zip(texts) {
                let between = if head.is_empty() || text.is_empty() { "" } else { ": " };
                *head += &format!("{between}{text}");
            }
        }
        let line = |cells: &mut dyn Iterator<Item = String>| -> String {
            cells
                .map(|cell| format!("| {} ", cell.replace('|', "\\|").replace('<', "&lt;")))
                .collect::<String>()
                + "|\n"
        };
        let numbers = |column| {
            if self.is_of_numbers(column) { "---:" } else { "---" }
        };
        let mut text = line(&mut heads.iter().cloned());
        text += &line(&mut (0..heads.len()).map(|column| numbers(column).to_owned()));
        for row in &self.rows {
            text += &line(&mut row.iter().map(Cell::markdown));
        }
        for remark in self.remarks() {
            text += &format!("\n{}\n", remark.replacen('*', "\\*", 1));
        }
        text
    }

    /// Remarks on the table's peers that differ from what their users get.
    fn remarks(&self) -> Vec<String> {
        let heads = self.heads.iter().flatten().map(|head| head.text.trim_end_matches('*'));
        let cells = self.rows.iter().flatten().filter_map(|cell| match cell {
            Cell::Variant(name) | Cell::Ranked(name, _) => Some(name.as_str()),
            _ => None,
        });
        remarks(heads.chain(cells))
    }

    pub(crate) fn markup(&self) -> Markup {
        html! {
            @if !self.rows.is_empty() {
                div.wide tabindex="0" {
                    table {
                        thead { @for head in &self.heads { tr { (self.head(head)) } } }
                        tbody { @for row in &self.rows {
                            tr { @for cell in row { (cell.markup()) } }
                        } }
                    }
                }
                @for remark in self.remarks() { p.s { (remark) } }
            }
        }
    }
}

/// The headings of [`figures`].
pub(crate) const FIGURES: [&str; 6] = ["median", "min–max", "ratio", INTERVAL, "min–max", ""];

/// The heading of the interval that contains the median with some 99 % certainty.
pub(crate) const INTERVAL: &str = "interval";

/// All figures of a metric: its median and range; its ratio with interval, range and verdict.
pub(crate) fn figures(metric: &MetricReport) -> Vec<Cell> {
    let mut cells = median_and_range(metric.summary).to_vec();
    cells.extend(ratio(metric.ratio.as_ref(), metric.better));
    cells
}

/// The median and the range.
pub(crate) fn median_and_range(summary: Summary) -> [Cell; 2] {
    [Cell::Number(summary.median), Cell::Numbers(range(summary))]
}

/// The median, interval, range and verdict of a ratio.
pub(crate) fn ratio(ratio: Option<&Ratio>, better: Better) -> [Cell; 4] {
    let Some(ratio) = ratio else {
        return [const { Cell::Empty }; 4];
    };
    [
        Cell::Number(ratio.summary.median),
        Cell::Numbers(interval(ratio.interval)),
        Cell::Numbers(range(ratio.summary)),
        Cell::Told(told(ratio, better)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_has_one_row_of_headings() {
        let mut table = Table::new(&["a|b", "c", "d"]);
        let groups = vec![Head::over(1, ""), Head::over(2, "both")];
        table.heads.insert(0, groups);
        let name = Cell::Variant("waitword".to_owned());
        table.rows.push(vec![name, Cell::Number(0.5), Cell::Told("same")]);
        let wanted = "| a\\|b | both: c | both: d |\n\
                      | --- | ---: | --- |\n\
                      | **waitword** | 0.500 | *same* |\n";
        assert_eq!(table.markdown(), wanted);
    }

    #[test]
    fn texts_are_escaped_and_numbers_whole() {
        let mut table = Table::new(&["<b>"]);
        table.rows.push(vec![
            Cell::text("a < b & \"c\""),
            Cell::Variant("waitword <i>".to_owned()),
            Cell::Number(1.0 / 3.0),
            Cell::Number(f64::NAN),
        ]);
        let text = table.markup().into_string();
        assert!(text.contains("&lt;b&gt;</th>"), "{text}");
        assert!(text.contains("a &lt; b &amp; &quot;c&quot;"), "{text}");
        assert!(text.contains("class=\"ours\">waitword &lt;i&gt;"), "{text}");
        assert!(text.contains("data-value=\"0.3333333333333333\">0.333<"), "{text}");
        assert!(text.contains(">–</td>"), "{text}");
    }
}
