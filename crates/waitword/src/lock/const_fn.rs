//! Constructors that are `const`, except in a model.

pub(super) use crate::atomic::const_fn;
