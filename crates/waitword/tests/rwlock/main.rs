//! The reader/writer lock: exclusion with many threads, no starvation, recursive reading, freed
//! right after its release, between processes of which some are killed, and in forked children.

mod crowds;
mod freed;
mod processes;
mod turns;

use waitword::{Preference, Scope};

/// Every kind of lock.
const KINDS: [(Preference, Scope); 4] = [
    (Preference::Reader, Scope::Private),
    (Preference::Writer, Scope::Private),
    (Preference::Reader, Scope::Shared),
    (Preference::Writer, Scope::Shared),
];
