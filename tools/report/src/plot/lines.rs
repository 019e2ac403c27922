//! A line for each variant: over the number of threads, or over the percentiles of a wait.

use super::axis::{Axis, Scale};
use super::chart::{Chart, Margins};
use super::figure::{Caption, Figure, draw};
use super::marks::{self, Area, Broken, ONE};
use crate::looks::{Look, Looks};
use crate::number::range;
use crate::table::{Cell, Head, Table};
use plotters::prelude::PathElement;
use plotters::style::Color;
use waitword_bench::stats::Summary;

const SIZE: (u32, u32) = (960, 600);
const MARGINS: Margins = Margins { left: 110, right: 16, top: 16, bottom: 52 };
/// The ends of the reference line.
const LEFT: i32 = MARGINS.left;
const RIGHT: i32 = SIZE.0 as i32 - MARGINS.right;
/// The greatest number of labels of the vertical axis.
const MOST_TICKS: usize = 8;
/// The horizontal offset between the points of two lines, so that their ranges do not hide each
/// other; and the greatest offset of all lines together.
const APART: i32 = 5;
const MOST_APART: i32 = 64;

/// One variant's points.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) variant: String,
    pub(crate) points: Vec<Point>,
}

/// One point: its position and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: Summary,
}

/// All lines of a plot.
pub(crate) struct Lines {
    pub(crate) caption: Caption,
    /// What the horizontal axis shows.
    pub(crate) across: &'static str,
    pub(crate) x: Axis,
    pub(crate) lines: Vec<Line>,
}

impl Lines {
    /// The plot; `None` if nothing can be drawn.
    pub(crate) fn figure(self, looks: &Looks) -> Option<Figure> {
        self.with_line(None, looks)
    }

    /// The same for ratios, with a line at 1.
    pub(crate) fn figure_against_1(self, looks: &Looks) -> Option<Figure> {
        self.with_line(Some(1.0), looks)
    }

    fn with_line(self, line: Option<f64>, looks: &Looks) -> Option<Figure> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let y = Axis::of(
            Scale::Logarithmic,
            points.flat_map(|point| [point.y.min, point.y.median, point.y.max]).chain(line),
            MOST_TICKS,
        )?;
        Some(Figure {
            svg: self.svg(&y, line, looks),
            keys: self.lines.iter().map(|line| line.variant.clone()).collect(),
            data: self.data(),
            caption: self.caption,
        })
    }

    fn svg(&self, y: &Axis, held_against: Option<f64>, looks: &Looks) -> String {
        // Ours are drawn last, above the other lines.
        let mut lines: Vec<_> =
            self.lines.iter().map(|line| (line, looks.get(&line.variant))).collect();
        lines.sort_by_key(|(_, look)| look.is_ours);
        let count = lines.len() as i32;
        let spread = (count * APART).min(MOST_APART);
        draw(SIZE, |area| {
            let chart = Chart::draw(area, &MARGINS, &self.x, y)?;
            if let Some(y) = held_against.and_then(|value| chart.y_of(value)) {
                marks::line(area, (LEFT, y), (RIGHT, y), ONE.stroke_width(2))?;
            }
            for ((line, look), number) in lines.into_iter().zip(0..) {
                let aside = number * spread / count - spread / 2;
                draw_line(area, &chart, line, look, aside)?;
            }
            Ok(())
        })
    }

    fn data(&self) -> Table {
        let columns = self.x.ticks.iter();
        let head = [Head::over(1, self.across)].into_iter();
        let head = head.chain(columns.map(|(_, number)| Head::over(2, number.as_str())));
        let row = |line: &Line| {
            let cells = self.x.ticks.iter().flat_map(|(x, _)| {
                let point = line.points.iter().find(|point| point.x == *x);
                point.map_or([const { Cell::Empty }; 2], |point| {
                    [Cell::Number(point.y.median), Cell::Numbers(range(point.y))]
                })
            });
            [Cell::Variant(line.variant.clone())].into_iter().chain(cells).collect()
        };
        Table { heads: vec![head.collect()], rows: self.lines.iter().map(row).collect() }
    }
}

/// Draws a line with the range of each point. A point that cannot be drawn interrupts the line.
fn draw_line(
    area: &Area<'_>,
    chart: &Chart<'_, '_>,
    line: &Line,
    look: Look,
    aside: i32,
) -> Result<(), Broken> {
    let place = |point: &Point| Some((chart.x_of(point.x)? + aside, chart.y_of(point.y.median)?));
    let places: Vec<Option<(i32, i32)>> = line.points.iter().map(place).collect();
    for run in places.split(Option::is_none).filter(|run| run.len() > 1) {
        let run: Vec<_> = run.iter().flatten().copied().collect();
        area.draw(&PathElement::new(run, marks::line_style(look)))?;
    }
    for (point, place) in line.points.iter().zip(places) {
        let Some((x, y)) = place else { continue };
        if let (Some(low), Some(high)) = (chart.y_of(point.y.min), chart.y_of(point.y.max)) {
            marks::line(area, (x, low), (x, high), marks::mark_style(look))?;
        }
        marks::marker(area, (x, y), look)?;
    }
    Ok(())
}
