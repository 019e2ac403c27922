//! Median, minimum and maximum, and ratios taken pair by pair.
//!
//! We use the median because one preempted measurement must not move the figure, and add minimum
//! and maximum because a figure is meaningless without its spread. A ratio is taken within each
//! round, between two measurements that followed each other, and only then summarized. The ratio of
//! two medians would compare different moments.

mod interval;
mod many;
mod quotient;
mod ratio;
mod summary;

pub use interval::{
    Interval, ROUNDS_OF_PROGRAMS, ROUNDS_OF_RANDOM_LOADS, ROUNDS_TO_PUBLISH, ROUNDS_TO_TELL,
    Verdict, coverage, interval_of_median, sign_test,
};
pub use many::{FALSE_DISCOVERIES, greatest_that_counts};
pub use quotient::interval_of_quotient;
pub use ratio::{Ratio, ratios};
pub(crate) use summary::all_infinite;
#[cfg(test)]
pub(crate) use summary::random;
pub use summary::{Summary, median};
