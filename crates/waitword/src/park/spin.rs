//! The short spin before a sleep: how long it may be, who may do it, and when it has stopped paying.
//!
//! To sleep and be woken on another CPU costs 5 to 15 µs; a waiter that is woken sooner than that is
//! better off awake. So a waiter spins for about as long as a sleep would cost ([`DEFAULT_NANOSECONDS`]), by
//! the clock and not by a number of pauses, since a pause instruction takes 10 to 140 cycles by CPU: how
//! many pauses fit is measured once.
//!
//! Three things keep spinning from doing harm:
//! * never more spinners than CPUs less one, process-wide: somebody must run whom they wait for;
//! * a parker whose last spins were in vain stops, and tries again only now and then;
//! * a budget of zero turns it off (`WAITWORD_SPIN_NS=0`, [`set_budget`]).

#[cfg(not(loom))]
pub(crate) use real::{SpinHistory, budget, is_allowed, pauses, set_budget};

#[cfg(loom)]
pub(crate) use model::{SpinHistory, is_allowed, pauses};

#[cfg(not(loom))]
mod real {
    use crate::sys;
    use crate::sys::clock::{Clock, now};
    use core::hint::spin_loop;
    use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
    use core::time::Duration;

    /// About what a sleep and a wake-up across CPUs cost.
    const DEFAULT_NANOSECONDS: u64 = 10_000;
    /// A budget beyond this is a mistake, not a wish.
    const MOST_NANOSECONDS: u64 = 1_000_000_000;
    /// Spins in vain in a row after which a parker is slow to try again.
    const DISCOURAGED: u32 = 4;
    /// ... namely every so many waits.
    const RETRY_EVERY: u32 = 64;

    const UNKNOWN: u64 = u64::MAX;

    static BUDGET_NANOSECONDS: AtomicU64 = AtomicU64::new(UNKNOWN);
    /// Looks that fit into 1024 ns.
    static LOOKS_PER_1024_NS: AtomicU64 = AtomicU64::new(UNKNOWN);
    static MOST_SPINNERS: AtomicU32 = AtomicU32::new(0);

    pub(crate) fn budget() -> Duration {
        Duration::from_nanos(budget_nanoseconds())
    }

    #[inline]
    fn budget_nanoseconds() -> u64 {
        match BUDGET_NANOSECONDS.load(Relaxed) {
            UNKNOWN => initialise(),
            nanoseconds => nanoseconds,
        }
    }

    pub(crate) fn set_budget(budget: Duration) {
        let nanoseconds = u64::try_from(budget.as_nanos()).unwrap_or(MOST_NANOSECONDS);
        BUDGET_NANOSECONDS.store(nanoseconds.min(MOST_NANOSECONDS), Relaxed);
    }

    /// The budget at first use. Two threads may do this at once: they come to the same result.
    #[cold]
    fn initialise() -> u64 {
        let wanted = sys::env::number(c"WAITWORD_SPIN_NS").unwrap_or(DEFAULT_NANOSECONDS);
        let wanted = wanted.min(MOST_NANOSECONDS);
        // A budget that was set meanwhile stays.
        match BUDGET_NANOSECONDS.compare_exchange(UNKNOWN, wanted, Relaxed, Relaxed) {
            Ok(_) => wanted,
            Err(set) => set,
        }
    }

    /// Whether a thread may spin for another at all: there is a second CPU, and nobody has turned it off.
    #[inline]
    pub(crate) fn is_allowed() -> bool {
        looks_per_1024_ns();
        budget_nanoseconds() != 0 && MOST_SPINNERS.load(Relaxed) > 0
    }

    /// How many pause instructions take about that long; at least 1.
    #[inline]
    pub(crate) fn pauses(nanoseconds: u64) -> u32 {
        (nanoseconds * looks_per_1024_ns() / 1024).clamp(1, u32::MAX.into()) as u32
    }

    #[inline]
    fn looks_per_1024_ns() -> u64 {
        match LOOKS_PER_1024_NS.load(Relaxed) {
            UNKNOWN => calibrate(),
            looks => looks,
        }
    }

    #[cold]
    fn calibrate() -> u64 {
        const LOOKS: u64 = 64;
        let start = now(Clock::Monotonic);
        for _ in 0..LOOKS {
            spin_loop();
        }
        let took = (now(Clock::Monotonic) - start).as_nanos().max(1) as u64;
        let looks = (LOOKS * 1024 / took).max(1);
        MOST_SPINNERS.store(sys::sched::cpus() - 1, Relaxed);
        LOOKS_PER_1024_NS.store(looks, Relaxed);
        looks
    }

    /// How the spins on one parker went lately. Only a guess is kept here, so everything is Relaxed.
    pub(crate) struct SpinHistory {
        in_vain: AtomicU32,
        waits: AtomicU32,
    }

    impl SpinHistory {
        /// Spins, if that is allowed and has been worth it, until `done`; whether it is. `spinners`
        /// counts the process's spinners.
        #[inline]
        pub(crate) fn spin_until(&self, spinners: &AtomicU32, done: impl Fn() -> bool) -> bool {
            if done() {
                return true;
            }
            let nanoseconds = budget_nanoseconds();
            nanoseconds != 0 && self.worth_a_try() && self.spin(nanoseconds, spinners, done)
        }

        fn spin(&self, nanoseconds: u64, spinners: &AtomicU32, done: impl Fn() -> bool) -> bool {
            let per_1024_ns = looks_per_1024_ns();
            if spinners.fetch_add(1, Relaxed) >= MOST_SPINNERS.load(Relaxed) {
                spinners.fetch_sub(1, Relaxed);
                return false;
            }
            let looks = (nanoseconds * per_1024_ns / 1024).max(1);
            let found = (0..looks).any(|_| {
                spin_loop();
                done()
            });
            spinners.fetch_sub(1, Relaxed);
            let in_vain = if found {
                0
            } else {
                self.in_vain.load(Relaxed).saturating_add(1)
            };
            self.in_vain.store(in_vain, Relaxed);
            found
        }

        fn worth_a_try(&self) -> bool {
            let waits = self.waits.load(Relaxed).wrapping_add(1);
            self.waits.store(waits, Relaxed);
            self.in_vain.load(Relaxed) < DISCOURAGED || waits % RETRY_EVERY == 0
        }
    }
}

#[cfg(loom)]
mod model {
    use crate::atomic::AtomicU32;

    pub(crate) fn is_allowed() -> bool {
        false
    }

    pub(crate) fn pauses(_: u64) -> u32 {
        0
    }

    /// In a model nobody spins: it would only add states.
    pub(crate) struct SpinHistory;

    impl SpinHistory {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn spin_until(&self, _: &AtomicU32, done: impl Fn() -> bool) -> bool {
            done()
        }
    }
}
