//! An output file that is opened before the work and written after it. A mistyped path thus fails
//! at once, and not after minutes of measuring.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

/// The open file. Its old contents are kept until [`OutFile::write`].
#[derive(Debug)]
pub(crate) struct OutFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> OutFile<'a> {
    /// Opens the file, or creates it, without truncating it.
    pub(crate) fn open(path: &'a Path) -> Result<Self, String> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path, file })
    }

    /// Replaces the file's contents with `text`.
    pub(crate) fn write(self, text: &str) -> Result<(), String> {
        self.write_bytes(text.as_bytes())
    }

    /// Replaces the file's contents.
    pub(crate) fn write_bytes(self, bytes: &[u8]) -> Result<(), String> {
        self.write_by(|to| to.write_all(bytes))
    }

    /// Replaces the file's contents by what `write` writes, piece by piece.
    pub(crate) fn write_by(
        self,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<(), String> {
        let Self { path, file } = self;
        let write = || -> std::io::Result<()> {
            // A device or a pipe cannot be truncated.
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            let mut to = BufWriter::new(file);
            write(&mut to)?;
            to.flush()
        };
        write().map_err(|error| cannot_write(path, &error))
    }
}

/// Prints to stdout. That its reader has gone is no error: it has read what it wanted.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_found_out_first() {
        let error = OutFile::open(Path::new("/no/such/folder/x.json")).err();
        assert!(error.unwrap().contains("/no/such/folder/x.json"));
    }
}
