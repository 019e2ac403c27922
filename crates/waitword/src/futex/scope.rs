//! Which threads a word is for.

/// Which threads can wait on a word and wake its waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The threads of this process.
    Private,
    /// Every process that maps the word, at whatever address.
    Shared,
}
