//! What is counted.

use core::fmt;

/// Declares the events and the snapshot that shows them, side by side.
macro_rules! events {
    ($($(#[$meaning:meta])* $event:ident $field:ident,)*) => {
        /// Something that is counted: see the field of the same name in [`Snapshot`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event {
            $($event,)*
        }

        impl Event {
            pub(super) const COUNT: usize = [$(Self::$event,)*].len();
        }

        /// How often what has happened, in all threads of the process, since [`enable`](super::enable).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Snapshot {
            $($(#[$meaning])* pub $field: u64,)*
        }

        impl Snapshot {
            pub(super) fn read(count: impl Fn(Event) -> u64) -> Self {
                Self { $($field: count(Event::$event),)* }
            }

            /// What was counted since an earlier one.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field.wrapping_sub(earlier.$field),)* }
            }
        }
    };
}

events! {
    /// Acquisitions, as told by [`add_locks`](super::add_locks): this library does not count them.
    Locks locks,
    /// Mutexes and rwlocks that were found taken, so that the thread had to spin or to sleep.
    Contended contended,
    /// Waits for a lock, a condvar or a private futex that went to sleep in the kernel: the short spin before was in vain, or
    /// there was none.
    Sleeps sleeps,
    /// Threads woken, or told not to fall asleep, by an unlock, a signal or a futex wake.
    Wakes wakes,
    /// Waiters moved from one queue to another without being woken.
    Requeues requeues,
    /// Locks that were left to a certain waiter, so that nobody else could take them.
    HandOffs hand_offs,
    /// Broadcasts that woke fewer than waited.
    HerdsAvoided herds_avoided,
    /// How many these did not wake at once.
    HerdWaiters herd_waiters,
    /// Waiters for a mutex that were woken and had to sleep again: another thread was faster.
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
            "{locks} locks, {contended} contended, {sleeps} sleeps, {wakes} wakes ({slept_again} in vain), \
             {requeues} requeues, {hand_offs} hand-offs, {herds_avoided} herds avoided ({herd_waiters} waiters)"
        )
    }
}
