//! Records, on request, every choice that depends on the seed alone. These choices are what a slice
//! repeats when it is run again.

use crate::protocol::CHOICES;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// See the module documentation.
pub(crate) struct Choices(Option<File>);

impl Choices {
    /// Writes to the file that the supervisor named, if any.
    pub(crate) fn from_environment() -> Self {
        let name = std::env::var_os(CHOICES);
        let open = |name| OpenOptions::new().create(true).append(true).open(name);
        Self(name.and_then(|name| open(name).ok()))
    }

    pub(crate) fn note(&self, choice: impl Display) {
        if let Some(mut file) = self.0.as_ref() {
            // One write call per line, so that lines of several threads do not mix. On a full disk
            // the file is just shorter.
            let _ = file.write_all(format!("{choice}\n").as_bytes());
        }
    }
}
