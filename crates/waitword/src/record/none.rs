//! Without the feature `record`: nothing is recorded.

/// What a thread waits for.
#[derive(Clone, Copy)]
pub(crate) enum Object {
    Mutex,
    Read,
    Write,
    Condvar,
    Semaphore,
    Barrier,
    Once,
}

#[inline(always)]
pub(crate) fn is_on() -> bool {
    false
}

#[inline(always)]
pub(crate) fn waiting<T, E>(
    _: Object,
    _: usize,
    _: bool,
    wait: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    wait()
}

#[inline(always)]
pub(crate) fn waiting_to_hold<T, E>(
    _: Object,
    _: usize,
    _: bool,
    wait: impl FnOnce() -> Result<T, E>,
    _: impl FnOnce() -> bool,
) -> Result<T, E> {
    wait()
}

#[inline(always)]
pub(crate) fn waiting_on_futex<T, E>(
    _: usize,
    _: bool,
    wait: impl FnOnce() -> Result<T, E>,
    _: impl FnOnce(&E) -> bool,
) -> Result<T, E> {
    wait()
}

#[inline(always)]
pub(crate) fn waiting_with<R>(
    _: usize,
    _: usize,
    _: bool,
    wait: impl FnOnce() -> R,
    _: impl FnOnce(&R) -> bool,
    _: impl FnOnce(&R) -> bool,
) -> R {
    wait()
}

#[inline(always)]
pub(crate) fn took(_: usize, _: impl FnOnce() -> bool) {}

#[inline(always)]
pub(crate) fn releasing(_: usize, _: impl FnOnce() -> bool, _: impl FnOnce() -> bool) {}

#[inline(always)]
pub(crate) fn signalling(_: usize) {}
