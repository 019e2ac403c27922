//! loom's names, and how a model is checked with it.

pub(crate) use loom::{cell, hint, lazy_static, model, sync, thread, thread_local};

use sync::atomic::AtomicPtr;

/// Runs a model with at most `preemptions` involuntary switches in each interleaving. loom's
/// authors found that a small bound is enough for nearly all bugs.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// The pointer's value when the model is over.
pub(crate) fn last_value<T>(pointer: &mut AtomicPtr<T>) -> *mut T {
    pointer.with_mut(|pointer| *pointer)
}
