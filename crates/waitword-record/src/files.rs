//! The files of a recording. They are opened for each access and closed again: a program may close
//! file descriptors that it does not know, and give their numbers to its own files.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};

/// The longest name.
const LONGEST: usize = 4096;

/// A file of the recording.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Rings,
    Records,
    Maps,
}

/// The names of a process's files. All zeros: none yet.
pub(crate) struct Names {
    /// Of each [`File`], in their order: `DIR/PID.TIME.ENDING`, ended by a zero.
    names: [[u8; LONGEST]; 3],
    directory_len: usize,
    is_closed: AtomicBool,
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

/// The beginning of a file, as much as there is room for. `None` if it cannot be read.
pub(crate) fn begin_of<'t>(name: &CStr, text: &'t mut [u8]) -> Option<&'t [u8]> {
    // SAFETY: a C string.
    let number = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if number < 0 {
        return None;
    }
    let file = Open(number);
    // SAFETY: the text has room for its length.
    let len = unsafe { libc::read(file.number(), text.as_mut_ptr().cast(), text.len()) };
    text.get(..usize::try_from(len).ok()?)
}

impl Names {
    /// Fills in the names, in place: there may be little stack. `None` if the directory's name is
    /// too long or is not absolute.
    pub(crate) fn fill(
        &mut self,
        directory: impl Iterator<Item = u8> + Clone,
        pid: u32,
        time: u64,
    ) -> Option<()> {
        use core::fmt::Write as _;
        if directory.clone().next() != Some(b'/') {
            return None;
        }
        for (name, ending) in self.names.iter_mut().zip(["rings", "records", "maps"]) {
            let mut name = Name { name, len: 0 };
            directory.clone().try_for_each(|byte| name.push(byte))?;
            self.directory_len = name.len;
            write!(name, "/{pid}.{time}.{ending}\0").ok()?;
        }
        Some(())
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &[u8] {
        &self.names[0][..self.directory_len]
    }

    /// From here on no file is opened.
    pub(crate) fn close(&self) {
        // Release: a thread that finds the memory of this recording gone finds this.
        self.is_closed.store(true, Ordering::Release);
    }

    /// Opens a file to append to it, or the rings to read and write. Creates it with mode 0600.
    pub(crate) fn open(&self, file: File) -> Option<Open> {
        if self.is_closed.load(Ordering::Acquire) {
            return None;
        }
        let access = match file {
            File::Rings => libc::O_RDWR,
            File::Records | File::Maps => libc::O_WRONLY | libc::O_APPEND,
        };
        let name = CStr::from_bytes_until_nul(&self.names[file as usize]).ok()?;
        let flags = access | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the name is a C string.
        let number = unsafe { libc::open(name.as_ptr(), flags, 0o600) };
        (number >= 0).then(|| Open(number))
    }

    /// Maps a part of the rings file, which is made as long as that. The part has blocks on the
    /// disk, so that no later access fails for want of space. It takes the place of `before`.
    ///
    /// # Safety
    /// Nothing uses the memory of this length at `before`.
    pub(crate) unsafe fn map_rings(
        &self,
        offset: usize,
        len: usize,
        before: Option<NonNull<u8>>,
    ) -> Option<*mut u8> {
        let file = self.open(File::Rings)?;
        let (offset, bytes) = (offset as libc::off_t, len as libc::off_t);
        // SAFETY: plain numbers. (Where the file system has no such call, the C library writes.)
        let failed = unsafe { libc::posix_fallocate(file.number(), offset, bytes) };
        if failed != 0 {
            // SAFETY: the calling thread's own variable.
            unsafe { *libc::__errno_location() = failed };
            return None;
        }
        let (address, kind) = match before {
            Some(before) => (before.as_ptr(), libc::MAP_SHARED | libc::MAP_FIXED),
            None => (ptr::null_mut(), libc::MAP_SHARED),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice or, by this function's
        // contract, where nothing is used.
        let address =
            unsafe { libc::mmap(address.cast(), len, access, kind, file.number(), offset) };
        (address != libc::MAP_FAILED).then_some(address.cast())
    }
}

/// A name that is being written.
struct Name<'a> {
    name: &'a mut [u8; LONGEST],
    len: usize,
}

impl Name<'_> {
    fn push(&mut self, byte: u8) -> Option<()> {
        *self.name.get_mut(self.len)? = byte;
        self.len += 1;
        Some(())
    }
}

impl core::fmt::Write for Name<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        text.bytes().try_for_each(|byte| self.push(byte)).ok_or(core::fmt::Error)
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
