//! Functions of the vDSO, the library that the kernel maps into every process: looked up without
//! the loader, which may hold its lock.
//!
//! The image is read as a slice, with every offset checked. Whatever is in it, the worst outcome is
//! that a function is not found.

/// The address of the function with this name; `None` if this kernel's vDSO has none.
pub(super) fn function(name: &[u8]) -> Option<usize> {
    // SAFETY: the call reads the auxiliary vector, which nothing changes.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if base == 0 {
        return None;
    }
    let start = core::ptr::with_exposed_provenance::<u8>(base);
    // SAFETY: the kernel has mapped an ELF image here, which begins with its header and the program
    // headers, in the same page. It is never unmapped or written (a program that unmaps it cannot
    // use its C library any more).
    let first_page = unsafe { core::slice::from_raw_parts(start, super::mem::PAGE) };
    let length = loaded_length(first_page)?;
    // SAFETY: as above. The one loaded segment begins with the header and has this length.
    let image = unsafe { core::slice::from_raw_parts(start, length) };
    offset_of(image, name).map(|offset| base + offset)
}

fn number<const BYTES: usize>(image: &[u8], at: usize) -> Option<usize> {
    let bytes = image.get(at..at.checked_add(BYTES)?)?;
    let mut wide = [0; 8];
    wide[..BYTES].copy_from_slice(bytes);
    usize::try_from(u64::from_le_bytes(wide)).ok()
}

/// The program headers of a type: the offsets at which they begin.
fn headers(image: &[u8], wanted: usize) -> impl Iterator<Item = usize> {
    const LENGTH: usize = 56;
    let is_elf64 = image.starts_with(b"\x7fELF\x02\x01");
    let first = number::<8>(image, 32).unwrap_or(0);
    let count = if is_elf64 { number::<2>(image, 56).unwrap_or(0) } else { 0 };
    let at = move |header| first.checked_add(header * LENGTH);
    (0..count).map_while(at).filter(move |&at| number::<4>(image, at) == Some(wanted))
}

/// The length of the image, if it is one segment that begins with the header.
fn loaded_length(image: &[u8]) -> Option<usize> {
    const LOAD: usize = 1;
    let mut loaded = headers(image, LOAD);
    let header = loaded.next()?;
    let [offset, address, length] =
        [8, 16, 32].map(|field| number::<8>(image, header.checked_add(field)?));
    (loaded.next().is_none() && (offset, address) == (Some(0), Some(0))).then_some(length?)
}

/// Where the function with this name begins in the image.
fn offset_of(image: &[u8], name: &[u8]) -> Option<usize> {
    const DYNAMIC: usize = 2;
    const ENTRY: usize = 16;
    const STRINGS: usize = 5;
    const SYMBOLS: usize = 6;
    const SYMBOL: usize = 24;

    let header = headers(image, DYNAMIC).next()?;
    let [start, length] = [16, 40].map(|field| number::<8>(image, header + field));
    let (start, length) = (start?, length?);
    let entry = |tag| {
        let end = start.checked_add(length)?.min(image.len());
        let mut entries = (start..end).step_by(ENTRY);
        entries
            .find(|&at| number::<8>(image, at) == Some(tag))
            .and_then(|at| number::<8>(image, at + 8))
    };
    // The names come directly after the symbols.
    let (symbols, strings) = (entry(SYMBOLS)?, entry(STRINGS)?);
    (symbols..strings.min(image.len())).step_by(SYMBOL).find_map(|symbol| {
        let text = image.get(strings.checked_add(number::<4>(image, symbol)?)?..)?;
        let is_it = text.starts_with(name) && text.get(name.len()) == Some(&0);
        let defined = number::<2>(image, symbol + 6)? != 0;
        let value = number::<8>(image, symbol + 8)?;
        (is_it && defined && value < image.len()).then_some(value)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Every vDSO of Linux on x86-64 has it.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_clock_is_found_and_tells_the_time() {
        let address = function(b"__vdso_clock_gettime").expect("a function of the vDSO");
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the function at this address is the vDSO's form of clock_gettime(2).
        let result = unsafe {
            let clock_gettime: extern "C" fn(i32, *mut libc::timespec) -> i32 =
                core::mem::transmute(address);
            clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time)
        };
        assert_eq!(result, 0);
        assert_ne!((time.tv_sec, time.tv_nsec), (0, 0));
    }

    #[test]
    fn a_name_must_match_as_a_whole() {
        assert_eq!(function(b"__vdso_clock_gettim"), None);
        assert_eq!(function(b""), None);
    }

    #[test]
    fn any_bytes_are_read_within_their_bounds() {
        // SAFETY: as in `function`.
        let page = unsafe {
            let base = libc::getauxval(libc::AT_SYSINFO_EHDR) as usize;
            let start = core::ptr::with_exposed_provenance::<u8>(base);
            core::slice::from_raw_parts(start, super::super::mem::PAGE)
        };
        let mut image = page.to_vec();
        for at in 0..image.len() {
            let before = image[at];
            for other in [0, 0x7f, 0xff] {
                image[at] = other;
                let _ = loaded_length(&image);
                if let Some(offset) = offset_of(&image, b"__vdso_clock_gettime") {
                    assert!(offset < image.len());
                }
            }
            image[at] = before;
        }
        for length in 0..image.len() {
            let _ = (loaded_length(&image[..length]), offset_of(&image[..length], b"x"));
        }
    }
}
