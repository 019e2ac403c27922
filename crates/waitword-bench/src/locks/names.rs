//! What the variants are called, for those who want to choose among them.

use super::{BenchCondvar, BenchMutex, BenchRwLock, every_condvar, every_mutex, every_rwlock};
use crate::ops::{Futexes as _, Kernel};
use std::collections::BTreeSet;

/// The names of all variants that are locks, and the kernel's futex. There are more: the lengths and widths of ours, for instance.
pub fn names() -> BTreeSet<String> {
    fn mutex<M: BenchMutex>() -> &'static str {
        M::NAME
    }
    fn condvar<C: BenchCondvar>() -> &'static str {
        C::NAME
    }
    fn rwlock<L: BenchRwLock>() -> &'static str {
        L::NAME
    }
    let mut names: BTreeSet<String> = BTreeSet::from([Kernel::<true>.name()]);
    for list in [
        every_mutex!(mutex()),
        every_condvar!(condvar()),
        every_rwlock!(rwlock()),
    ] {
        names.extend(list.into_iter().map(str::to_owned));
    }
    names
}
