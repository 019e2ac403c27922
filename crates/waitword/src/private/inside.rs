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
//!
//! A thread inside a bucket also asks for a time slice extension, where there are any
//! (`sys/time_slice.rs`). A process without them pays for one look at a flag when a thread enters,
//! and for nothing when it leaves: whether there is a request to end is in the word that counts the
//! notes.

use super::key::Key;
use crate::atomic::thread_static;
use crate::sys::time_slice;
use core::cell::Cell;
use core::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, compiler_fence,
};

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

const ROOM: usize = 8;

/// In `State::left`, above the number of notes: the thread has asked for an extension in this
/// section.
const REQUESTED: usize = 1 << (usize::BITS - 1);
/// The number of notes.
const NOTES: usize = REQUESTED - 1;

/// Whether threads of this process may have time slice extensions. Relaxed: a thread that does not
/// see it yet asks for none.
static EXTENSIONS: AtomicBool = AtomicBool::new(false);

/// Decides whether threads ask for time slice extensions from now on. Called for the first table.
pub(super) fn decide_on_extensions() {
    EXTENSIONS.store(time_slice::is_possible(), Relaxed);
}

struct State {
    inside: AtomicBool,
    /// The number of notes left; more than `ROOM` means that some found no room. And `REQUESTED`.
    left: AtomicUsize,
    notes: [Cell<Note>; ROOM],
}

thread_static! {
    // No destructor and a constant initial value: usable at any moment, in handlers too.
    static STATE: State = const {
        State {
            inside: AtomicBool::new(false),
            left: AtomicUsize::new(0),
            notes: [const { Cell::new(Note::WakeAll) }; ROOM],
        }
    };
}

/// The thread is about to lock a bucket, or two, or all of them. Sections do not nest.
#[inline]
pub(super) fn enter() {
    STATE.with(|state| {
        debug_assert!(!state.inside.load(Relaxed), "sections do not nest");
        state.inside.store(true, Relaxed);
        if EXTENSIONS.load(Relaxed) {
            begin_extension(state);
        }
    });
    compiler_fence(SeqCst);
}

/// Asks for a time slice extension, if the thread can.
#[cold]
fn begin_extension(state: &State) {
    if time_slice::request() {
        // One step, here and below: a handler may leave a note at any time.
        state.left.fetch_or(REQUESTED, Relaxed);
    }
}

/// The thread has unlocked its buckets.
#[inline]
pub(super) fn leave() {
    compiler_fence(SeqCst);
    STATE.with(|state| state.inside.store(false, Relaxed));
    compiler_fence(SeqCst);
}

/// Whether this code runs in a handler that has interrupted its own thread inside a bucket.
#[inline]
pub(crate) fn is_inside() -> bool {
    STATE.with(|state| state.inside.load(Relaxed))
}

/// Leaves a wake for the interrupted thread to make.
pub(crate) fn leave_note(key: Key, count: usize, mask: u64) {
    debug_assert!(is_inside());
    let note = Note::Wake { key, count, mask };
    STATE.with(|state| {
        // One step, so that a handler that interrupts this one takes another place.
        let place = state.left.fetch_add(1, Relaxed) & NOTES;
        if let Some(free) = state.notes.get(place) {
            free.set(note);
        }
    });
}

/// Whether there is anything to do after a section: an extension to end, or notes to deliver.
#[inline]
pub(super) fn has_left_something() -> bool {
    STATE.with(|state| state.left.load(Relaxed)) != 0
}

/// Gives back the rest of the time slice extension, if the section that has just been left asked
/// for one.
pub(super) fn end_extension() {
    STATE.with(|state| {
        if state.left.load(Relaxed) & REQUESTED != 0 {
            state.left.fetch_and(!REQUESTED, Relaxed);
            time_slice::release();
        }
    });
}

/// The next note to deliver. The thread is outside, so no handler leaves one meanwhile.
pub(super) fn next_note() -> Option<Note> {
    STATE.with(|state| {
        let left = state.left.load(Relaxed);
        match left & NOTES {
            0 => None,
            notes @ 1..=ROOM => {
                state.left.store(left - 1, Relaxed);
                Some(state.notes[notes - 1].get())
            }
            _ => {
                state.left.store(left & !NOTES, Relaxed);
                Some(Note::WakeAll)
            }
        }
    })
}
