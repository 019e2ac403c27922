//! loom's names, and how it checks.

pub(crate) use loom::{cell, lazy_static, model, sync, thread, thread_local};

use sync::atomic::AtomicPtr;

/// Runs a model with at most `preemptions` involuntary switches in each interleaving: what loom's authors
/// found enough for nearly all bugs.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Where it points when the model is over.
pub(crate) fn last_value<T>(pointer: &mut AtomicPtr<T>) -> *mut T {
    pointer.with_mut(|pointer| *pointer)
}
