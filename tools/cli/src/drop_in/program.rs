//! Checks whether a program can be served: the dynamic loader must load it, with the C library that
//! the drop-in supports, and must heed `LD_PRELOAD`.

use anyhow::{Context as _, Result, bail};
use object::elf;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::read::{ReadCache, ReadRef as _};
use object::{Object as _, ObjectSymbol as _};
use std::env;
use std::ffi::{CString, OsStr};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Exit statuses, as in a shell: the program cannot be run; it was not found.
pub(super) const CANNOT_RUN: u8 = 126;
pub(super) const NOT_FOUND: u8 = 127;

/// A script's interpreter may itself be a script. The kernel follows at most this many.
const MOST_SCRIPTS: usize = 5;

/// The file that a shell would start under this name.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return path.exists().then_some(path);
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0)
}

/// Returns the program that will run: `path`, or the interpreter if `path` is a script.
///
/// # Errors
/// The reason why the program cannot be served, for the user.
pub(crate) fn can_be_served(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_SCRIPTS {
        heeds_preload(&path)?;
        match script_interpreter(&path)? {
            Some(interpreter) => path = interpreter,
            None => {
                is_dynamic(&path)?;
                return Ok(path);
            }
        }
    }
    // Left to the kernel, which reports a better error.
    Ok(path)
}

/// Refuses set-user-ID programs and files with capabilities: the loader does not let the user who
/// starts such a program change it.
fn heeds_preload(path: &Path) -> Result<()> {
    const SET_USER_OR_GROUP: u32 = 0o6000;
    let file = fs::metadata(path)?;
    // SAFETY: they cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mode = file.mode();
    let changes_user = mode & 0o4000 != 0 && file.uid() != user;
    let changes_group = mode & 0o2010 == 0o2010 && file.gid() != group;
    if mode & SET_USER_OR_GROUP != 0 && (changes_user || changes_group) {
        bail!(
            "a set-user-ID or set-group-ID program: the dynamic loader ignores LD_PRELOAD for it. \
             Run waitword as the user that the program becomes"
        );
    }
    if user != 0 && has_capabilities(path) {
        bail!("the file has capabilities: the dynamic loader ignores LD_PRELOAD for it");
    }
    Ok(())
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: two strings; nothing is written, since the size is 0.
    let size = unsafe {
        libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), core::ptr::null_mut(), 0)
    };
    size > 0
}

/// The interpreter that a script's first line names; `None` if the file is not a script.
fn script_interpreter(path: &Path) -> Result<Option<PathBuf>> {
    let mut beginning = Vec::new();
    fs::File::open(path)
        .context("cannot be read, so it cannot be checked")?
        .take(256)
        .read_to_end(&mut beginning)?;
    let Some(line) = beginning.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let name =
        line.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    Ok(Some(PathBuf::from(OsStr::from_bytes(name))))
}

fn is_dynamic(path: &Path) -> Result<()> {
    // Reads only the parts that are needed: a program may be gigabytes long.
    let data = ReadCache::new(fs::File::open(path)?);
    if data.read_bytes_at(0, 4).unwrap_or_default() != elf::ELFMAG {
        bail!("neither an ELF program nor a script");
    }
    let other_machine =
        || format!("not a program for this machine ({}, 64 bits)", env::consts::ARCH);
    let header =
        elf::FileHeader64::<object::Endianness>::parse(&data).with_context(other_machine)?;
    let endian = header.endian()?;
    let machine = match env::consts::ARCH {
        "x86_64" => elf::EM_X86_64,
        "aarch64" => elf::EM_AARCH64,
        "riscv64" => elf::EM_RISCV,
        other => bail!("the drop-in is not built for {other}"),
    };
    if header.e_machine(endian) != machine {
        bail!(other_machine());
    }
    let interpreter = header
        .program_headers(endian, &data)?
        .iter()
        .find_map(|segment| segment.interpreter(endian, &data).transpose())
        .transpose()?;
    match interpreter {
        None => bail!(
            "statically linked: without a dynamic loader no library can be preloaded. Link the \
             program with libwaitword.a, or link the C library dynamically"
        ),
        Some(name) if name.windows(7).any(|part| part == b"ld-musl") => {
            bail!("linked against musl; the drop-in requires glibc")
        }
        Some(_) if is_watched_by_thread_sanitizer(&data) => bail!(
            "built with ThreadSanitizer, which must see the locks itself: under the drop-in it \
             would report false races"
        ),
        Some(_) => Ok(()),
    }
}

/// Whether ThreadSanitizer is linked in. (AddressSanitizer itself refuses to load behind another
/// library.)
fn is_watched_by_thread_sanitizer(data: &ReadCache<fs::File>) -> bool {
    let Ok(file) = ElfFile64::<object::Endianness, _>::parse(data) else {
        return false;
    };
    file.dynamic_symbols().any(|symbol| symbol.name_bytes() == Ok(b"__tsan_init"))
}
