//! The published figures of the five mails: all their rows, in their units.

use crate::table::{Cell, Head, Table};
use serde::Deserialize;
use waitword_bench::workload::Patch;

const DATA: &str = include_str!("published.json");

/// The figures of all five mails.
#[derive(Debug, Deserialize)]
pub(crate) struct Published {
    pub(crate) requeue: Mail<Grouped>,
    pub(crate) wake_op: Mail<Grouped>,
    pub(crate) private: Mail<Call>,
    pub(crate) wide: Mail<Threads>,
    pub(crate) throughput_optimized: Mail<Grouped>,
}

/// One mail: its author and year, its machine, and its table.
#[derive(Debug, Deserialize)]
pub(crate) struct Mail<Row> {
    pub(crate) mail: String,
    /// Not every mail states it.
    pub(crate) machine: Option<String>,
    pub(crate) unit: String,
    #[serde(default)]
    columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) note: Option<String>,
    /// Further claims in the mail's text: the subject, the figure, and its unit.
    #[serde(default)]
    pub(crate) claims: Vec<(String, f64, String)>,
}

/// The program, the variant, and a figure for each column; `None` for a run that did not finish.
#[derive(Debug, Deserialize)]
pub(crate) struct Grouped(pub(crate) String, pub(crate) String, pub(crate) Vec<Option<f64>>);

/// The call, the variant, and its cycles.
#[derive(Debug, Deserialize)]
pub(crate) struct Call(pub(crate) String, pub(crate) String, pub(crate) f64);

/// The number of threads, the old lock's time, the new lock's time, and the gain in percent.
#[derive(Debug, Deserialize)]
pub(crate) struct Threads(pub(crate) u32, pub(crate) f64, pub(crate) f64, pub(crate) f64);

/// A mail as it is shown: its source, table and note.
pub(crate) struct Shown {
    pub(crate) source: String,
    pub(crate) table: Table,
    pub(crate) note: Option<String>,
}

impl Published {
    /// Reads the figures that are compiled into this crate.
    ///
    /// # Panics
    /// Never: a test reads them.
    pub(crate) fn load() -> Self {
        serde_json::from_str(DATA).expect("the published figures are part of this crate")
    }

    /// The mail of this patch.
    pub(crate) fn of(&self, patch: Patch) -> Shown {
        match patch {
            Patch::Requeue => self.requeue.show(&["", ""], Grouped::cells),
            Patch::WakeOp => self.wake_op.show(&["", ""], Grouped::cells),
            Patch::Private => self.private.show(&["call", "", "cycles"], Call::cells),
            Patch::Wide => self.wide.show(&[], Threads::cells),
            Patch::ThroughputOptimized => self.throughput_optimized.show(&["", ""], Grouped::cells),
        }
    }
}

impl<Row> Mail<Row> {
    fn show(&self, names: &[&str], cells: fn(&Row) -> Vec<Cell>) -> Shown {
        let columns = self.columns.iter().map(String::as_str);
        let head = names.iter().copied().chain(columns);
        Shown {
            source: format!(
                "{}; {}; {}",
                self.mail,
                self.machine.as_deref().unwrap_or("machine not stated"),
                self.unit
            ),
            table: Table {
                heads: vec![head.map(|text| Head::over(1, text)).collect()],
                rows: self.rows.iter().map(cells).collect(),
            },
            note: self.note.clone(),
        }
    }
}

impl Grouped {
    fn cells(&self) -> Vec<Cell> {
        let figures = self.2.iter().map(|figure| match figure {
            Some(figure) => Cell::Numbers(format!("{figure:.3}")),
            None => Cell::Numbers("null".to_owned()),
        });
        [Cell::text(&self.0), Cell::text(&self.1)].into_iter().chain(figures).collect()
    }
}

impl Call {
    fn cells(&self) -> Vec<Cell> {
        vec![Cell::text(&self.0), Cell::text(&self.1), Cell::Numbers(self.2.to_string())]
    }
}

impl Threads {
    fn cells(&self) -> Vec<Cell> {
        let Self(threads, old, new, gain) = self;
        vec![
            Cell::Numbers(threads.to_string()),
            Cell::Numbers(thousands(*old)),
            Cell::Numbers(thousands(*new)),
            Cell::Numbers(format!("{gain:.2}")),
        ]
    }
}

/// A whole number with thousands separators.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mail_is_there_with_all_its_rows() {
        let published = Published::load();
        let rows = Patch::ALL.map(|patch| published.of(patch).table.rows.len());
        assert_eq!(rows, [8, 6, 8, 16, 3]);
        assert_eq!(published.throughput_optimized.claims.len(), 4);
        for patch in Patch::ALL {
            let Shown { source, table, .. } = published.of(patch);
            // Its year is in the patch's title, too.
            let year =
                source.split(' ').find_map(|word| word.trim_end_matches(',').parse::<u32>().ok());
            assert!(patch.title().contains(&year.unwrap().to_string()), "{source}");
            for row in &table.rows {
                assert_eq!(row.len(), table.heads[0].len(), "{source}");
            }
        }
    }

    #[test]
    fn figures_are_as_the_mails_have_them() {
        let text = |patch| Published::load().of(patch).table.markup().into_string();
        assert!(text(Patch::Requeue).contains(">237.407<"));
        assert!(text(Patch::WakeOp).contains(">0.655<"));
        assert!(text(Patch::Private).contains(">337<"));
        assert!(text(Patch::Wide).contains(">26,639,730,750<"));
        assert!(text(Patch::ThroughputOptimized).contains(">9.320<"));
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!(thousands(0.0), "0");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(1000.0), "1,000");
        assert_eq!(thousands(23_176_632_860.0), "23,176,632,860");
    }
}
