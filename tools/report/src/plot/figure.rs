//! A plot with its caption, the keys of its variants, and its data.

use super::marks::{self, Area, Broken};
use crate::looks::{Look, Looks};
use crate::table::Table;
use maud::{Markup, PreEscaped, html};
use plotters::prelude::{IntoDrawingArea, SVGBackend};

/// The text above a plot.
pub(crate) struct Caption {
    /// What the plot shows.
    pub(crate) what: String,
    /// Its units, and what the marks mean.
    pub(crate) how: String,
}

impl Caption {
    pub(crate) fn new(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), how: how.into() }
    }
}

/// One plot.
pub(crate) struct Figure {
    pub(crate) caption: Caption,
    /// The picture.
    pub(super) svg: String,
    /// The variants whose keys are shown below it; empty if the picture itself names them.
    pub(super) keys: Vec<String>,
    /// The drawn values.
    pub(crate) data: Table,
}

impl Figure {
    pub(crate) fn markup(&self, looks: &Looks) -> Markup {
        html! {
            figure {
                figcaption { (self.caption.what) span.s { (self.caption.how) } }
                div.picture.fits[!self.keys.is_empty()] tabindex="0" { (PreEscaped(&self.svg)) }
                @if !self.keys.is_empty() {
                    ul.keys { @for name in &self.keys { (key(name, looks.get(name))) } }
                }
                details.data { summary { "the data" } (self.data.markup()) }
            }
        }
    }
}

fn key(name: &str, look: Look) -> Markup {
    html! {
        li data-key=(look.number) class=[look.is_ours.then_some("ours")] {
            svg.key viewBox="0 0 72 24" aria-hidden="true" {
                use href=(format!("#key-{}", look.number)) {}
            }
            (name)
        }
    }
}

/// The keys of all variants, once per page; each plot refers to them.
pub(crate) fn keys(looks: &Looks) -> Markup {
    html! {
        div.hidden aria-hidden="true" {
            @for look in looks.all() {
                svg { g id=(format!("key-{}", look.number)) {
                    (PreEscaped(draw((72, 24), |area| marks::key(area, look))))
                } }
            }
        }
    }
}

/// Draws a picture of this size.
///
/// # Panics
/// If the size is too small for its margins.
pub(super) fn draw(
    size: (u32, u32),
    paint: impl FnOnce(&Area<'_>) -> Result<(), Broken>,
) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    paint(&area).and_then(|()| area.present()).expect("a string takes what is drawn");
    drop(area);
    svg.replacen("<svg ", "<svg class=\"plot\" role=\"img\" ", 1)
}
