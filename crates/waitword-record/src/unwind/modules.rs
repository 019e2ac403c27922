//! The ELF files that the process executes, with their tables of how to unwind.
//!
//! Each file is mapped once more, for reading, from its beginning to its end. So the tables stay
//! readable when the program unloads a library. If another library is loaded at the same addresses
//! afterwards, frames in it are misread until the next search; no memory is.

use super::maps::{Buffer, File, Mapping};
use super::processor::VENDOR;
use core::ffi::CStr;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian};

/// The greatest number of modules that are known.
const MOST: usize = 512;
/// More notes of a segment are not looked at.
const MOST_NOTES: usize = 64;
/// A longer build ID, in bytes, is none. Usual are 20.
pub(super) const LONGEST_ID: usize = 64;

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
    /// The GNU build ID; empty if there is none.
    build_id: &'static [u8],
}

impl Module {
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    pub(super) fn bias(&self) -> u64 {
        self.bias
    }

    /// The GNU build ID of the file that is mapped here, if it has one.
    fn build_id_at(&self, mapping: &Mapping<'_>) -> Option<&'static [u8]> {
        let is_it = (self.start, self.end) == (mapping.start, mapping.end);
        (is_it && !self.build_id.is_empty()).then_some(self.build_id)
    }

    /// The tables, for addresses in the file.
    pub(super) fn tables(&self) -> (EhFrameHdr<Reader>, EhFrame<Reader>, BaseAddresses) {
        let bases =
            BaseAddresses::default().set_eh_frame_hdr(self.header.0).set_eh_frame(self.frames.0);
        let header = EhFrameHdr::new(self.header.1, LittleEndian);
        let mut frames = EhFrame::new(self.frames.1, LittleEndian);
        frames.set_vendor(VENDOR);
        (header, frames, bases)
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

    /// Calls `each` with the build ID of each module that is still mapped, and its file's name.
    pub(super) fn build_ids(&self, buffer: &mut Buffer, mut each: impl FnMut(&[u8], &[u8])) {
        buffer.find(|mapping| {
            // The newest first, as in `known`.
            let mut known = self.all[..self.len].iter().rev().flatten();
            let module = known.find(|module| module.contains(mapping.start));
            if let Some(build_id) = module.and_then(|module| module.build_id_at(&mapping)) {
                each(build_id, mapping.name);
            }
            false
        });
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
        // The mapping begins at the page of the segment's first byte, whatever a page's size is.
        segment.kind == libc::PT_LOAD
            && segment.offset < mapping.offset + (mapping.end - mapping.start)
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
    let frames = (address, frames);
    let build_id = elf.build_id().unwrap_or_default();
    Some(Module { start: mapping.start, end: mapping.end, bias, header, frames, build_id })
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
    align: u64,
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
                align: self.number::<8>(at.checked_add(48)?)?,
            })
        }))
    }

    /// The GNU build ID: a note of this name and type, of 1 to [`LONGEST_ID`] bytes.
    fn build_id(&self) -> Option<&'static [u8]> {
        let notes = self.segments()?.filter(|segment| segment.kind == libc::PT_NOTE);
        notes.filter_map(|segment| self.build_id_in(segment)).next()
    }

    fn build_id_in(&self, segment: Segment) -> Option<&'static [u8]> {
        const BUILD_ID: u64 = 3;
        const NAME: &[u8] = b"GNU\0";
        // Names and contents end at multiples of this.
        let align = if segment.align == 8 { 8 } else { 4 };
        let end = segment.offset.checked_add(segment.file_size)?;
        let mut at = segment.offset;
        for _ in 0..MOST_NOTES {
            if at >= end {
                break;
            }
            let (name_len, len) = (self.number::<4>(at)?, self.number::<4>(at + 4)?);
            let kind = self.number::<4>(at + 8)?;
            let name_at = at + 12;
            let contents = name_at.checked_add(name_len)?.checked_next_multiple_of(align)?;
            if kind == BUILD_ID && self.bytes(name_at, name_len) == Some(NAME) {
                let id = self.bytes(contents, len)?;
                return (1..=LONGEST_ID).contains(&id.len()).then_some(id);
            }
            at = contents.checked_add(len)?.checked_next_multiple_of(align)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 400;

    /// An ELF file with one segment of notes, from byte 120 to its end.
    fn elf(align: u64, notes: &[u8]) -> Vec<u8> {
        let mut file = vec![0; LEN];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(32, &64_u64.to_le_bytes());
        put(54, &56_u16.to_le_bytes());
        put(56, &1_u16.to_le_bytes());
        put(64, &libc::PT_NOTE.to_le_bytes());
        put(64 + 8, &120_u64.to_le_bytes());
        put(64 + 32, &(notes.len() as u64).to_le_bytes());
        put(64 + 48, &align.to_le_bytes());
        put(120, notes);
        file
    }

    fn note(name: &[u8], kind: u32, contents: &[u8], align: usize) -> Vec<u8> {
        let mut note = Vec::new();
        for number in [name.len() as u32, contents.len() as u32, kind] {
            note.extend(number.to_le_bytes());
        }
        for part in [name, contents] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(align), 0);
        }
        note
    }

    /// The files of tests are never freed, like mapped ones.
    fn build_id(file: Vec<u8>) -> Option<&'static [u8]> {
        Elf(file.leak()).build_id()
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        for align in [4, 8] {
            let first = note(b"GNU\0", 5, &[9; 13], align);
            let id = note(b"GNU\0", 3, &[1, 2, 3, 4, 5], align);
            let notes = [first, note(b"Xen\0", 3, &[7; 4], align), id].concat();
            assert_eq!(build_id(elf(align as u64, &notes)), Some(&[1, 2, 3, 4, 5][..]));
        }
        for contents in [0, LONGEST_ID + 1] {
            assert_eq!(build_id(elf(4, &note(b"GNU\0", 3, &vec![7; contents], 4))), None);
        }
    }

    /// Wherever a note is cut off, and whatever its numbers are, the search ends.
    #[test]
    fn odd_notes_have_no_build_id() {
        let notes = note(b"GNU\0", 3, &[7; 20], 4);
        for len in 0..notes.len() - 20 {
            let file = elf(4, &notes);
            let mut cut = file[..120 + len].to_vec();
            assert_eq!(build_id(core::mem::take(&mut cut)), None, "{len}");
        }
        let mut random = 1_u64;
        for _ in 0..2000 {
            let mut notes = notes.clone();
            for byte in &mut notes[..12] {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                *byte = (random >> 32) as u8 | if random & 1 == 0 { 0 } else { 0xf8 };
            }
            if let Some(id) = build_id(elf(random % 16, &notes)) {
                assert!((1..=LONGEST_ID).contains(&id.len()));
            }
        }
    }
}
