//! What a process that records says of the present: what each of its threads waits for and holds.

use crate::remote::Remote;
use anyhow::{Context as _, Result, bail};
use core::mem::offset_of;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use waitword_record::format::{
    HELD_TO_READ, Header, MAGIC, MOST_HELD, MOST_THREADS, Object, PAGE, RING_BYTES, Ring, VERSION,
};

/// The recording of a process, which goes on.
#[derive(Debug)]
pub struct Recording {
    file: File,
    path: PathBuf,
}

/// A thread that records, or did so until it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The number of its ring.
    pub ring: usize,
    /// Its ID, in its own PID namespace.
    pub thread: u32,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// The addresses of the locks that it holds; whether together with other readers.
    pub held: Vec<(u64, bool)>,
    /// How many there are. A recording has room for [`MOST_HELD`].
    pub held_count: u32,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What it is.
    pub object: Object,
    /// Where it is.
    pub address: u64,
    /// Since when, in nanoseconds of `CLOCK_MONOTONIC`.
    pub since: u64,
    /// Whether it ends at a deadline.
    pub has_deadline: bool,
}

impl Recording {
    /// The recording of a process: in this directory, or else where the process has mapped it, or
    /// else where its environment says. `None` if it does not record.
    ///
    /// # Errors
    /// There is one that cannot be read, or none in the directory.
    pub fn find(remote: &Remote, directory: Option<&Path>) -> Result<Option<Self>> {
        if let Some(directory) = directory {
            return match Self::in_directory(directory, remote)? {
                Some(found) => Ok(Some(found)),
                None => bail!("{}: no recording of process {}", directory.display(), remote.pid()),
            };
        }
        let ends_in_rings = |file: &&PathBuf| file.extension().is_some_and(|it| it == "rings");
        if let Some(file) = remote.files().find(ends_in_rings) {
            let below_root = remote.path(file);
            let path = if below_root.exists() { below_root } else { file.clone() };
            return Self::open(&path).map(Some);
        }
        match remote.variable("WAITWORD_RECORD") {
            Some(directory) => {
                let directory = remote.path(Path::new(&directory));
                // It is made when the process begins to record, and may be gone since.
                Ok(Self::in_directory(&directory, remote).unwrap_or_default())
            }
            None => Ok(None),
        }
    }

    /// The last one that this process has begun there.
    fn in_directory(directory: &Path, remote: &Remote) -> Result<Option<Self>> {
        let shown = || directory.display().to_string();
        let own = remote.threads()?.iter().find(|it| it.tid == remote.pid()).map(|it| it.own_tid);
        let start = format!("{}.", own.unwrap_or(remote.pid()));
        let mut last: Option<(u64, PathBuf)> = None;
        for entry in fs::read_dir(directory).with_context(shown)? {
            let path = entry.with_context(shown)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let began = name.strip_prefix(&*start).and_then(|it| it.strip_suffix(".rings"));
            let Some(began) = began.and_then(|it| it.parse().ok()) else {
                continue;
            };
            if last.as_ref().is_none_or(|(other, _)| *other < began) {
                last = Some((began, path));
            }
        }
        last.map(|(_, path)| Self::open(&path)).transpose()
    }

    /// Opens a rings file.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        // The process that is looked at may have chosen the path: a pipe must not block here.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.with_context(shown)?;
        if !file.metadata().with_context(shown)?.is_file() {
            bail!("{}: not a file", path.display());
        }
        let mut start = [0; 16];
        file.read_exact_at(&mut start, 0).with_context(shown)?;
        if start[..8] != MAGIC {
            bail!("{}: not a recording", path.display());
        }
        let version = half(&start, offset_of!(Header, version));
        if version != VERSION {
            bail!(
                "{}: recorded by another version of waitword (format {version}; this one reads \
                 {VERSION})",
                path.display()
            );
        }
        Ok(Self { file, path: path.to_owned() })
    }

    /// Its rings file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process's ID, in its own PID namespace.
    pub fn pid(&self) -> u32 {
        let mut bytes = [0; 4];
        let place = offset_of!(Header, pid) as u64;
        self.file.read_exact_at(&mut bytes, place).map_or(0, |()| u32::from_ne_bytes(bytes))
    }

    /// What its threads wait for and hold.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn threads(&self) -> Result<Vec<Recorded>> {
        let shown = || self.path.display().to_string();
        let mut count = [0; 4];
        let place = offset_of!(Header, rings) as u64;
        self.file.read_exact_at(&mut count, place).with_context(shown)?;
        let count = (u32::from_ne_bytes(count) as usize).min(MOST_THREADS);
        let mut threads = Vec::new();
        for n in 0..count {
            let mut head = [0; size_of::<Ring>()];
            let place = (PAGE + n * RING_BYTES) as u64;
            if self.file.read_exact_at(&mut head, place).is_err() {
                // The file is cut off.
                break;
            }
            threads.extend(of_head(n, &head));
        }
        Ok(threads)
    }
}

/// From the head of a ring. `None` if the ring is free.
fn of_head(ring: usize, head: &[u8; size_of::<Ring>()]) -> Option<Recorded> {
    let thread = half(head, offset_of!(Ring, thread));
    let address = number(head, offset_of!(Ring, waiting));
    let object = half(head, offset_of!(Ring, object)) as usize;
    let waiting =
        Object::ALL.get(object.wrapping_sub(1)).filter(|_| address != 0).map(|&object| Waiting {
            object,
            address,
            since: number(head, offset_of!(Ring, since)),
            has_deadline: half(head, offset_of!(Ring, has_deadline)) != 0,
        });
    let held_count = half(head, offset_of!(Ring, held_count));
    let held = (0..(held_count as usize).min(MOST_HELD))
        .map(|n| number(head, offset_of!(Ring, held) + 8 * n))
        .filter(|address| *address != 0)
        .map(|address| (address & !HELD_TO_READ, address & HELD_TO_READ != 0))
        .collect();
    (thread != 0).then_some(Recorded { ring, thread, waiting, held, held_count })
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A rings file with these threads: ID, what it waits for, what it holds.
    pub(crate) fn rings(threads: &[(u32, Option<Waiting>, &[u64])]) -> Vec<u8> {
        let mut bytes = vec![0; PAGE + threads.len() * RING_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(offset_of!(Header, version), &VERSION.to_ne_bytes());
        put(offset_of!(Header, pid), &std::process::id().to_ne_bytes());
        put(offset_of!(Header, rings), &(threads.len() as u32).to_ne_bytes());
        for (n, (thread, waiting, held)) in threads.iter().enumerate() {
            let ring = PAGE + n * RING_BYTES;
            put(ring + offset_of!(Ring, thread), &thread.to_ne_bytes());
            if let Some(it) = waiting {
                put(ring + offset_of!(Ring, waiting), &it.address.to_ne_bytes());
                put(ring + offset_of!(Ring, since), &it.since.to_ne_bytes());
                put(ring + offset_of!(Ring, object), &(it.object as u32).to_ne_bytes());
                put(ring + offset_of!(Ring, has_deadline), &[u8::from(it.has_deadline)]);
            }
            put(ring + offset_of!(Ring, held_count), &(held.len() as u32).to_ne_bytes());
            for (n, address) in held.iter().take(MOST_HELD).enumerate() {
                put(ring + offset_of!(Ring, held) + 8 * n, &address.to_ne_bytes());
            }
        }
        bytes
    }

    #[test]
    fn what_a_thread_waits_for_and_holds_is_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("1.2.rings");
        let waiting =
            Waiting { object: Object::Write, address: 0x40, since: 99, has_deadline: true };
        let many: Vec<u64> = (1..=50).map(|n| 0x1000 * n).collect();
        let threads: [(u32, Option<Waiting>, &[u64]); 3] =
            [(7, Some(waiting), &[0x80, 0x100 | HELD_TO_READ]), (0, None, &[]), (8, None, &many)];
        let bytes = rings(&threads);
        fs::write(&path, &bytes).unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.pid(), std::process::id());
        let found = recording.threads().unwrap();
        assert_eq!(found.len(), 2, "the free ring is left out");
        assert_eq!(found[0].waiting, Some(waiting));
        assert_eq!(found[0].held, [(0x80, false), (0x100, true)]);
        assert_eq!((found[1].held.len(), found[1].held_count), (MOST_HELD, 50));
        // Cut off, and no recording.
        fs::write(&path, &bytes[..PAGE + 100]).unwrap();
        assert_eq!(recording.threads().unwrap(), []);
        fs::write(&path, "garbage that is long enough").unwrap();
        assert!(Recording::open(&path).unwrap_err().to_string().contains("not a recording"));
        let pipe = place.path().join("3.4.rings");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert!(Recording::open(&pipe).unwrap_err().to_string().contains("not a file"));
    }

    #[test]
    fn a_damaged_ring_is_read_as_far_as_it_goes() {
        let mut head = [0xff; size_of::<Ring>()];
        let found = of_head(0, &head).unwrap();
        assert_eq!((found.waiting, found.held.len()), (None, MOST_HELD));
        head.fill(0);
        assert_eq!(of_head(0, &head), None);
    }
}
