//! What a measurement knows about the run that it belongs to.

use crate::settings::Settings;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// What a measurement knows about the run that it belongs to.
#[derive(Clone, Debug)]
pub struct Context {
    /// The user's settings.
    pub settings: Settings,
    stop: Arc<AtomicBool>,
    progress: Arc<AtomicU64>,
    measured: Arc<Mutex<String>>,
}

impl Context {
    /// A run with these settings, which ends early when `stop` becomes true.
    pub fn new(settings: Settings, stop: Arc<AtomicBool>) -> Self {
        Self { settings, stop, progress: Arc::default(), measured: Arc::default() }
    }

    /// Tells the watchdog what is being measured from now on: a case, and one of its contenders.
    pub fn measures(&self, what: String) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// What is being measured; empty before the first measurement.
    pub fn measured(&self) -> String {
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.clone()
    }

    /// Tells the watchdog that there was progress.
    pub fn progressed(&self) {
        self.progress.fetch_add(1, Relaxed);
    }

    /// How often there was progress so far.
    pub fn progress(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    /// Whether the user wants to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}
