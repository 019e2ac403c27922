//! The plots, each with its data in a table below.
//!
//! They are drawn with `plotters`, which places everything on whole pixels. So they are drawn twice
//! as large as they are shown.

pub(crate) mod axis;
mod chart;
mod figure;
mod lines;
mod marks;
mod panels;
mod scatter;

pub(crate) use figure::{Caption, Figure, keys};
pub(crate) use lines::{Line, Lines, Point};
pub(crate) use panels::{Mark, Panel, Panels, Row};
pub(crate) use scatter::{Dot, Scatter};
