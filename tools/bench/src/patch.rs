//! The five patches whose tables are reproduced.

use serde::{Deserialize, Serialize};

/// The patch whose table a workload reproduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Patch {
    /// FUTEX_REQUEUE: Ingo Molnar, 2003.
    Requeue,
    /// FUTEX_WAKE_OP: Jakub Jelinek, 2005.
    WakeOp,
    /// PRIVATE futexes: Eric Dumazet, 2007.
    Private,
    /// 64-bit futexes: Ulrich Drepper, 2008.
    Wide,
    /// Throughput-optimized futexes: Waiman Long, 2016.
    ThroughputOptimized,
}

impl Patch {
    /// In chronological order.
    pub const ALL: [Self; 5] =
        [Self::Requeue, Self::WakeOp, Self::Private, Self::Wide, Self::ThroughputOptimized];

    /// The patch's name, author and year.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requeue => "Requeue (Ingo Molnar, 2003)",
            Self::WakeOp => "WAKE_OP (Jakub Jelinek, 2005)",
            Self::Private => "PRIVATE futexes (Eric Dumazet, 2007)",
            Self::Wide => "64-bit futexes (Ulrich Drepper, 2008)",
            Self::ThroughputOptimized => "Throughput-optimized futexes (Waiman Long, 2016)",
        }
    }
}
