//! A row for each variant (or other subject), named at the left, and one or more panels side by
//! side: bars from 0, points with their interval, spans.

use super::axis::{Axis, Scale};
use super::chart::{Chart, Margins};
use super::figure::{Caption, Figure, draw};
use super::marks::{self, Area, Broken, ONE};
use crate::looks::{Look, Looks};
use crate::number::figure;
use crate::table::{Cell, Head, Table};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;
use waitword_bench::report::VariantReport;

/// The greatest mean width of a letter in a name, and the greatest width of the names.
const LETTER: i32 = 13;
const MOST_NAMES: i32 = 420;
const PANEL: i32 = 290;
const GAP: i32 = 56;
const ROW: i32 = 34;
const ABOVE: i32 = 48;
const BELOW: i32 = 48;
const MARGINS: Margins = Margins { left: 0, right: 0, top: ABOVE, bottom: BELOW };
/// The greatest number of labels below a panel.
const MOST_TICKS: usize = 4;

/// A row's label.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// The variant whose look the row has.
    pub(crate) variant: String,
}

impl Row {
    /// The row of a variant.
    pub(crate) fn of(variant: &VariantReport) -> Self {
        let name = variant.name.clone();
        Self { variant: name.clone(), name }
    }
}

/// The drawing in one row of one panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mark {
    /// A bar from 0.
    Bar(f64),
    /// A point, and the interval in which it may lie.
    Point { at: f64, low: f64, high: f64 },
    /// A bar between two values.
    Span { low: f64, high: f64 },
}

/// One quantity.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) scale: Scale,
    /// A reference value, drawn as a line.
    pub(crate) line: Option<f64>,
    /// One mark for each row.
    pub(crate) marks: Vec<Option<Mark>>,
}

/// All quantities of a plot.
pub(crate) struct Panels {
    pub(crate) caption: Caption,
    pub(crate) rows: Vec<Row>,
    pub(crate) panels: Vec<Panel>,
}

impl Mark {
    fn values(self) -> Vec<f64> {
        match self {
            Self::Bar(value) => vec![value],
            Self::Point { at, low, high } => vec![at, low, high],
            Self::Span { low, high } => vec![low, high],
        }
    }
}

impl Panels {
    /// The plot; `None` if nothing can be drawn.
    pub(crate) fn figure(self, looks: &Looks) -> Option<Figure> {
        let axes: Vec<_> = self.panels.iter().map(Panel::axis).collect();
        if axes.iter().all(Option::is_none) {
            return None;
        }
        Some(Figure {
            svg: self.svg(&axes, looks),
            keys: Vec::new(),
            data: self.data(),
            caption: self.caption,
        })
    }

    fn svg(&self, axes: &[Option<Axis>], looks: &Looks) -> String {
        let rows = self.rows.len() as i32;
        let panels = self.panels.len() as i32;
        let longest = self.rows.iter().map(|row| row.name.chars().count()).max();
        let names = (longest.unwrap_or(0) as i32 * LETTER + 32).min(MOST_NAMES);
        let size = (names + panels * (PANEL + GAP), ABOVE + rows * ROW + BELOW);
        draw((size.0 as u32, size.1 as u32), |area| {
            let looks: Vec<Look> = self.rows.iter().map(|row| looks.get(&row.variant)).collect();
            for ((row, look), number) in self.rows.iter().zip(&looks).zip(0..) {
                marks::name(area, &row.name, (names - 16, middle(number)), *look)?;
            }
            for ((panel, axis), column) in self.panels.iter().zip(axes).zip(0..) {
                if let Some(axis) = axis {
                    panel.draw(area, axis, names + column * (PANEL + GAP), rows, &looks)?;
                }
            }
            Ok(())
        })
    }

    fn data(&self) -> Table {
        let titles =
            self.panels.iter().map(|panel| Head::over(panel.parts().len(), panel.title.as_str()));
        let parts = self.panels.iter().flat_map(Panel::parts).map(|part| Head::over(1, *part));
        let name = || [Head::over(1, "")].into_iter();
        let row = |(number, row): (usize, &Row)| {
            let mut cells = vec![Cell::Variant(row.name.clone())];
            for panel in &self.panels {
                let values = panel.marks[number].map_or(Vec::new(), Mark::values);
                cells.extend(values.iter().map(|value| Cell::Number(*value)));
                cells.extend((values.len()..panel.parts().len()).map(|_| Cell::Empty));
            }
            cells
        };
        let mut heads = vec![name().chain(titles).collect()];
        if self.panels.iter().any(|panel| panel.parts().len() > 1) {
            heads.push(name().chain(parts).collect());
        }
        Table { heads, rows: self.rows.iter().enumerate().map(row).collect() }
    }
}

impl Panel {
    fn axis(&self) -> Option<Axis> {
        let values = self.marks.iter().flatten().flat_map(|mark| mark.values());
        Axis::of(self.scale, values.chain(self.line), MOST_TICKS)
    }

    /// The names of a mark's values.
    fn parts(&self) -> &'static [&'static str] {
        match self.marks.iter().flatten().next() {
            Some(Mark::Point { .. }) => &["median", "from", "to"],
            Some(Mark::Span { .. }) => &["least", "most"],
            Some(Mark::Bar(_)) | None => &[""],
        }
    }

    fn draw(
        &self,
        area: &Area<'_>,
        axis: &Axis,
        left: i32,
        rows: i32,
        looks: &[Look],
    ) -> Result<(), Broken> {
        let bottom = ABOVE + rows * ROW;
        marks::text(area, &self.title, (left, ABOVE / 2), HPos::Left)?;
        let part = area.clone().shrink((left, 0), (PANEL, bottom + BELOW));
        let no_labels = Axis::of_rows(rows);
        let chart = Chart::draw(&part, &MARGINS, axis, &no_labels)?;
        let x_of = |value| chart.x_of(value);
        if let Some(x) = self.line.and_then(x_of) {
            marks::line(area, (x, ABOVE), (x, bottom), ONE.stroke_width(2))?;
        }
        for ((mark, look), row) in self.marks.iter().zip(looks).zip(0..) {
            let Some(mark) = mark else { continue };
            let y = middle(row);
            let half = if look.is_ours { 9 } else { 6 };
            match *mark {
                Mark::Bar(value) => {
                    if let (Some(from), Some(to)) = (x_of(0.0), x_of(value)) {
                        marks::bar(area, (from, y - half), (to, y + half), *look)?;
                        marks::text(area, &figure(value), (to + 10, y), HPos::Left)?;
                    }
                }
                Mark::Point { at, low, high } => {
                    if let (Some(low), Some(high)) = (x_of(low), x_of(high)) {
                        marks::line(
                            area,
                            (low, y),
                            (high, y),
                            marks::mark_style(*look).stroke_width(half as u32 / 2),
                        )?;
                    }
                    if let Some(at) = x_of(at) {
                        marks::marker(area, (at, y), *look)?;
                    }
                }
                Mark::Span { low, high } => {
                    if let (Some(low), Some(high)) = (x_of(low), x_of(high)) {
                        marks::bar(
                            area,
                            (low, y - half / 2),
                            (high.max(low + 2), y + half / 2),
                            *look,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The vertical middle of a row.
fn middle(row: i32) -> i32 {
    ABOVE + row * ROW + ROW / 2
}
