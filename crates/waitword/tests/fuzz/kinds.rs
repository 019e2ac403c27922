//! Which kinds of waiters may wait on which word.
//!
//! Plain waiters and waiters with priority inheritance must not wait on one word at the same time:
//! the kernel's behaviour then depends on the order of their arrival, and the library's cannot
//! (`raw/pi.rs`). A step that would mix them is left out. So is a step that would move waiters
//! with priority inheritance to a word where plain ones wait, if the thread of one of them holds
//! that word: if that waiter comes first, the kernel returns EDEADLK, and the library EINVAL.

use super::program::{Address, Call};
use waitword_testkit::raw::op::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Inheriting,
}

/// A word and its scope.
type Place = (Address, bool);

/// A waiter, and all places where it may be queued.
struct Waiter {
    thread: usize,
    kind: Kind,
    places: Vec<Place>,
    /// The words that its thread held when the wait began.
    held: Vec<Address>,
    /// The address of its time.
    time: usize,
}

/// All waiters in one run of a program.
#[derive(Default)]
pub(crate) struct Kinds {
    waiters: Vec<Waiter>,
}

/// The effect of a call on queues.
enum Effect {
    Waits(Kind, Vec<Place>),
    Moves(Kind, Place, Place),
    Nothing,
}

fn command(op: i32) -> i32 {
    op & !(PRIVATE | CLOCK_REALTIME)
}

/// Whether it is an operation with priority inheritance.
pub(crate) fn inherits(op: i32) -> bool {
    matches!(
        command(op),
        LOCK_PI | UNLOCK_PI | TRYLOCK_PI | WAIT_REQUEUE_PI | CMP_REQUEUE_PI | LOCK_PI2
    )
}

/// Whether it is one of those that may sleep.
pub(crate) fn waits_inheriting(op: i32) -> bool {
    matches!(command(op), LOCK_PI | WAIT_REQUEUE_PI | LOCK_PI2)
}

/// Whether it measures its time on the wall clock without a flag.
pub(crate) fn goes_by_wall_clock(op: i32) -> bool {
    command(op) == LOCK_PI
}

fn effect(call: &Call) -> Effect {
    let is_private = |flags: u32| flags & PRIVATE as u32 != 0;
    match call {
        Call::Futex { op, word, second, .. } => {
            let private = is_private(*op as u32);
            let (first, second) = ((*word, private), (*second, private));
            match command(*op) {
                WAIT | WAIT_BITSET => Effect::Waits(Kind::Plain, vec![first]),
                // Refused where plain waiters wait.
                LOCK_PI | LOCK_PI2 => Effect::Waits(Kind::Inheriting, vec![]),
                WAIT_REQUEUE_PI => Effect::Waits(Kind::Inheriting, vec![first]),
                REQUEUE | CMP_REQUEUE => Effect::Moves(Kind::Plain, first, second),
                CMP_REQUEUE_PI => Effect::Moves(Kind::Inheriting, first, second),
                _ => Effect::Nothing,
            }
        }
        Call::Futex2Wait { word, flags, .. } => {
            Effect::Waits(Kind::Plain, vec![(*word, is_private(*flags))])
        }
        Call::Futex2Waitv { list, .. } => {
            let place = |entry: &super::program::Entry| (entry.word, is_private(entry.flags));
            Effect::Waits(Kind::Plain, list.entries.iter().map(place).collect())
        }
        Call::Futex2Requeue { list, .. } => match &list.entries[..] {
            [from, to, ..] => Effect::Moves(
                Kind::Plain,
                (from.word, is_private(from.flags)),
                (to.word, is_private(to.flags)),
            ),
            _ => Effect::Nothing,
        },
        Call::Futex2Wake { .. } => Effect::Nothing,
    }
}

impl Kinds {
    /// Whether the kinds stay separate if this call is made.
    pub(crate) fn allow(&self, call: &Call) -> bool {
        match effect(call) {
            Effect::Waits(kind, places) => {
                !places.into_iter().any(|place| self.has(|waiter| waiter.kind != kind, place))
            }
            Effect::Moves(Kind::Plain, from, to) => {
                let meet = self.has(|waiter| waiter.kind == Kind::Plain, from)
                    && self.has(|waiter| waiter.kind == Kind::Inheriting, to);
                !meet
            }
            // Refused where plain waiters wait.
            Effect::Moves(Kind::Inheriting, from, to) => {
                let by_holder = self.has(|waiter| waiter.held.contains(&to.0), from);
                let refused = self.has(|waiter| waiter.kind == Kind::Plain, to);
                !(by_holder && refused)
            }
            Effect::Nothing => true,
        }
    }

    fn has(&self, chosen: impl Fn(&Waiter) -> bool, place: Place) -> bool {
        let stands = |waiter: &Waiter| chosen(waiter) && waiter.places.contains(&place);
        self.waiters.iter().any(stands)
    }

    /// `thread`, which holds the words `held`, begins this call. Its time is at address `time`.
    pub(crate) fn begins(&mut self, thread: usize, held: Vec<Address>, call: &Call, time: usize) {
        let Effect::Waits(kind, mut places) = effect(call) else {
            return;
        };
        match call {
            Call::Futex { op, word, .. } if kind == Kind::Inheriting => {
                places.push((*word, op & PRIVATE != 0));
            }
            _ => {}
        }
        self.waiters.push(Waiter { thread, kind, places, held, time });
    }

    /// This call was made, and may have moved waiters.
    pub(crate) fn moves(&mut self, call: &Call) {
        if let Effect::Moves(kind, from, to) = effect(call) {
            let moved = |waiter: &&mut Waiter| waiter.kind == kind && waiter.places.contains(&from);
            for waiter in self.waiters.iter_mut().filter(moved) {
                waiter.places.push(to);
            }
        }
    }

    pub(crate) fn ends(&mut self, thread: usize) {
        self.waiters.retain(|waiter| waiter.thread != thread);
    }

    /// Whether a signal ends the thread's wait. A wait with priority inheritance begins again.
    pub(crate) fn ends_by_signal(&self, thread: usize) -> bool {
        let inherits = |waiter: &Waiter| waiter.thread == thread && waiter.kind == Kind::Inheriting;
        !self.waiters.iter().any(inherits)
    }

    /// The addresses of the times of all unfinished waits with priority inheritance.
    pub(crate) fn times(&self) -> impl Iterator<Item = usize> {
        let inherits = |waiter: &&Waiter| waiter.kind == Kind::Inheriting;
        self.waiters.iter().filter(inherits).map(|waiter| waiter.time)
    }
}
