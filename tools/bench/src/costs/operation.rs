//! An operation to count.

/// An operation to count.
pub(super) struct Operation {
    /// The chapter of the table.
    pub(super) chapter: &'static str,
    /// Unique in its chapter.
    pub(super) what: String,
    pub(super) is_ours: bool,
    pub(super) prepare: fn(),
    pub(super) operation: fn(),
}
