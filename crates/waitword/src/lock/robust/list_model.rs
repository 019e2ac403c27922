//! A thread's list of robust mutexes for model builds, and what the kernel does with it when the
//! thread ends.

use super::error::RobustError;
use super::step::{Step, step};
use crate::atomic::AtomicU32;
use crate::sys::robust;
use crate::sys::tid::tid;
use core::cell::RefCell;
use core::sync::atomic::AtomicUsize;

#[derive(Debug)]
pub(super) struct Node;

impl Node {
    pub(super) fn new() -> Self {
        Self
    }
}

/// A mutex as the list needs it.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a>(*const AtomicU32, core::marker::PhantomData<&'a AtomicU32>);

impl<'a> Entry<'a> {
    pub(super) fn new(word: &'a AtomicU32, _node: &Node, _inherits: bool) -> Self {
        Self(word, core::marker::PhantomData)
    }
}

#[derive(Default)]
struct Held {
    pending: Option<*const AtomicU32>,
    words: Vec<*const AtomicU32>,
}

crate::checker::thread_local! {
    static HELD: RefCell<Held> = RefCell::new(Held::default());
}

#[derive(Clone, Copy)]
pub(super) struct List;

fn with<R>(change: impl FnOnce(&mut Held) -> R) -> R {
    HELD.with(|held| change(&mut held.borrow_mut()))
}

impl List {
    pub(super) fn of_this_thread() -> Result<Self, RobustError> {
        Ok(Self)
    }

    pub(super) fn begin(self, mutex: Entry<'_>) {
        with(|held| held.pending = Some(mutex.0));
    }

    pub(super) fn end(self) {
        with(|held| held.pending = None);
    }

    /// The model's kernel cannot free a word together with this (`sys/robust.rs`).
    pub(super) fn pending(&self) -> &AtomicUsize {
        static UNUSED: AtomicUsize = AtomicUsize::new(0);
        &UNUSED
    }

    pub(super) unsafe fn link(self, mutex: Entry<'_>) {
        step(Step::HalfLinked);
        with(|held| held.words.push(mutex.0));
    }

    pub(super) unsafe fn unlink(self, mutex: Entry<'_>) {
        step(Step::HalfUnlinked);
        with(|held| held.words.retain(|&held| held != mutex.0));
    }
}

/// What the kernel does when the calling thread ends.
///
/// # Safety
/// What it holds is still there.
pub(crate) unsafe fn thread_ends() {
    let held = with(core::mem::take);
    let pending = held.pending;
    for &word in held.words.iter().filter(|&&word| Some(word) != pending) {
        // SAFETY: what the thread holds is still there, by this function's contract.
        robust::owner_dies(unsafe { &*word }, tid(), false);
    }
    if let Some(word) = pending {
        // SAFETY: what it was locking or unlocking is still there, by this function's contract.
        robust::owner_dies(unsafe { &*word }, tid(), true);
    }
}
