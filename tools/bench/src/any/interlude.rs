//! What a holder occasionally does instead of the section's work.

use super::cell::Interlude;
use fastrand::Rng;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::Duration;

const PAGE: usize = 4096;
/// How long a holder sleeps. In practice longer: the kernel gives a timer 50 µs of slack.
const SLEEP: Duration = Duration::from_micros(50);

/// Which interlude to do, and in which sections.
pub(super) struct Interludes {
    which: Interlude,
    due: Vec<bool>,
    file: Option<File>,
}

impl Interludes {
    /// Interludes in this fraction of the sections.
    pub(super) fn new(which: Interlude, part: f64, rng: &mut Rng) -> Self {
        let due = (0..1 << 10).map(|_| rng.f64() < part).collect();
        let file = matches!(which, Interlude::Io).then(file);
        Self { which, due, file }
    }

    #[inline(always)]
    pub(super) fn is_due(&self, at: usize) -> bool {
        self.due[at & (self.due.len() - 1)]
    }

    #[inline(never)]
    pub(super) fn do_one(&mut self) {
        match (self.which, &self.file) {
            (Interlude::Yield, _) => thread::yield_now(),
            (Interlude::Sleep, _) => thread::sleep(SLEEP),
            (Interlude::Io, Some(file)) => {
                let mut page = [1; PAGE];
                let done =
                    file.write_all_at(&page, 0).and_then(|()| file.read_exact_at(&mut page, 0));
                done.expect("a file of its own can be written and read");
            }
            (Interlude::Io, None) => unreachable!("it has a file"),
        }
    }
}

/// An unnamed temporary file, on a disk if there is one.
fn file() -> File {
    tempfile::tempfile().expect("a temporary file can be made")
}
