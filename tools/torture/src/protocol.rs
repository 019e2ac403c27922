//! What the supervisor and a scenario's process have agreed on.

/// The environment variable that marks a process as a scenario's.
pub(crate) const VARIABLE: &str = "WAITWORD_TORTURE_SCENARIO";

/// The environment variable with the name of the file to which choices are written.
pub(crate) const CHOICES: &str = "WAITWORD_TORTURE_CHOICES";

/// The exit status of a scenario that found something wrong.
pub(crate) const VIOLATED: u8 = 71;
