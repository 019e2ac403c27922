//! The checker's atomics, and what goes with them. `real.rs` describes each name.

pub(crate) use crate::checker::cell::UnsafeCell;
pub(crate) use crate::checker::hint::spin_loop;
pub(crate) use crate::checker::sync::atomic::{
    AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

pub(crate) fn full_fence() {
    fence(Ordering::SeqCst);
}

pub(crate) fn full_fence_after_rmw() {
    fence(Ordering::SeqCst);
}

macro_rules! const_fn {
    (
        $(#[$about:meta])*
        $visible:vis const fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty
        $body:block
    ) => {
        $(#[$about])*
        $visible fn $name($($argument: $kind),*) -> $result $body
    };
}

macro_rules! array {
    ($element:expr; $count:expr) => {
        core::array::from_fn(|_| $element)
    };
}

macro_rules! process_static {
    ($(#[$about:meta])* static $name:ident: $kind:ty = $first:expr;) => {
        crate::checker::lazy_static! {
            $(#[$about])*
            static ref $name: $kind = $first;
        }
    };
}

macro_rules! thread_static {
    ($(#[$about:meta])* static $name:ident: $kind:ty = const $first:block;) => {
        crate::checker::thread_local! {
            $(#[$about])*
            static $name: $kind = $first;
        }
    };
}

pub(crate) use {array, const_fn, process_static, thread_static};

pub(crate) const fn smaller_in_models(_size: usize, in_models: usize) -> usize {
    in_models
}
