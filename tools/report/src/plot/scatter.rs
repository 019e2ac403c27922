//! A mark for each variant between two quantities, such as throughput and the longest wait.

use super::axis::{Axis, Scale};
use super::chart::{Chart, Margins};
use super::figure::{Caption, Figure, draw};
use super::marks;
use crate::looks::{Look, Looks};
use crate::number::range;
use crate::table::{Cell, Head, Table};
use plotters::style::text_anchor::HPos;
use waitword_bench::stats::Summary;

const SIZE: (i32, i32) = (1080, 640);
const MARGINS: Margins = Margins { left: 116, right: 24, top: 56, bottom: 96 };
/// The greatest numbers of labels of the axes.
const MOST_TICKS: usize = 8;
/// The mean width of a letter, the height of a line, and the distance from a mark to its name.
const LETTER: i32 = 13;
const LINE: i32 = 26;
const BESIDE: i32 = 16;
/// How many lines above or below its mark a name may stand.
const MOST_LINES: i32 = 7;

/// One variant's place.
pub(crate) struct Dot {
    pub(crate) variant: String,
    pub(crate) x: Summary,
    pub(crate) y: Summary,
}

/// All variants of a plot.
pub(crate) struct Scatter {
    pub(crate) caption: Caption,
    /// What the axes show.
    pub(crate) across: String,
    pub(crate) up: String,
    pub(crate) dots: Vec<Dot>,
}

/// The space that a mark or a name takes.
#[derive(Clone, Copy)]
struct Space {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Space {
    fn overlaps(self, other: Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn around((x, y): (i32, i32), half: (i32, i32)) -> Self {
        Self { left: x - half.0, top: y - half.1, right: x + half.0, bottom: y + half.1 }
    }
}

impl Scatter {
    /// The plot; `None` if nothing can be drawn.
    pub(crate) fn figure(self, looks: &Looks) -> Option<Figure> {
        let medians = |of: fn(&Dot) -> Summary| self.dots.iter().map(move |dot| of(dot).median);
        let x = Axis::of(Scale::Logarithmic, medians(|dot| dot.x), MOST_TICKS)?;
        let y = Axis::of(Scale::Logarithmic, medians(|dot| dot.y), MOST_TICKS)?;
        Some(Figure {
            svg: self.svg(&x, &y, looks),
            keys: Vec::new(),
            data: self.data(),
            caption: self.caption,
        })
    }

    fn svg(&self, x: &Axis, y: &Axis, looks: &Looks) -> String {
        draw((SIZE.0 as u32, SIZE.1 as u32), |area| {
            let chart = Chart::draw(area, &MARGINS, x, y)?;
            let middle = (MARGINS.left + SIZE.0) / 2;
            marks::text(area, &self.across, (middle, SIZE.1 - 22), HPos::Center)?;
            marks::text(area, &self.up, (MARGINS.left, 22), HPos::Left)?;
            let place = |dot: &Dot| Some((chart.x_of(dot.x.median)?, chart.y_of(dot.y.median)?));
            // Ours first: their names get the better places.
            let mut dots: Vec<(&Dot, Look, (i32, i32))> = self
                .dots
                .iter()
                .filter_map(|dot| Some((dot, looks.get(&dot.variant), place(dot)?)))
                .collect();
            dots.sort_by_key(|(_, look, _)| !look.is_ours);
            let mut taken: Vec<Space> =
                dots.iter().map(|(_, _, at)| Space::around(*at, (9, 9))).collect();
            for (dot, look, at) in &dots {
                let (name, space) = name_at(&dot.variant, *at, &taken);
                taken.push(space);
                // A name that is not beside its mark has a line to it.
                if (name.1 - at.1).abs() > LINE {
                    let end = if space.left > at.0 { space.left } else { space.right };
                    marks::line(area, *at, (end, name.1), marks::mark_style(*look))?;
                }
                marks::name(area, &dot.variant, name, *look)?;
            }
            for (_, look, at) in dots.iter().rev() {
                marks::marker(area, *at, *look)?;
            }
            Ok(())
        })
    }

    fn data(&self) -> Table {
        let head = [
            Head::over(1, ""),
            Head::over(2, self.across.as_str()),
            Head::over(2, self.up.as_str()),
        ];
        let row = |dot: &Dot| {
            vec![
                Cell::Variant(dot.variant.clone()),
                Cell::Number(dot.x.median),
                Cell::Numbers(range(dot.x)),
                Cell::Number(dot.y.median),
                Cell::Numbers(range(dot.y)),
            ]
        };
        Table { heads: vec![head.into()], rows: self.dots.iter().map(row).collect() }
    }
}

/// Where a name ends, and the space that it takes: the first place around the mark that is free and
/// in the picture; to the right if there is none.
fn name_at(name: &str, (x, y): (i32, i32), taken: &[Space]) -> ((i32, i32), Space) {
    let width = name.chars().count() as i32 * LETTER;
    let mut ends = vec![
        (x + BESIDE + width, y),
        (x - BESIDE, y),
        (x + width / 2, y - LINE),
        (x + width / 2, y + LINE),
    ];
    for lines in 1..=MOST_LINES {
        for dy in [lines * LINE, -lines * LINE] {
            ends.extend([(x - BESIDE, y + dy), (x + BESIDE + width, y + dy)]);
        }
    }
    let space = |end: (i32, i32)| Space {
        left: end.0 - width,
        top: end.1 - LINE / 2,
        right: end.0,
        bottom: end.1 + LINE / 2,
    };
    let fits = |end: &&(i32, i32)| {
        let space = space(**end);
        space.left > MARGINS.left
            && space.right < SIZE.0
            && space.top > 36
            && space.bottom < SIZE.1 - MARGINS.bottom
            && !taken.iter().any(|other| space.overlaps(*other))
    };
    let end = *ends.iter().find(fits).unwrap_or(&ends[0]);
    (end, space(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_cover_each_other_or_leave_the_picture() {
        let mut taken = Vec::new();
        // Some marks in one place, and one at the right edge.
        for at in [(400, 300), (402, 301), (404, 300), (404, 302), (403, 303), (SIZE.0 - 20, 300)] {
            let (_, space) = name_at("waitword", at, &taken);
            assert!(!taken.iter().any(|other| space.overlaps(*other)));
            assert!(space.left > MARGINS.left && space.right < SIZE.0);
            taken.push(space);
        }
    }
}
