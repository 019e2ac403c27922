//! Why a measurement failed.

use core::fmt;

/// Why a measurement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The workload's own check failed, or the workload could not be set up.
    Failed(String),
    /// Something is not installed: what is missing, and how to install it.
    Missing(String),
    /// Other processes used the machine all the time.
    Disturbed(String),
    /// The user wants to stop.
    Stopped,
}

impl Failure {
    /// A [`Failure::Failed`] with this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Missing(message) | Self::Disturbed(message) => {
                f.write_str(message)
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// Fails unless `condition` holds. Workloads use this to check their own work.
///
/// # Errors
/// [`Failure::Failed`] with the message if the condition does not hold.
pub fn check(condition: bool, message: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(Failure::new(message())) }
}
