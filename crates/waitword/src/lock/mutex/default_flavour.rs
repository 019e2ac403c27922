//! The default-flavour override: how adaptive mutexes of this process wait.
//!
//! A mutex without a chosen flavour is adaptive, and eight zero bytes are such a mutex. So a
//! drop-in for other locks, whose static initialisers are zeros, cannot select another flavour in
//! them. This file lets a process make all of these mutexes wait in another way.
//!
//! The setting is read on contended paths only, and every time. The three flavours work on the
//! same word and may meet on one mutex. (They do for a moment if the setting changes while a mutex
//! is in use.) An unlock of any flavour serves the successor, the reservation and the parked
//! waiters as it finds them, and a waiter continues in the role that it was woken in.

use super::{LockError, PosixFlavour};
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

static OVERRIDE: AtomicU8 = AtomicU8::new(0);

impl PosixFlavour {
    /// Makes all adaptive mutexes of this process wait like mutexes of this flavour. Adaptive is
    /// the flavour of every mutex for which no other was chosen. [`Adaptive`](Self::Adaptive) ends
    /// the override. Best called before the first lock.
    ///
    /// For programs that try a flavour without being rebuilt (`WAITWORD_MUTEX` of the pthread
    /// drop-in).
    ///
    /// # Errors
    /// [`LockError::Invalid`] for [`PriorityInheriting`](Self::PriorityInheriting): such a mutex
    /// has different words.
    pub(crate) fn override_adaptive(self) -> Result<(), LockError> {
        if self == Self::PriorityInheriting {
            return Err(LockError::Invalid);
        }
        OVERRIDE.store(self.bits() as u8, Relaxed);
        Ok(())
    }

    /// This flavour, or for the adaptive one its override.
    #[inline]
    pub(super) fn or_override(self) -> Self {
        match self {
            // Relaxed: every value is a correct answer.
            Self::Adaptive => Self::from_bits(OVERRIDE.load(Relaxed).into()),
            chosen => chosen,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::RawPosixMutex;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    /// The setting belongs to the process, so this is one test.
    #[test]
    fn an_adaptive_mutex_obeys_the_override_and_a_change_loses_no_waiter() {
        static MUTEX: RawPosixMutex = RawPosixMutex::new();
        static SECTIONS: AtomicUsize = AtomicUsize::new(0);
        let chosen = crate::PosixMutexOptions::new().flavour(PosixFlavour::Throughput).build_raw();
        assert_eq!(PosixFlavour::PriorityInheriting.override_adaptive(), Err(LockError::Invalid));
        let until = Instant::now() + Duration::from_millis(300);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        MUTEX.lock();
                        let seen = SECTIONS.load(SeqCst);
                        std::hint::spin_loop();
                        SECTIONS.store(seen + 1, SeqCst);
                        // SAFETY: locked just above.
                        unsafe { MUTEX.unlock() };
                        if Instant::now() >= until {
                            break;
                        }
                    }
                });
            }
            for flavour in
                [PosixFlavour::WaitWake, PosixFlavour::Throughput, PosixFlavour::Adaptive]
                    .iter()
                    .cycle()
                    .take_while(|_| Instant::now() < until)
            {
                flavour.override_adaptive().unwrap();
                assert_eq!(MUTEX.flavour(), *flavour);
                assert_eq!(chosen.flavour(), PosixFlavour::Throughput);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        PosixFlavour::Adaptive.override_adaptive().unwrap();
        assert!(SECTIONS.load(SeqCst) > 0);
        assert!(!MUTEX.is_locked());
        MUTEX.destroy().unwrap();
    }
}
