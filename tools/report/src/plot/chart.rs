//! A chart: the area between two axes, with their grid and their labels.

use super::axis::Axis;
use super::marks::{Area, Broken, FONT, GRID, INK};
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::Ranged as _;
use plotters::prelude::SVGBackend;
use plotters::style::{Color, IntoFont, TRANSPARENT, TextStyle};

/// The distances of the chart from the edges of its area.
pub(super) struct Margins {
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

/// Maps values to positions in the picture.
pub(super) struct Chart<'a, 'b>(ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>);

impl<'a, 'b> Chart<'a, 'b> {
    /// Draws the grid and the labels.
    pub(super) fn draw(
        area: &'a Area<'b>,
        margins: &Margins,
        x: &Axis,
        y: &Axis,
    ) -> Result<Self, Broken> {
        let mut context = ChartBuilder::on(area)
            .margin_top(margins.top)
            .margin_right(margins.right)
            .y_label_area_size(margins.left)
            .x_label_area_size(margins.bottom)
            .build_cartesian_2d(x.clone(), y.clone())?;
        context
            .configure_mesh()
            .axis_style(TRANSPARENT)
            .bold_line_style(GRID.stroke_width(1))
            .label_style(TextStyle::from(FONT.into_font()).color(&INK))
            .set_all_tick_mark_size(6)
            .draw()?;
        Ok(Self(context))
    }

    /// The horizontal position of a value; `None` if it cannot be drawn.
    pub(super) fn x_of(&self, value: f64) -> Option<i32> {
        let axes = self.0.plotting_area().as_coord_spec();
        let at = || self.0.backend_coord(&(value, axes.y_spec().range().start));
        axes.x_spec().can(value).then(|| at().0)
    }

    /// The vertical position.
    pub(super) fn y_of(&self, value: f64) -> Option<i32> {
        let axes = self.0.plotting_area().as_coord_spec();
        let at = || self.0.backend_coord(&(axes.x_spec().range().start, value));
        axes.y_spec().can(value).then(|| at().1)
    }
}
