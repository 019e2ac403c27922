//! The control block of a process: read and written through `/proc/PID/mem`.
//!
//! That file stays the memory of the program that ran when it was opened. So nothing is ever
//! written into a process that has got the same number since, or into the next program of this one.

use core::mem::offset_of;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering::SeqCst, fence};
use waitword_record::control::{
    BEGIN, Control, END, LONGEST_NAME, MAGIC, MOST_SWITCHES, ON, STARTING, Switch, VERSION,
};

/// How much is read at once in search of the block.
const CHUNK: usize = 1 << 16;
const LIBRARY: &str = "libwaitword_pthread";

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    memory: Arc<File>,
    address: u64,
}

/// The result of a search.
pub(super) enum Found {
    /// No other process uses it, from now until it is dropped.
    Free(Vec<Block>),
    InUse,
    None,
}

impl Block {
    /// Looks for the blocks of a process: the drop-in's first. Each copy of the recorder has one:
    /// the drop-in, the library, a program that contains it.
    ///
    /// # Errors
    /// The memory may not be read or written.
    pub(super) fn find(pid: u32) -> io::Result<Found> {
        let memory = Arc::new(open(pid)?);
        let text = std::fs::read(format!("/proc/{pid}/maps"))?;
        let text = String::from_utf8_lossy(&text);
        let mut places: Vec<(u64, u64, bool)> = text.lines().filter_map(data).collect();
        places.sort_by_key(|&(.., is_drop_in)| !is_drop_in);
        let found = places.iter().filter_map(|&(start, end, _)| search(&memory, start, end));
        let blocks = found.map(|address| Self { memory: Arc::clone(&memory), address });
        let blocks: Vec<Self> = blocks.collect();
        if blocks.is_empty() {
            return Ok(Found::None);
        }
        match memory.try_lock() {
            Ok(()) => Ok(Found::Free(blocks)),
            Err(TryLockError::WouldBlock) => Ok(Found::InUse),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The block of a forked child, if it records into the same directory.
    pub(super) fn of_child(&self, pid: u32) -> Option<Self> {
        let memory = Arc::new(open(pid).ok()?);
        let child = Self { memory, address: self.address };
        let magic = child.read::<{ MAGIC.len() }>(offset_of!(Control, magic)).ok()?;
        let is_same = magic == MAGIC
            && child.state().ok()? == ON
            && child.directory().ok()? == self.directory().ok()?;
        is_same.then_some(child)
    }

    /// One of the states.
    ///
    /// # Errors
    /// The process has ended, or runs another program.
    pub(super) fn state(&self) -> io::Result<u32> {
        self.half(offset_of!(Control, state))
    }

    /// Where the process records by itself.
    pub(super) fn own_directory(&self) -> Option<PathBuf> {
        let is_own = self.state().ok()? == ON
            && u64::from_ne_bytes(self.read(offset_of!(Control, beats)).ok()?) == 0;
        is_own.then(|| self.directory().ok().map(PathBuf::from)).flatten()
    }

    /// Why it failed.
    pub(super) fn failure(&self) -> String {
        let errno = self.half(offset_of!(Control, errno)).unwrap_or_default();
        match self.half(offset_of!(Control, failure)) {
            Ok(2) => {
                format!("it cannot make files: {}", io::Error::from_raw_os_error(errno as i32))
            }
            Ok(3) => "another thread of it is busy with a recording".to_owned(),
            Ok(4) => "this kernel's pages are not of 4096 bytes".to_owned(),
            _ => "the directory's name".to_owned(),
        }
    }

    /// Asks for a recording.
    pub(super) fn ask_to_begin(
        &self,
        directory: &Path,
        threshold: u64,
        beat: u64,
    ) -> io::Result<()> {
        let name = directory.as_os_str().as_bytes();
        if name.len() > LONGEST_NAME {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        self.write(offset_of!(Control, directory), name)?;
        let len = name.len() as u32;
        self.write(offset_of!(Control, directory_len), &len.to_ne_bytes())?;
        self.write(offset_of!(Control, threshold), &threshold.to_ne_bytes())?;
        self.beat(beat)?;
        self.ask(BEGIN)
    }

    /// Asks for a change of the state.
    pub(super) fn ask(&self, state: u32) -> io::Result<()> {
        self.write(offset_of!(Control, state), &state.to_ne_bytes())?;
        // After the state: `waitword_record::control` says why. The kernel makes both stores on
        // behalf of this thread.
        fence(SeqCst);
        self.turn_switches()
    }

    /// Makes the locks look at the state.
    pub(super) fn turn_switches(&self) -> io::Result<()> {
        for n in 0..MOST_SWITCHES {
            let at = offset_of!(Control, switches) + n * size_of::<Switch>();
            let address = u64::from_ne_bytes(self.read(at + offset_of!(Switch, address))?);
            let [asked, ..] = self.read::<8>(at + offset_of!(Switch, asked))?;
            if address != 0 {
                self.memory.write_all_at(&[asked], address)?;
            }
        }
        Ok(())
    }

    /// Says that the recording is still wanted. Each number differs from the one before.
    pub(super) fn beat(&self, beat: u64) -> io::Result<()> {
        self.write(offset_of!(Control, beats), &beat.to_ne_bytes())
    }

    /// Asks for the end of a recording, also of one that has not begun yet.
    pub(super) fn ask_to_end(&self) -> io::Result<()> {
        match self.state()? {
            ON | BEGIN | STARTING => self.ask(END),
            _ => Ok(()),
        }
    }

    fn directory(&self) -> io::Result<OsString> {
        let name = self.read::<LONGEST_NAME>(offset_of!(Control, directory))?;
        let len = self.half(offset_of!(Control, directory_len))? as usize;
        Ok(OsString::from_vec(name[..len.min(LONGEST_NAME)].to_vec()))
    }

    fn half(&self, offset: usize) -> io::Result<u32> {
        self.read(offset).map(u32::from_ne_bytes)
    }

    fn read<const N: usize>(&self, offset: usize) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, self.address + offset as u64)?;
        Ok(bytes)
    }

    fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, self.address + offset as u64)
    }
}

fn open(pid: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))
}

/// The first and last address of a line of `/proc/PID/maps`, if it is a program's or library's
/// data; and whether it is the drop-in's.
fn data(line: &str) -> Option<(u64, u64, bool)> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let is_data = fields.next()? == "rw-p";
    let name = fields.nth(3)?.trim_start();
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    (is_data && name.starts_with('/')).then_some((hex(start)?, hex(end)?, name.contains(LIBRARY)))
}

/// The address of a block of this version.
fn search(memory: &File, start: u64, end: u64) -> Option<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut at = start;
    while at < end {
        let len = CHUNK.min((end - at) as usize);
        // What cannot be read is another file's page that is gone.
        if memory.read_exact_at(&mut buffer[..len], at).is_ok() {
            // It is aligned to a line of the cache.
            let lines = buffer[..len].chunks_exact(align_of::<Control>()).enumerate();
            let found = lines.filter(|(_, line)| {
                let version = offset_of!(Control, version);
                line.starts_with(&MAGIC) && line[version..version + 4] == VERSION.to_ne_bytes()
            });
            for (n, _) in found {
                let address = at + (n * align_of::<Control>()) as u64;
                if address + size_of::<Control>() as u64 <= end {
                    return Some(address);
                }
            }
        }
        at += len as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_data_of_files_is_searched() {
        let line = "7f00-7f40 rw-p 00000000 fd:00 1                  /a b/libwaitword_pthread.so.1";
        assert_eq!(data(line), Some((0x7f00, 0x7f40, true)));
        assert_eq!(data("7f00-7f40 rw-p 0 fd:00 1  /bin/a"), Some((0x7f00, 0x7f40, false)));
        for other in [
            "7f00-7f40 r--p 0 fd:00 1  /bin/a",
            "7f00-7f40 rw-s 0 fd:00 1  /dev/shm/a",
            "7f00-7f40 rw-p 0 00:00 0 ",
            "7f00-7f40 rw-p 0 00:00 0  [heap]",
            "",
        ] {
            assert_eq!(data(other), None, "{other}");
        }
    }
}
