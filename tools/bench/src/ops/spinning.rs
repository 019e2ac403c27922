//! futex(2) behind a spin, as a runtime would write it. Our futex spins, so it must also be
//! compared with one that spins.
//!
//! A waiter spins on the word for as long as ours would ([`waitword::spin`]) and only then sleeps.
//! Sleepers are counted, so a wake costs one load when no thread sleeps. There is one count for all
//! words, so use this for one word at a time.

use super::futexes::{Futexes, Waited};
use super::kernel::Kernel;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;
use waitword::spin;

static SLEEPERS: AtomicUsize = AtomicUsize::new(0);
const KERNEL: Kernel<true> = Kernel;
/// Checks of the word between two clock readings.
const LOOKS: usize = 32;

/// The kernel's futex on private words, with a spin before it.
#[derive(Clone, Copy, Debug)]
pub struct Spinning;

impl Futexes for Spinning {
    type Word = AtomicU32;

    fn name(self) -> String {
        "futex(2), spinning".to_owned()
    }

    #[inline(always)]
    fn wait(self, word: &AtomicU32, expected: u64) -> Waited {
        let (budget, started) = (spin::budget(), Instant::now());
        loop {
            for _ in 0..LOOKS {
                if u64::from(word.load(SeqCst)) != expected {
                    return Waited::Mismatch;
                }
                spin_loop();
            }
            if started.elapsed() >= budget {
                break;
            }
        }
        // Count ourselves before the kernel checks the word: a waker has changed the word before it
        // reads this count.
        SLEEPERS.fetch_add(1, SeqCst);
        let waited = KERNEL.wait(word, expected);
        SLEEPERS.fetch_sub(1, SeqCst);
        waited
    }

    #[inline(always)]
    fn wake(self, word: &AtomicU32, count: usize) -> usize {
        match SLEEPERS.load(SeqCst) {
            0 => 0,
            _ => KERNEL.wake(word, count),
        }
    }

    fn requeue(self, from: &AtomicU32, to: &AtomicU32, wake: usize, moved: usize) -> usize {
        KERNEL.requeue(from, to, wake, moved)
    }

    fn wake_op(self, first: &AtomicU32, second: &AtomicU32) -> usize {
        KERNEL.wake_op(first, second)
    }
}
