//! Whether a thread is inside a bucket: for signal handlers that interrupt it there.
//!
//! A handler may call `wake` (`sem_post` does) at any instruction of the thread that it interrupts,
//! even while that thread holds the lock of the very bucket that the handler needs. The handler
//! would wait for its own thread. So a thread records, before it locks a bucket, that it is inside.
//! A wake that finds its own thread inside leaves a note instead, and the thread delivers the notes
//! when it leaves.
//!
//! ```text
//!   thread                       handler, on the same thread
//!   ──────                       ───────────────────────────
//!   inside = true
//!   lock ... unlock        ◄──   wake: inside? leave a note, return 0
//!   inside = false
//!   deliver the notes            (from here on a handler wakes by itself)
//! ```
//!
//! Thread and handler share these few words and never run at once, so relaxed atomics and a
//! compiler fence are enough. Handlers nest. Each leaves its whole note before the code it
//! interrupted continues, and none delivers, since all of them find `inside` set.

use super::{Key, WaiterTable};
#[cfg(not(loom))]
use real as state;

/// A thread inside a bucket, or two, or all of them; never nested.
pub(super) struct Section<'a> {
    waiter_table: &'a WaiterTable,
}

impl<'a> Section<'a> {
    #[inline]
    pub(super) fn enter(waiter_table: &'a WaiterTable) -> Self {
        state::enter();
        Self { waiter_table }
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        state::leave();
        if state::has_notes() {
            self.deliver();
        }
    }
}

impl Section<'_> {
    #[cold]
    fn deliver(&self) {
        let waiter_table = self.waiter_table;
        while let Some(note) = state::next_note() {
            match note {
                Note::Wake { key, count, mask } => {
                    if let Some(found) = waiter_table.find_waiters(key) {
                        let claimed = waiter_table.claim(key, found, count, mask);
                        claimed.notify(&waiter_table.parkers);
                    }
                }
                Note::WakeAll => waiter_table.wake_everybody(),
            }
        }
    }
}

/// A wake that a handler could not make itself.
#[derive(Clone, Copy)]
pub(super) enum Note {
    Wake {
        key: Key,
        count: usize,
        mask: u64,
    },
    /// More notes than there is room for. Every waiter is woken, which futex(2) allows; no wake-up
    /// is lost.
    WakeAll,
}

/// Whether this code runs in a handler that has interrupted its own thread inside a bucket.
#[inline]
pub(crate) fn is_inside() -> bool {
    state::is_inside()
}

/// Leaves a wake for the interrupted thread to make.
pub(crate) fn leave_note(key: Key, count: usize, mask: u64) {
    debug_assert!(is_inside());
    state::leave_note(Note::Wake { key, count, mask });
}

#[cfg(not(loom))]
mod real {
    use super::Note;
    use core::cell::Cell;
    use core::sync::atomic::{
        AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, compiler_fence,
    };

    const ROOM: usize = 8;

    struct State {
        inside: AtomicBool,
        /// The number of notes left; more than `ROOM` means that some found no room.
        left: AtomicUsize,
        notes: [Cell<Note>; ROOM],
    }

    thread_local! {
        // No destructor and a constant initial value: usable at any moment, in handlers too.
        static STATE: State = const {
            State {
                inside: AtomicBool::new(false),
                left: AtomicUsize::new(0),
                notes: [const { Cell::new(Note::WakeAll) }; ROOM],
            }
        };
    }

    #[inline]
    pub(super) fn enter() {
        STATE.with(|state| {
            debug_assert!(!state.inside.load(Relaxed), "sections do not nest");
            state.inside.store(true, Relaxed);
        });
        compiler_fence(SeqCst);
    }

    #[inline]
    pub(super) fn leave() {
        compiler_fence(SeqCst);
        STATE.with(|state| state.inside.store(false, Relaxed));
        compiler_fence(SeqCst);
    }

    #[inline]
    pub(super) fn is_inside() -> bool {
        STATE.with(|state| state.inside.load(Relaxed))
    }

    pub(super) fn leave_note(note: Note) {
        STATE.with(|state| {
            // One step, so that a handler that interrupts this one takes another place.
            let place = state.left.fetch_add(1, Relaxed);
            if let Some(free) = state.notes.get(place) {
                free.set(note);
            }
        });
    }

    #[inline]
    pub(super) fn has_notes() -> bool {
        STATE.with(|state| state.left.load(Relaxed)) != 0
    }

    /// The next note to deliver. The thread is outside, so no handler leaves one meanwhile.
    pub(super) fn next_note() -> Option<Note> {
        STATE.with(|state| {
            let left = state.left.load(Relaxed);
            match left {
                0 => None,
                1..=ROOM => {
                    state.left.store(left - 1, Relaxed);
                    Some(state.notes[left - 1].get())
                }
                _ => {
                    state.left.store(0, Relaxed);
                    Some(Note::WakeAll)
                }
            }
        })
    }
}

/// Models have no signals.
#[cfg(loom)]
mod state {
    use super::Note;

    pub(super) fn enter() {}
    pub(super) fn leave() {}
    pub(super) fn is_inside() -> bool {
        false
    }
    pub(super) fn leave_note(_note: Note) {}
    pub(super) fn has_notes() -> bool {
        false
    }
    pub(super) fn next_note() -> Option<Note> {
        None
    }
}
