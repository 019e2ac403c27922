//! The environment of a model: a thread may stay awake, but hardly has time to, and nothing else is
//! set. Staying awake for longer would only add states.

use core::ffi::CStr;

pub(crate) fn number(name: &CStr) -> Option<u64> {
    (name == c"WAITWORD_SPIN_NS").then_some(1)
}
