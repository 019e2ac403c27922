//! What the scenarios of the library and those of pthread share, one file for each idea.

pub(crate) mod books;
pub(crate) mod bounded;
pub(crate) mod ring;
pub(crate) mod store;
pub(crate) mod storm;
pub(crate) mod team;
pub(crate) mod turns;
