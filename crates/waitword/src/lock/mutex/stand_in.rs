//! What the adaptive flavour stands for in this process.
//!
//! Mutexes that nobody chose a flavour for are adaptive: eight zero bytes are one, so a drop-in for other locks, whose static
//! initialisers are zeros, cannot write anything else into them. Who wants all of these to wait in another way says so here.
//!
//! It is asked on contended paths only, each time anew. The three flavours work on the same word and may meet on one mutex
//! (they do for a moment if this is set while a mutex is in use): an unlock of any of them serves successor, reservation and parked
//! waiters as it finds them, and a waiter goes on as what it was woken as.

use super::{LockError, PosixFlavour};
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

static STANDS_FOR: AtomicU8 = AtomicU8::new(0);

impl PosixFlavour {
    /// Has all mutexes of the adaptive flavour in this process, which is the one that they have unless told otherwise, wait as those of
    /// this flavour do; [`Adaptive`](Self::Adaptive) takes that back. Best called before the first lock.
    ///
    /// Meant for programs that try out a flavour without being rebuilt (`WAITWORD_MUTEX` of the pthread drop-in).
    ///
    /// # Errors
    /// [`LockError::Invalid`] for [`PriorityInheriting`](Self::PriorityInheriting): such a mutex is made of other words.
    pub(crate) fn stand_in_for_adaptive(self) -> Result<(), LockError> {
        if self == Self::PriorityInheriting {
            return Err(LockError::Invalid);
        }
        STANDS_FOR.store(self.bits() as u8, Relaxed);
        Ok(())
    }

    /// What it stands for: itself, but for the adaptive one.
    #[inline]
    pub(super) fn or_stand_in(self) -> Self {
        match self {
            // Relaxed: each answer is right.
            Self::Adaptive if !cfg!(loom) => Self::from_bits(STANDS_FOR.load(Relaxed).into()),
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

    /// The setting is the process's, so all of it is one test.
    #[test]
    fn an_adaptive_mutex_waits_as_it_is_told_and_a_change_loses_nobody() {
        static MUTEX: RawPosixMutex = RawPosixMutex::new();
        static SECTIONS: AtomicUsize = AtomicUsize::new(0);
        let chosen = crate::PosixMutexOptions::new()
            .flavour(PosixFlavour::Throughput)
            .build_raw();
        assert_eq!(
            PosixFlavour::PriorityInheriting.stand_in_for_adaptive(),
            Err(LockError::Invalid)
        );
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
            for flavour in [
                PosixFlavour::WaitWake,
                PosixFlavour::Throughput,
                PosixFlavour::Adaptive,
            ]
            .iter()
            .cycle()
            .take_while(|_| Instant::now() < until)
            {
                flavour.stand_in_for_adaptive().unwrap();
                assert_eq!(MUTEX.flavour(), *flavour);
                assert_eq!(chosen.flavour(), PosixFlavour::Throughput);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        PosixFlavour::Adaptive.stand_in_for_adaptive().unwrap();
        assert!(SECTIONS.load(SeqCst) > 0);
        assert!(!MUTEX.is_locked());
        MUTEX.destroy().unwrap();
    }
}
