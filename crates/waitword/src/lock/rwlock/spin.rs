//! The short spin before a lock's waiter queues: most sections are shorter than a sleep.
//!
//! The looks grow further apart, so that a spinner does not fetch the word's line from the holder at each step. On one CPU, or
//! with a spin budget of zero, nobody spins.

/// One wait's spin.
pub(super) struct Spin {
    looks: u32,
}

/// Looks before giving up, and the most pauses between two of them.
const MOST_LOOKS: u32 = 40;
const MOST_PAUSES: u32 = 32;

impl Spin {
    pub(super) fn new() -> Self {
        Self { looks: 0 }
    }

    /// Waits a little; false once it has been enough.
    #[inline]
    pub(super) fn again(&mut self) -> bool {
        if self.looks == 0 && !pays() || self.looks >= MOST_LOOKS {
            return false;
        }
        let pauses = (1 << (self.looks / 2).min(31)).min(MOST_PAUSES);
        for _ in 0..pauses {
            core::hint::spin_loop();
        }
        self.looks += 1;
        true
    }
}

/// Whether somebody else can run while this thread spins. In a model nobody spins: it would only add states.
#[cfg(loom)]
fn pays() -> bool {
    false
}

#[cfg(not(loom))]
fn pays() -> bool {
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    const UNKNOWN: u32 = 0;
    static CPUS: AtomicU32 = AtomicU32::new(UNKNOWN);
    let cpus = match CPUS.load(Relaxed) {
        UNKNOWN => {
            // Asked once: whoever is first stores what all would find.
            let cpus = crate::sys::sched::cpus();
            CPUS.store(cpus, Relaxed);
            cpus
        }
        known => known,
    };
    cpus > 1 && !crate::park::budget().is_zero()
}
