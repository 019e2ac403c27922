//! The short spin before a waiter queues, and giving way for a while.
//!
//! Most sections are shorter than a sleep, so a waiter looks a few times first, ever less often: each look fetches the word's line
//! from whoever holds the lock.
//!
//! # Giving way
//!
//! Two threads that do little else than take one lock for tens of nanoseconds spend most of their time fetching its line from each
//! other: both together do a third of what one alone would. Nobody waits long, so a waiter finds the lock free after a
//! look or two, takes it, and soon waits again. A thread to which that has happened a few times in a row is **hot**. It watches the lock
//! for a microsecond, and if it sees it held most of the time, leaves it alone for some, twice as long as a sleep would take:
//! the others work undisturbed. (Anderson's backoff, made to work by the hundred; Dice's "Malthusian locks".) Then it goes on,
//! and as likely as not it is another that gives way next. That it gave way cools no thread: what counts is how soon it waits again.
//!
//! What is remembered is the thread's own, and touched only by waiters.

pub(super) use real::{Spin, crowd};

#[cfg(not(loom))]
mod real {
    use crate::park::spin;
    use crate::sys::clock::{Clock, now};
    use core::cell::Cell;
    use core::hint::spin_loop;

    /// For how many nanoseconds a waiter looks, at least, and the longest pause between two looks.
    const BUDGET: u64 = 10_000;
    const LONGEST_PAUSE: u64 = 800;
    /// A spin that ended in the queue makes the next one half as long, so often at most: its thread waits for somebody
    /// who sleeps or has lost its CPU.
    const MOST_HALVINGS: u32 = 5;

    /// Waits that make a thread hot ...
    const HOT: u32 = 4;
    const HOTTEST: u32 = 8;
    /// ... if they came within so many nanoseconds of the last and were no longer than that.
    const CLOSE: u64 = 5_000;
    const SHORT: u64 = 400;
    /// A hot thread looks so often, with a short pause, whether the lock is held,
    const LOOKS: u32 = 16;
    const LOOK_PAUSE: u64 = 40;
    /// and if it is, as often as this at least, leaves it alone for so many nanoseconds.
    const MOST_OF_THE_TIME: u32 = LOOKS / 3;
    const WAY: u64 = 25_000;

    #[derive(Clone, Copy)]
    struct Lately {
        /// When the last wait ended that was no longer than a spin.
        ended: u64,
        heat: u32,
        /// Spins in a row that ended in the queue.
        in_vain: u32,
    }

    thread_local! {
        // No destructor and a constant start: usable at any moment of a thread's life.
        static LATELY: Cell<Lately> = const { Cell::new(Lately { ended: 0, heat: 0, in_vain: 0 }) };
    }

    /// One wait's spin.
    pub(in super::super) struct Spin {
        /// When it found the lock taken: nanoseconds, by the clock.
        came: u64,
        /// When it began to look, having given way if it did; 0: not begun.
        began: u64,
        /// Pause instructions before the next look, and how many are left.
        pauses: u32,
        left: u32,
    }

    fn pause(pauses: u32) {
        for _ in 0..pauses {
            spin_loop();
        }
    }

    fn nanoseconds() -> u64 {
        now(Clock::Monotonic).as_nanos() as u64
    }

    impl Spin {
        pub(in super::super) fn new() -> Self {
            Self {
                came: 0,
                began: 0,
                pauses: 1,
                left: 0,
            }
        }

        /// Waits a little; false once it has been enough. `is_held`: whether anybody holds the lock now.
        #[inline]
        pub(in super::super) fn again(&mut self, is_held: impl Fn() -> bool) -> bool {
            if self.began == 0 {
                if !spin::is_allowed() {
                    return false;
                }
                self.begin(is_held);
            }
            if self.left == 0 {
                let lately = LATELY.get();
                let in_vain = lately.in_vain + 1;
                LATELY.set(Lately {
                    in_vain: in_vain.min(MOST_HALVINGS),
                    ..lately
                });
                return false;
            }
            let pauses = self.pauses.min(self.left);
            pause(pauses);
            self.left -= pauses;
            self.pauses = (self.pauses * 2).min(spin::pauses(LONGEST_PAUSE));
            true
        }

        fn begin(&mut self, is_held: impl Fn() -> bool) {
            let Lately { heat, in_vain, .. } = LATELY.get();
            self.came = nanoseconds();
            self.began = self.came;
            if heat >= HOT {
                give_way(is_held);
                self.began = nanoseconds();
            }
            self.left = spin::pauses(BUDGET >> in_vain);
        }

        /// It has got what it waited for, without sleeping.
        pub(in super::super) fn won(&self) {
            if self.began == 0 {
                return;
            }
            let now = nanoseconds();
            let Lately { ended, heat, .. } = LATELY.get();
            let again = self.came.saturating_sub(ended) < CLOSE && now - self.began < SHORT;
            let heat = if again {
                (heat + 1).min(HOTTEST)
            } else {
                heat.saturating_sub(1)
            };
            LATELY.set(Lately {
                ended: now,
                heat,
                in_vain: 0,
            });
        }
    }

    /// A reader and others are in each other's way, though none of them waits.
    #[cold]
    pub(in super::super) fn crowd(is_held: impl Fn() -> bool) {
        let Lately {
            ended,
            heat,
            in_vain,
        } = LATELY.get();
        let now = nanoseconds();
        let heat = match now.saturating_sub(ended) {
            ..CLOSE => (heat + 1).min(HOTTEST),
            _ => heat.saturating_sub(1),
        };
        LATELY.set(Lately {
            ended: now,
            heat,
            in_vain,
        });
        if heat >= HOT && spin::is_allowed() {
            give_way(is_held);
        }
    }

    #[cold]
    fn give_way(is_held: impl Fn() -> bool) {
        let between = spin::pauses(LOOK_PAUSE);
        let mut held = 0;
        for _ in 0..LOOKS {
            pause(between);
            held += u32::from(is_held());
        }
        if held >= MOST_OF_THE_TIME {
            pause(spin::pauses(WAY));
        } else {
            // There is room for this one too.
            let lately = LATELY.get();
            LATELY.set(Lately { heat: 0, ..lately });
        }
    }
}

/// In a model nobody spins: it would only add states.
#[cfg(loom)]
mod real {
    pub(in super::super) struct Spin;

    impl Spin {
        pub(in super::super) fn new() -> Self {
            Self
        }

        pub(in super::super) fn again(&mut self, _: impl Fn() -> bool) -> bool {
            false
        }

        pub(in super::super) fn won(&self) {}
    }

    pub(in super::super) fn crowd(_: impl Fn() -> bool) {}
}
