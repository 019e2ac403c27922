//! `waitword run --check`: which futex calls of a program the drop-in will see, and which it will
//! not.

use super::program::{self, CANNOT_RUN};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Prints what it finds. Fails if the program cannot be served.
pub(super) fn report(path: &Path) -> ExitCode {
    match look(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waitword: {}: {error:#}", path.display());
            ExitCode::from(CANNOT_RUN)
        }
    }
}

fn look(path: &Path) -> Result<()> {
    let program = program::can_be_served(path)?;
    println!("{}: can be served", path.display());
    if !cfg!(target_arch = "x86_64") {
        println!(
            "Whether it makes futex calls of its own is not known: only code for x86-64 can be \
             searched for them."
        );
        return Ok(());
    }
    let mut files = vec![program.clone()];
    files.extend(libraries(&program)?);
    let mut mixed = 0;
    for file in files.iter().filter(|file| !is_the_c_library(file)) {
        mixed += usize::from(tell(file)?);
    }
    println!(
        "{} files were inspected: the program and the libraries that it is linked with. Libraries \
         that it loads later are not among them.",
        files.len()
    );
    if mixed > 0 {
        println!(
            "If the program waits on a word in one of these ways and wakes it in the other, \
             wake-ups are lost. In that case use `waitword run --no-futex`."
        );
    }
    Ok(())
}

/// Prints which futex calls a file makes. Returns whether it makes both kinds of calls.
#[cfg(target_arch = "x86_64")]
fn tell(file: &Path) -> Result<bool> {
    let found = super::inlined::look_into(file)
        .with_context(|| format!("cannot look into {}", file.display()))?;
    let calls = match found.inlined {
        0 => return Ok(false),
        1 => "1 futex call of its own".to_owned(),
        many => format!("{many} futex calls of its own"),
    };
    match found.by_function {
        0 => println!(
            "{}: {calls}, and none through the C library's `syscall`: its words stay in the kernel",
            file.display()
        ),
        seen => println!(
            "{}: {calls}, which go to the kernel, and {seen} through the C library's `syscall`, \
             which do not",
            file.display()
        ),
    }
    Ok(found.by_function > 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn tell(_: &Path) -> Result<bool> {
    unreachable!("not asked on this machine")
}

/// The libraries that the dynamic loader would load. As in `ldd`, the loader itself lists them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env_remove("LD_PRELOAD")
        .output()
        .context("cannot run the dynamic loader to list the libraries")?;
    if !output.status.success() {
        bail!("the dynamic loader: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    // `  libm.so.6 => /lib/libm.so.6 (0x00007f...)`, or the path alone.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path_of = |line: &str| {
        let (before, _) = line.rsplit_once(" (0x")?;
        let path = before.rsplit(" => ").next()?.trim();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    Ok(text.lines().filter_map(path_of).collect())
}

/// The C library and its loader use their own futexes only, so they are not inspected.
fn is_the_c_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    ["libc.so.", "ld-linux", "libpthread.so.", "librt.so."]
        .iter()
        .any(|known| name.starts_with(known))
}
