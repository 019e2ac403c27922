//! `waitword run --check`: what the drop-in will see of a program, and what it will not.

use super::{CANNOT_RUN, program};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Says what it finds; fails if the program cannot be served.
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
    let mut files = vec![program.clone()];
    files.extend(libraries(&program)?);
    let mut mixed = 0;
    for file in files.iter().filter(|file| !is_the_c_library(file)) {
        mixed += usize::from(tell(file)?);
    }
    println!(
        "{} files were looked at: the program and the libraries that it is linked with. Those that it loads later are not among \
         them.",
        files.len()
    );
    if mixed > 0 {
        println!(
            "If a word is waited for in one of these ways and woken in the other, wake-ups get lost: then `waitword run --no-futex`."
        );
    }
    Ok(())
}

/// Says what a file has; whether it has both sorts of calls.
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
            "{}: {calls}, and none by the C library's `syscall`: its words stay in the kernel",
            file.display()
        ),
        seen => println!(
            "{}: {calls}, which go to the kernel, and {seen} by the C library's `syscall`, which do not",
            file.display()
        ),
    }
    Ok(found.by_function > 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn tell(_: &Path) -> Result<bool> {
    // Raw futexes are not served on this machine.
    Ok(false)
}

/// The libraries that the dynamic loader would load, as `ldd` finds them: by asking it.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env_remove("LD_PRELOAD")
        .output()
        .context("the dynamic loader cannot be asked for the libraries")?;
    if !output.status.success() {
        bail!(
            "the dynamic loader: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
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

/// The C library and its loader keep their futexes to themselves.
fn is_the_c_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    ["libc.so.", "ld-linux", "libpthread.so.", "librt.so."]
        .iter()
        .any(|known| name.starts_with(known))
}
