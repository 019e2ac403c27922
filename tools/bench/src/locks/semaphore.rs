//! Semaphores: `sem_t` from the C library and from the drop-in, and ours.
//!
//! Rust's standard library, parking_lot, nsync and absl have no semaphore.

use super::glibc;
use super::pthread::Library;

/// A counting semaphore.
pub trait BenchSemaphore: Send + Sync + Sized + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Creates a semaphore of this value.
    fn new(value: u32) -> Self;
    /// Decrements the value, waiting until it is positive.
    fn wait(&self);
    /// Increments the value and wakes one waiter.
    fn post(&self);
}

impl<L: Library> BenchSemaphore for glibc::Semaphore<L> {
    const NAME: &'static str = if L::IS_DROP_IN { "drop-in" } else { "glibc" };

    fn new(value: u32) -> Self {
        Self::with_value(value)
    }

    #[inline]
    fn wait(&self) {
        Self::wait(self);
    }

    #[inline]
    fn post(&self) {
        Self::post(self);
    }
}

/// Ours.
#[derive(Debug)]
pub struct Ours(waitword::Semaphore);

impl BenchSemaphore for Ours {
    const NAME: &'static str = "waitword";

    fn new(value: u32) -> Self {
        Self(waitword::Semaphore::new(value))
    }

    #[inline(never)]
    fn wait(&self) {
        self.0.wait();
    }

    #[inline(never)]
    fn post(&self) {
        let posted = self.0.post();
        debug_assert!(posted.is_ok());
    }
}

/// Calls `$build`, a function generic over [`BenchSemaphore`], for every semaphore; the results are
/// a `Vec`.
macro_rules! every_semaphore {
    ($build:ident $arguments:tt) => {{
        use crate::locks::{glibc, pthread, semaphore};
        let mut all = vec![
            $build::<glibc::Semaphore> $arguments,
            $build::<semaphore::Ours> $arguments,
        ];
        if pthread::is_loaded() {
            all.push($build::<glibc::Semaphore<pthread::DropIn>> $arguments);
        }
        all
    }};
}
pub(crate) use every_semaphore;
