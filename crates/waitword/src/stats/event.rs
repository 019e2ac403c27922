//! The events that are counted.

use core::fmt;

/// Declares the events together with the snapshot that shows them.
macro_rules! events {
    ($($(#[$meaning:meta])* $event:ident $field:ident,)*) => {
        /// A counted event: see the field of the same name in [`Snapshot`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event {
            $($event,)*
        }

        impl Event {
            pub(super) const COUNT: usize = [$(Self::$event,)*].len();
        }

        /// How often each event has happened in all threads of the process since
        /// [`enable`](super::enable).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Snapshot {
            $($(#[$meaning])* pub $field: u64,)*
        }

        impl Snapshot {
            pub(super) fn read(count: impl Fn(Event) -> u64) -> Self {
                Self { $($field: count(Event::$event),)* }
            }

            /// The events counted since an earlier snapshot.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field.wrapping_sub(earlier.$field),)* }
            }
        }
    };
}

events! {
    /// Acquisitions reported by [`add_locks`](super::add_locks); this library does not count them.
    Locks locks,
    /// Mutexes and rwlocks that were found held, so that the thread had to spin or sleep.
    Contended contended,
    /// Waits for a lock, a condvar or a private futex that went to sleep in the kernel, after a
    /// short spin in vain or without one.
    Sleeps sleeps,
    /// Threads woken, or kept from falling asleep, by an unlock, a signal or a futex wake.
    Wakes wakes,
    /// Waiters moved from one queue to another without being woken.
    Requeues requeues,
    /// Locks that were handed off to a particular waiter, so that no other thread could take them.
    HandOffs hand_offs,
    /// Broadcasts that woke fewer threads than were waiting.
    HerdsAvoided herds_avoided,
    /// The number of waiters that these broadcasts did not wake at once.
    HerdWaiters herd_waiters,
    /// Waiters for a mutex that were woken and had to sleep again, because another thread was
    /// faster.
    SleptAgain slept_again,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            locks,
            contended,
            sleeps,
            wakes,
            requeues,
            hand_offs,
            herds_avoided,
            herd_waiters,
            slept_again,
        } = self;
        write!(
            f,
            "{locks} locks, {contended} contended, {sleeps} sleeps, {wakes} wakes ({slept_again} \
             in vain), {requeues} requeues, {hand_offs} hand-offs, {herds_avoided} herds avoided \
             ({herd_waiters} waiters)"
        )
    }
}
