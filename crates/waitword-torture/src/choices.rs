//! Writes down, on request, every choice that comes from the seed alone: what makes a slice the same slice when it is
//! run again.

use crate::child::CHOICES;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// See the module above.
pub(crate) struct Choices(Option<File>);

impl Choices {
    /// Into the file that the supervisor has named, if any.
    pub(crate) fn from_environment() -> Self {
        let name = std::env::var_os(CHOICES);
        let open = |name| OpenOptions::new().create(true).append(true).open(name);
        Self(name.and_then(|name| open(name).ok()))
    }

    pub(crate) fn note(&self, choice: impl Display) {
        if let Some(mut file) = self.0.as_ref() {
            // In one call: lines of several threads are not mixed. A full disk shows in a shorter file.
            let _ = file.write_all(format!("{choice}\n").as_bytes());
        }
    }
}
