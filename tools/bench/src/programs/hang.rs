//! Reports which thread waits where in a process that does not end: each thread's state, where it
//! sleeps in the kernel, its system call, and its stack if a debugger is installed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Number of threads listed per process; the rest are only counted.
const NAMED: usize = 64;
/// Number of processes whose stacks are shown. Together they take less time than the timeout of the
/// benchmark's own watchdog.
const WITH_STACKS: usize = 3;

/// Describes all processes of a process group.
pub(super) fn report(group: i32) -> String {
    let mut text = String::new();
    for (number, (id, path)) in processes(group).into_iter().enumerate() {
        let command = fs::read(path.join("cmdline")).unwrap_or_default();
        let command: Vec<_> =
            command.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
        let _ = writeln!(text, "process {id}: {}", command.join(" ").trim_end());
        let tasks: Vec<PathBuf> = entries(&path.join("task"));
        for task in tasks.iter().take(NAMED) {
            let read = |file| fs::read_to_string(task.join(file)).unwrap_or_default();
            let (stat, wchan) = (read("stat"), read("wchan"));
            let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
            let _ = writeln!(
                text,
                "  {} {}: state {}, in {}, system call {}",
                task.file_name().unwrap_or_default().display(),
                read("comm").trim(),
                state.chars().next().unwrap_or('?'),
                wchan.trim(),
                read("syscall").trim()
            );
        }
        if tasks.len() > NAMED {
            let _ = writeln!(text, "  ... and {} more", tasks.len() - NAMED);
        }
        if number < WITH_STACKS {
            text += &stacks(id);
        }
    }
    text
}

fn processes(group: i32) -> Vec<(i32, PathBuf)> {
    let is_of_group = |path: &Path| {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        (fields.get(2)?.parse() == Ok(group)).then_some(())
    };
    let number = |path: &Path| path.file_name()?.to_str()?.parse().ok();
    entries(Path::new("/proc"))
        .into_iter()
        .filter_map(|path| Some((number(&path)?, path)))
        .filter(|(_, path)| is_of_group(path).is_some())
        .collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The stacks of all threads, from gdb; empty if there is no gdb.
fn stacks(process: i32) -> String {
    let output = Command::new("timeout")
        .args(["15", "gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-p"])
        .arg(process.to_string())
        .args(["-ex", "thread apply all bt 16"])
        .stdin(Stdio::null())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with(['#', 'T'])).take(400);
    lines.fold(String::new(), |all, line| all + "    " + line + "\n")
}
