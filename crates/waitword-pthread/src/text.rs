//! A line of text without the heap: the drop-in may have to print under `malloc`.

use core::fmt;

/// Longer text is cut off.
const LONGEST: usize = 512;

/// A line, without its end.
pub(crate) struct Line {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; LONGEST], length: 0 }
    }

    /// Writes the line in one system call, so that lines of several processes do not mix. Errors
    /// are ignored, since they cannot be reported.
    pub(crate) fn write_to(mut self, file: i32) {
        // There is room: see `write_str`.
        self.bytes[self.length] = b'\n';
        // SAFETY: `bytes` has room for the line and its end: `length` is at most LONGEST - 1.
        unsafe { libc::write(file, self.bytes.as_ptr().cast(), self.length + 1) };
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is kept for the end of the line.
        let room = LONGEST - 1 - self.length;
        let taken = text.len().min(room);
        self.bytes[self.length..][..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}
