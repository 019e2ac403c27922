//! Reads `/proc/self/maps`, without allocating.

use core::ffi::CStr;

const MAPS: &CStr = c"/proc/self/maps";
/// A line has at most this many bytes before the name, and the name at most `PATH_MAX`.
pub(super) const LONGEST_LINE: usize = 4096 + 128;

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_executable: bool,
    pub(super) offset: u64,
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    /// The name of the file; empty if there is none.
    pub(super) name: &'a [u8],
}

/// An open file that is closed when it is dropped.
pub(super) struct File(i32);

impl File {
    /// Opens a file to read.
    pub(super) fn open(name: &CStr) -> Option<Self> {
        // SAFETY: the name is a C string; the call changes nothing else.
        let number = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (number >= 0).then_some(Self(number))
    }

    pub(super) fn number(&self) -> i32 {
        self.0
    }

    /// Reads into the buffer; the number of bytes, 0 at the end.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            // SAFETY: the buffer may be written for its whole length.
            let got = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
            // SAFETY: the calling thread's own variable.
            if got < 0 && unsafe { *libc::__errno_location() } == libc::EINTR {
                continue;
            }
            return usize::try_from(got).ok();
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the number is this file's, and is not used any more.
        unsafe { libc::close(self.0) };
    }
}

/// The memory that reading the maps takes.
pub(super) struct Buffer([u8; 2 * LONGEST_LINE]);

impl Buffer {
    pub(super) const fn new() -> Self {
        Self([0; 2 * LONGEST_LINE])
    }

    /// Calls `each` with each mapping of the process, in order of address, until it returns true.
    /// Returns whether it did.
    pub(super) fn find(&mut self, mut each: impl FnMut(Mapping<'_>) -> bool) -> bool {
        let Some(file) = File::open(MAPS) else {
            return false;
        };
        let mut filled = 0;
        loop {
            let Some(got @ 1..) = file.read(&mut self.0[filled..]) else {
                return false;
            };
            filled += got;
            let mut begin = 0;
            while let Some(len) = self.0[begin..filled].iter().position(|&byte| byte == b'\n') {
                let line = &self.0[begin..begin + len];
                begin += len + 1;
                if parse(line).is_some_and(&mut each) {
                    return true;
                }
            }
            self.0.copy_within(begin..filled, 0);
            filled -= begin;
            if filled == self.0.len() {
                // Longer than any line.
                return false;
            }
        }
    }
}

/// `5581c0-5581d0 r-xp 00002000 fd:01 1234    /usr/bin/name`
fn parse(line: &[u8]) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let (start, end) = halves(fields.next()?, b'-')?;
    let rights = fields.next()?;
    let offset = hex(fields.next()?)?;
    let (major, minor) = halves(fields.next()?, b':')?;
    let inode = core::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let name = fields.next().unwrap_or_default().trim_ascii_start();
    Some(Mapping {
        start,
        end,
        is_executable: rights.get(2) == Some(&b'x'),
        offset,
        device: (major as u32, minor as u32),
        inode,
        name,
    })
}

fn halves(field: &[u8], between: u8) -> Option<(u64, u64)> {
    let at = field.iter().position(|&byte| byte == between)?;
    Some((hex(&field[..at])?, hex(&field[at + 1..])?))
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// Appends the process's maps to an open file, as they are. Returns whether that was possible.
pub(crate) fn copy_to(file: i32) -> bool {
    let Some(maps) = File::open(MAPS) else {
        return false;
    };
    let mut buffer = [0; 1024];
    while let Some(got) = maps.read(&mut buffer) {
        if got == 0 {
            return true;
        }
        if !write(file, &buffer[..got]) {
            return false;
        }
    }
    false
}

/// Writes all of these bytes to an open file. Returns whether that was possible.
pub(super) fn write(file: i32, mut left: &[u8]) -> bool {
    while !left.is_empty() {
        // SAFETY: the bytes may be read.
        let put = unsafe { libc::write(file, left.as_ptr().cast(), left.len()) };
        match usize::try_from(put) {
            Ok(put @ 1..) => left = &left[put..],
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = b"7f1c-7f2d r-xp 00026000 fd:0a 4321                 /usr/lib/a b.so";
        let mapping = parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end), (0x7f1c, 0x7f2d));
        assert!(mapping.is_executable);
        assert_eq!((mapping.offset, mapping.device, mapping.inode), (0x26000, (0xfd, 0xa), 4321));
        assert_eq!(mapping.name, b"/usr/lib/a b.so");
        let mapping = parse(b"7f1c-7f2d rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((mapping.name, mapping.is_executable), (&b""[..], false));
        for bad in [&b""[..], b"7f1c", b"7f1c-7g2d r-xp 0 0:0 0", b"1-2 r-xp 0 0:0"] {
            assert_eq!(parse(bad), None);
        }
    }

    #[test]
    fn this_function_is_in_an_executable_mapping_and_its_stack_is_not() {
        let code =
            this_function_is_in_an_executable_mapping_and_its_stack_is_not as fn() as usize as u64;
        let on_stack = &raw const code as u64;
        for (address, is_executable) in [(code, true), (on_stack, false)] {
            let mut buffer = Buffer::new();
            assert!(buffer.find(|mapping| {
                let found = (mapping.start..mapping.end).contains(&address);
                if found {
                    assert_eq!(mapping.is_executable, is_executable, "{mapping:?}");
                }
                found
            }));
        }
        assert!(!Buffer::new().find(|_| false));
    }
}
