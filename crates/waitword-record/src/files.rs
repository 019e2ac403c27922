//! The files of a recording. They are opened for each access and closed again: a program may close
//! file descriptors that it does not know, and give their numbers to its own files.

use core::ffi::CStr;
use core::mem::MaybeUninit;

/// The longest name.
const LONGEST: usize = 4096;

/// A file of the recording.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Rings,
    Records,
    Maps,
}

/// The names of a process's files: `DIR/PID.TIME.`, to be completed.
pub(crate) struct Names {
    name: [u8; LONGEST],
    len: usize,
}

/// An open file, closed when it is dropped.
pub(crate) struct Open(i32);

impl Open {
    pub(crate) fn number(&self) -> i32 {
        self.0
    }

    /// Writes these pieces, one after the other, in one call. Returns whether all were written.
    pub(crate) fn write_all<const COUNT: usize>(&self, pieces: [&[u8]; COUNT]) -> bool {
        let parts = pieces.map(|piece| libc::iovec {
            iov_base: piece.as_ptr().cast_mut().cast(),
            iov_len: piece.len(),
        });
        // SAFETY: the pieces may be read.
        let written = unsafe { libc::writev(self.0, parts.as_ptr(), COUNT as i32) };
        usize::try_from(written) == Ok(pieces.iter().map(|piece| piece.len()).sum())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the number is this file's, and is not used any more.
        unsafe { libc::close(self.0) };
    }
}

impl Names {
    /// `None` if the directory's name is too long or is not absolute.
    pub(crate) fn new(directory: &[u8], pid: u32, time: u64) -> Option<Self> {
        use core::fmt::Write as _;
        if directory.first() != Some(&b'/') {
            return None;
        }
        let mut names = Self { name: [0; LONGEST], len: 0 };
        names.push(directory)?;
        write!(names, "/{pid}.{time}.").ok()?;
        // Room for the longest ending.
        (names.len + "records".len() < LONGEST).then_some(names)
    }

    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len.checked_add(bytes.len())?;
        self.name.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    /// Opens a file to append to it, or the rings to read and write. Creates it with mode 0600.
    pub(crate) fn open(&self, file: File) -> Option<Open> {
        let ending: &[u8] = match file {
            File::Rings => b"rings",
            File::Records => b"records",
            File::Maps => b"maps",
        };
        let access = match file {
            File::Rings => libc::O_RDWR,
            File::Records | File::Maps => libc::O_WRONLY | libc::O_APPEND,
        };
        let mut name = self.name;
        name[self.len..self.len + ending.len()].copy_from_slice(ending);
        let name = CStr::from_bytes_until_nul(&name).ok()?;
        let flags = access | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the name is a C string.
        let number = unsafe { libc::open(name.as_ptr(), flags, 0o600) };
        (number >= 0).then_some(Open(number))
    }

    /// Maps a part of the rings file, which is made as long as that. The part has blocks on the
    /// disk, so that no later access fails for want of space.
    pub(crate) fn map_rings(&self, offset: usize, len: usize) -> Option<*mut u8> {
        let file = self.open(File::Rings)?;
        let (offset, bytes) = (offset as libc::off_t, len as libc::off_t);
        // SAFETY: plain numbers. (Where the file system has no such call, the C library writes.)
        if unsafe { libc::posix_fallocate(file.number(), offset, bytes) } != 0 {
            return None;
        }
        // SAFETY: a new mapping at an address of the kernel's choice: it changes no memory in use.
        let address = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.number(),
                offset,
            )
        };
        (address != libc::MAP_FAILED).then_some(address.cast())
    }
}

impl core::fmt::Write for Names {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.push(text.as_bytes()).ok_or(core::fmt::Error)
    }
}

/// The time of a clock in nanoseconds.
pub(crate) fn time(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the call fills in the time; these clocks exist on every Linux.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
