//! The objects under torture: the library's own types, and those of pthread, behind the same
//! traits. A scenario over a trait runs on both.

pub(crate) mod library;
pub(crate) mod pthread;
pub(crate) mod traits;
