//! What an adaptive mutex remembers: whether spinning for it has been worth while.
//!
//! The protocol (`throughput.rs`) adapts to what can be seen at once: whether the holder runs, whether the lock is taken
//! again and again, who waits for how long. What cannot be seen at once is how long the holder will keep the lock: holders
//! that do I/O or sleep are not worth spinning for. So after [`DISCOURAGED`] heirs in a row who spun in vain, the next
//! ones park at once, as those of a wait-wake mutex do, and every [`TRY_EVERY`]th tries again; one success, and all do.
//!
//! | bits of `data` | meaning |
//! |------|---------|
//! | 0-3  | heirs in a row who spun in vain, up to 15 |
//! | 4-7  | heirs since one tried |
//!
//! Only a guess is kept. Every load and store is Relaxed and orders nothing: the heir alone writes
//! these bits, others write theirs beside them, and a lost update does no harm. The flavour and the
//! scope in the same word never change, so any store has them right.

use super::RawPosixMutex;
use crate::atomic::Ordering;

const IN_VAIN: u32 = 0xf;
const SINCE_SHIFT: u32 = 4;
const SINCE: u32 = 0xf << SINCE_SHIFT;

const DISCOURAGED: u32 = 3;
const TRY_EVERY: u32 = 16;

impl RawPosixMutex {
    /// Whether the heir is to spin.
    pub(super) fn history_says_spin(&self) -> bool {
        let data = self.data.load(Ordering::Relaxed);
        if !self.is_adaptive() || data & IN_VAIN < DISCOURAGED {
            return true;
        }
        let since = ((data & SINCE) >> SINCE_SHIFT) + 1;
        let next = data & !SINCE | (since % TRY_EVERY) << SINCE_SHIFT;
        self.data.store(next, Ordering::Relaxed);
        since == TRY_EVERY
    }

    /// Notes how the heir's spin went.
    pub(super) fn remember_spin(&self, won: bool) {
        if !self.is_adaptive() {
            return;
        }
        let data = self.data.load(Ordering::Relaxed);
        let in_vain = if won { 0 } else { (data & IN_VAIN) + 1 };
        let next = data & !IN_VAIN | in_vain.min(IN_VAIN);
        if next != data {
            self.data.store(next, Ordering::Relaxed);
        }
    }
}
