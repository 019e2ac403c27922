//! The elements of plots: lines, texts and markers in placeholder colours.

use crate::looks::{Look, Marker, line_placeholder, mark_placeholder};
use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{
    Circle, DrawingArea, PathElement, Polygon, RGBColor, Rectangle, SVGBackend, ShapeStyle, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, TextStyle};

/// The area that is drawn on, in pixels.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Why drawing failed.
pub(super) type Broken = DrawingAreaErrorKind<std::io::Error>;

/// The placeholders of texts, of the grid, and of the reference line.
pub(super) const INK: RGBColor = RGBColor(1, 1, 1);
pub(super) const GRID: RGBColor = RGBColor(1, 1, 2);
pub(super) const ONE: RGBColor = RGBColor(1, 1, 3);
/// The placeholder of our variants' names.
const OURS: RGBColor = RGBColor(1, 1, 4);

/// The size for `plotters` is 1.24 times the size in the picture.
pub(super) const FONT: (&str, i32) = ("sans-serif", 28);
const MARKER: i32 = 7;

/// The style of a variant's line.
pub(super) fn line_style(look: Look) -> ShapeStyle {
    let (red, green, blue) = line_placeholder(look.number);
    RGBColor(red, green, blue).stroke_width(2)
}

/// The style of a variant's marks.
pub(super) fn mark_style(look: Look) -> ShapeStyle {
    let (red, green, blue) = mark_placeholder(look.number);
    RGBColor(red, green, blue).stroke_width(2)
}

pub(super) fn line(
    area: &Area<'_>,
    from: (i32, i32),
    to: (i32, i32),
    style: impl Into<ShapeStyle>,
) -> Result<(), Broken> {
    area.draw(&PathElement::new(vec![from, to], style))
}

pub(super) fn bar(
    area: &Area<'_>,
    from: (i32, i32),
    to: (i32, i32),
    look: Look,
) -> Result<(), Broken> {
    area.draw(&Rectangle::new([from, to], mark_style(look).filled()))
}

/// Draws a text whose left, middle or right is at `at`.
pub(super) fn text(area: &Area<'_>, text: &str, at: (i32, i32), side: HPos) -> Result<(), Broken> {
    write(area, text, at, side, INK)
}

/// Draws a variant's name, which ends at `at`.
pub(super) fn name(area: &Area<'_>, name: &str, at: (i32, i32), look: Look) -> Result<(), Broken> {
    write(area, name, at, HPos::Right, if look.is_ours { OURS } else { INK })
}

fn write(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    side: HPos,
    colour: RGBColor,
) -> Result<(), Broken> {
    let style = TextStyle::from(FONT.into_font()).color(&colour).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))
}

/// Draws a variant's marker.
pub(super) fn marker(area: &Area<'_>, (x, y): (i32, i32), look: Look) -> Result<(), Broken> {
    let style = mark_style(look);
    let r = if look.is_ours { MARKER + 2 } else { MARKER };
    let polygon = |points: &[(i32, i32)]| {
        let points: Vec<_> = points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        area.draw(&Polygon::new(points, style.filled()))
    };
    let stroke =
        |dx: i32, dy: i32| line(area, (x - dx, y - dy), (x + dx, y + dy), style.stroke_width(4));
    match look.marker {
        Marker::Circle => area.draw(&Circle::new((x, y), r, style.filled())),
        Marker::Square => polygon(&[(-r, -r), (r, -r), (r, r), (-r, r)]),
        Marker::Up => polygon(&[(0, -r - 2), (r + 1, r), (-r - 1, r)]),
        Marker::Down => polygon(&[(0, r + 2), (r + 1, -r), (-r - 1, -r)]),
        Marker::Diamond => polygon(&[(0, -r - 2), (r + 2, 0), (0, r + 2), (-r - 2, 0)]),
        Marker::Cross => stroke(r, r).and_then(|()| stroke(r, -r)),
        Marker::Plus => stroke(r + 2, 0).and_then(|()| stroke(0, r + 2)),
    }
}

/// Draws a variant's line and marker, for the list of keys.
pub(super) fn key(area: &Area<'_>, look: Look) -> Result<(), Broken> {
    line(area, (2, 12), (70, 12), line_style(look))?;
    marker(area, (36, 12), look)
}
