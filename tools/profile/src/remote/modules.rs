//! The programs and libraries of another process, with their tables of how to unwind.
//!
//! The tables are read from the process's memory, where its own unwinder expects them. So nothing
//! depends on files, which may have been replaced or be in another mount namespace, and the
//! kernel's vdso needs no exception.

use super::memory::Memory;
use crate::read::Mapping;
#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Unwinder};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Unwinder};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::LittleEndian as LE;
use object::elf::{FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, ProgramHeader64};
use object::pod::from_bytes;

/// Larger tables are not read.
const MOST_BYTES: u64 = 64 << 20;
/// Nor more than this of all modules: a process may map as many as it likes.
const MOST_BYTES_IN_ALL: u64 = 512 << 20;
/// More program headers than any linker writes.
const MOST_HEADERS: u16 = 64;
/// The encoding of the pointer to `.eh_frame` that linkers write: four bytes with a sign, relative
/// to themselves.
const RELATIVE_TO_ITSELF: u8 = 0x1b;

/// What the unwinder knows.
pub(super) struct Modules {
    pub(super) unwinder: Unwinder<Vec<u8>>,
    pub(super) cache: Cache,
    /// The executable addresses.
    pub(super) code: Vec<(u64, u64)>,
}

impl Modules {
    pub(super) fn read(memory: &Memory, mappings: &[(Mapping, bool)]) -> Self {
        let mut unwinder = Unwinder::new();
        let mut left = MOST_BYTES_IN_ALL;
        for (first, _) in mappings.iter().filter(|(mapping, _)| mapping.offset == 0) {
            let name = first.file.to_string_lossy();
            if !name.is_empty()
                && (name.starts_with('/') || name == "[vdso]")
                && let Some(module) = module(memory, first.start, &name, &mut left)
            {
                unwinder.add_module(module);
            }
        }
        let code = mappings.iter().filter(|(_, is_executable)| *is_executable);
        let code = code.map(|(mapping, _)| (mapping.start, mapping.end)).collect();
        Self { unwinder, cache: Cache::new(), code }
    }
}

/// The ELF file whose first page is mapped here, if it has code and a table, of at most `left`
/// bytes. Subtracts what it has read from `left`.
fn module(memory: &Memory, start: u64, name: &str, left: &mut u64) -> Option<Module<Vec<u8>>> {
    let mut head = [0; size_of::<FileHeader64<LE>>()];
    if !memory.read(start, &mut head) || head[..4] != *b"\x7fELF" {
        return None;
    }
    let (file, _) = from_bytes::<FileHeader64<LE>>(&head).ok()?;
    let count = file.e_phnum.get(LE).min(MOST_HEADERS);
    let mut bytes = vec![0; usize::from(count) * size_of::<ProgramHeader64<LE>>()];
    if !memory.read(start.checked_add(file.e_phoff.get(LE))?, &mut bytes) {
        return None;
    }
    let (headers, _) =
        object::pod::slice_from_bytes::<ProgramHeader64<LE>>(&bytes, count.into()).ok()?;
    let of_kind = |kind| headers.iter().filter(move |it| it.p_type.get(LE) == kind);
    let first = of_kind(PT_LOAD).find(|it| it.p_offset.get(LE) == 0)?;
    // The linker's addresses are those of the process less this.
    let bias = start.checked_sub(first.p_vaddr.get(LE))?;
    let ends = of_kind(PT_LOAD).filter_map(|it| it.p_vaddr.get(LE).checked_add(it.p_memsz.get(LE)));
    let end = bias.checked_add(ends.max()?)?;
    if !of_kind(PT_LOAD).any(|it| it.p_flags.get(LE) & PF_X != 0) {
        return None;
    }
    let index = of_kind(PT_GNU_EH_FRAME).next()?;
    let index = index.p_vaddr.get(LE)..index.p_vaddr.get(LE).checked_add(index.p_memsz.get(LE))?;
    let mut read = |range: &core::ops::Range<u64>| {
        let most = MOST_BYTES.min(*left);
        let len = range.end.checked_sub(range.start).filter(|len| *len <= most)?;
        *left -= len;
        let mut bytes = vec![0; len as usize];
        memory.read(bias.wrapping_add(range.start), &mut bytes).then_some(bytes)
    };
    let index_bytes = read(&index)?;
    let &[1, RELATIVE_TO_ITSELF, _, _, a, b, c, d, ..] = index_bytes.as_slice() else {
        return None;
    };
    let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
    let table = (index.start + 4).checked_add_signed(distance)?;
    // Up to the end of what was loaded with it; the table ends before, by a mark of its own.
    let loaded = of_kind(PT_LOAD)
        .map(|it| it.p_vaddr.get(LE)..it.p_vaddr.get(LE).saturating_add(it.p_filesz.get(LE)))
        .find(|range| range.contains(&table))?;
    let table = table..loaded.end;
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame: Some(read(&table)?),
        eh_frame_svma: Some(table),
        eh_frame_hdr: Some(index_bytes),
        eh_frame_hdr_svma: Some(index),
        ..Default::default()
    };
    Some(Module::new(name.to_owned(), start..end, bias, sections))
}
