//! What waiters are found by: the address of the word, and where its waiters are queued.

/// Where a word's waiters are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the bucket that the hash selects: words spread over all nodes.
    Anywhere,
    /// The same, for waiters of a mutex at that address. A late wake, made when the mutex has
    /// become something else, must not find the waiters of that.
    AtMutex,
    /// On the node with this number, because the word asks for it. This is the number, not the
    /// position among a table's nodes: a later table may have other nodes (`cpuset(7)`), and the
    /// waiters must still be found.
    OnNode(u32),
}

impl Place {
    pub(super) fn to_bits(self) -> u32 {
        match self {
            Place::Anywhere => 0,
            Place::AtMutex => 1,
            Place::OnNode(number) => number + 2,
        }
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Place::Anywhere,
            1 => Place::AtMutex,
            number => Place::OnNode(number - 2),
        }
    }
}

/// What the waiters of one word have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) address: usize,
    pub(crate) place: Place,
}
