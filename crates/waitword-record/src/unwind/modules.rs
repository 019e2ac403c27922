//! The ELF files that the process executes, with their tables of how to unwind.
//!
//! Each file is mapped once more, for reading, from its beginning to its end. So the tables stay
//! readable when the program unloads a library. If another library is loaded at the same addresses
//! afterwards, frames in it are misread until the next search; no memory is.

use super::maps::{Buffer, File, Mapping};
use core::ffi::CStr;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian};

/// The greatest number of modules that are known.
const MOST: usize = 512;

/// A part of the code, and where it is described.
#[derive(Clone, Copy)]
pub(super) struct Module {
    start: u64,
    end: u64,
    /// What is added to the addresses in the file.
    bias: u64,
    /// `.eh_frame_hdr`: its address in the file, and its contents.
    header: (u64, &'static [u8]),
    /// From `.eh_frame` to the end of its segment.
    frames: (u64, &'static [u8]),
}

impl Module {
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    pub(super) fn bias(&self) -> u64 {
        self.bias
    }

    /// The tables, for addresses in the file.
    pub(super) fn tables(&self) -> (EhFrameHdr<Reader>, EhFrame<Reader>, BaseAddresses) {
        let bases =
            BaseAddresses::default().set_eh_frame_hdr(self.header.0).set_eh_frame(self.frames.0);
        let header = EhFrameHdr::new(self.header.1, LittleEndian);
        (header, EhFrame::new(self.frames.1, LittleEndian), bases)
    }
}

pub(super) type Reader = gimli::EndianSlice<'static, LittleEndian>;

/// The modules that are known.
pub(super) struct Modules {
    all: [Option<Module>; MOST],
    len: usize,
}

impl Modules {
    pub(super) const fn new() -> Self {
        Self { all: [None; MOST], len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The module that has this address. Looks for new modules if none does.
    pub(super) fn find(&mut self, address: u64, buffer: &mut Buffer) -> Option<Module> {
        self.known(address).or_else(|| {
            let found = buffer.find(|mapping| {
                let is_it = (mapping.start..mapping.end).contains(&address);
                if is_it && mapping.is_executable {
                    self.add(&mapping);
                }
                is_it
            });
            if found { self.known(address) } else { None }
        })
    }

    fn known(&self, address: u64) -> Option<Module> {
        // The newest first: an address may have belonged to a library that is gone.
        let known = self.all[..self.len].iter().rev().flatten();
        known.copied().find(|module| module.contains(address))
    }

    fn add(&mut self, mapping: &Mapping<'_>) {
        if self.len < MOST {
            if let Some(module) = module(mapping) {
                self.all[self.len] = Some(module);
                self.len += 1;
            }
        }
    }
}

fn module(mapping: &Mapping<'_>) -> Option<Module> {
    let file = map_file(mapping)?;
    let module = describe(mapping, file);
    if module.is_none() {
        // SAFETY: the mapping that `map_file` made just now. No reference into it is left.
        unsafe { libc::munmap(file.as_ptr().cast_mut().cast(), file.len()) };
    }
    module
}

fn describe(mapping: &Mapping<'_>, file: &'static [u8]) -> Option<Module> {
    let elf = Elf(file);
    let code = elf.segments()?.find(|segment| {
        // The mapping begins at the page of the segment's first byte.
        segment.kind == libc::PT_LOAD
            && segment.offset & !0xfff <= mapping.offset
            && mapping.offset < segment.offset + segment.file_size
            && segment.is_executable
    })?;
    let in_file = code.address.wrapping_sub(code.offset);
    let bias = mapping.start.wrapping_sub(mapping.offset).wrapping_sub(in_file);
    let header = elf.segments()?.find(|segment| segment.kind == libc::PT_GNU_EH_FRAME)?;
    let header = (header.address, elf.bytes(header.offset, header.file_size)?);
    let bases = BaseAddresses::default().set_eh_frame_hdr(header.0);
    let parsed = EhFrameHdr::new(header.1, LittleEndian).parse(&bases, 8).ok()?;
    let gimli::Pointer::Direct(address) = parsed.eh_frame_ptr() else {
        return None;
    };
    let around = elf.segments()?.find(|segment| {
        segment.kind == libc::PT_LOAD
            && (segment.address..segment.address + segment.file_size).contains(&address)
    })?;
    let from = address - around.address;
    let frames = elf.bytes(around.offset + from, around.file_size - from)?;
    Some(Module { start: mapping.start, end: mapping.end, bias, header, frames: (address, frames) })
}

/// The whole file of a mapping, if it is still the same file.
fn map_file(mapping: &Mapping<'_>) -> Option<&'static [u8]> {
    let mut name = [0; 4096];
    name.get_mut(..mapping.name.len())?.copy_from_slice(mapping.name);
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    if mapping.name.first() != Some(&b'/') {
        return None;
    }
    let file = File::open(name)?;
    // SAFETY: all zeros is a valid `struct stat`, which the call fills in.
    let (answer, status) = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        (libc::fstat(file.number(), &mut status), status)
    };
    let len = usize::try_from(status.st_size).ok().filter(|len| *len > 0)?;
    let device = (libc::major(status.st_dev), libc::minor(status.st_dev));
    if answer != 0 || status.st_ino != mapping.inode || device != mapping.device {
        return None;
    }
    // SAFETY: a new mapping at an address of the kernel's choice: it changes no memory in use.
    let address = unsafe {
        libc::mmap(core::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, file.number(), 0)
    };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: mapped for reading, for this length, and never unmapped. (A program that truncates
    // the files that it executes is killed by its own code first.)
    Some(unsafe { core::slice::from_raw_parts(address.cast(), len) })
}

/// The contents of a 64-bit ELF file of this machine.
struct Elf(&'static [u8]);

/// A program header.
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    is_executable: bool,
    offset: u64,
    address: u64,
    file_size: u64,
}

impl Elf {
    fn bytes(&self, offset: u64, len: u64) -> Option<&'static [u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.0.get(offset..offset.checked_add(usize::try_from(len).ok()?)?)
    }

    fn number<const LEN: u64>(&self, offset: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..LEN as usize].copy_from_slice(self.bytes(offset, LEN)?);
        Some(u64::from_le_bytes(bytes))
    }

    /// The program headers. Numbers that make no sense end them.
    fn segments(&self) -> Option<impl Iterator<Item = Segment> + '_> {
        const CLASS_64_LITTLE: &[u8] = b"\x7fELF\x02\x01";
        let is_elf = self.0.starts_with(CLASS_64_LITTLE);
        let table = self.number::<8>(32).filter(|_| is_elf)?;
        let (size, count) = (self.number::<2>(54)?, self.number::<2>(56)?);
        Some((0..count).map_while(move |number| {
            let at = table.checked_add(number * size)?;
            let flags = self.number::<4>(at.checked_add(4)?)?;
            let (offset, file_size) = (self.number::<8>(at + 8)?, self.number::<8>(at + 32)?);
            let address = self.number::<8>(at + 16)?;
            offset.checked_add(file_size)?;
            address.checked_add(file_size)?;
            Some(Segment {
                kind: self.number::<4>(at)? as u32,
                is_executable: flags & u64::from(libc::PF_X) != 0,
                offset,
                address,
                file_size,
            })
        }))
    }
}
