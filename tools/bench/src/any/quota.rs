//! Half of a CPU: the kernel's quota if this process may set one, otherwise stop signals.

use super::cell::Beside;
use super::surroundings::cpu_time;
use libc::pid_t;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Length of a quota period; the kernel's default.
const PERIOD: Duration = Duration::from_millis(100);
const QUOTA: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(1);

/// What enforces a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeper {
    /// A control group (`cpu.max`, `cpu.cfs_quota_us`).
    Kernel,
    /// Stop signals, accurate to a millisecond if the bench gets a CPU in time.
    Signals,
}

/// A child's quota, for as long as this value lives.
pub(super) struct Quota(Option<Group>);

impl Quota {
    /// The quota for these surroundings, if they have one.
    pub(super) fn of(beside: Beside) -> Option<Self> {
        (beside == Beside::HalfQuota).then(|| Self(Group::new()))
    }

    pub(super) fn keeper(&self) -> Keeper {
        match self.0 {
            Some(_) => Keeper::Kernel,
            None => Keeper::Signals,
        }
    }

    /// Makes a command start under the quota.
    pub(super) fn confine(&self, command: &mut Command) -> io::Result<()> {
        let Some(group) = &self.0 else { return Ok(()) };
        let processes = group.processes()?;
        // SAFETY: between fork and exec the child makes one system call, on a file that the closure
        // keeps open, with a static string.
        unsafe {
            command.pre_exec(move || {
                // "0" means the calling process.
                match libc::write(processes.as_raw_fd(), c"0".as_ptr().cast(), 1) {
                    1 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        Ok(())
    }

    /// Enforces a child's quota until `f` returns.
    pub(super) fn keep<T>(&self, child: u32, f: impl FnOnce() -> T) -> T {
        match self.0 {
            Some(_) => f(),
            None => stopping(child, f),
        }
    }
}

/// A control group below the bench's own.
struct Group(PathBuf);

impl Group {
    /// Returns `None` if this process may not make one or the kernel enforces no quota there.
    fn new() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        groups.lines().find_map(|line| {
            let (_, line) = line.split_once(':')?;
            let (controllers, path) = line.split_once(':')?;
            let (mounts, file, says) = match controllers {
                "" => (
                    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
                    "cpu.max",
                    format!("{} {}", QUOTA.as_micros(), PERIOD.as_micros()),
                ),
                _ if controllers.split(',').any(|name| name == "cpu") => (
                    ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
                    "cpu.cfs_quota_us",
                    QUOTA.as_micros().to_string(),
                ),
                _ => return None,
            };
            let begin =
                |mount| Self::below(&Path::new(mount).join(path.trim_matches('/')), file, &says);
            mounts.into_iter().find_map(begin)
        })
    }

    fn below(own: &Path, file: &str, says: &str) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !own.join("cgroup.procs").exists() {
            return None;
        }
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("waitword-bench-{}-{number}", std::process::id());
        let group = Self(own.join(name));
        fs::create_dir(&group.0).ok()?;
        // Open only, never create: where the kernel has no such file, we must not make one.
        let mut quota = OpenOptions::new().write(true).open(group.0.join(file)).ok()?;
        io::Write::write_all(&mut quota, says.as_bytes()).ok()?;
        // In cgroup version 2, a group that has processes cannot have a child group with a quota.
        group.processes().ok()?;
        Some(group)
    }

    fn processes(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.0.join("cgroup.procs"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel may still be cleaning up a process that has ended.
        for _ in 0..100 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(LOOK),
                _ => return,
            }
        }
    }
}

/// Stops a child when it has used the quota of a period, and continues it in the next one, until
/// `f` returns.
fn stopping<T>(child: u32, f: impl FnOnce() -> T) -> T {
    let process = child as pid_t;
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            while !is_over.load(SeqCst) {
                let (began, used) = (Instant::now(), cpu_time(process));
                let mut is_stopped = false;
                while began.elapsed() < PERIOD && !is_over.load(SeqCst) {
                    thread::sleep(LOOK);
                    if !is_stopped && cpu_time(process).saturating_sub(used) >= QUOTA {
                        // SAFETY: the call passes no memory. The child has not been waited for, so
                        // the process ID is still its own.
                        unsafe { libc::kill(process, libc::SIGSTOP) };
                        is_stopped = true;
                    }
                }
                if is_stopped {
                    // SAFETY: as above.
                    unsafe { libc::kill(process, libc::SIGCONT) };
                }
            }
        });
        let result = f();
        is_over.store(true, SeqCst);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU time that a busy child under this quota uses in a second.
    fn used_with(quota: &Quota) -> Duration {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        quota.confine(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        let process = child.id() as pid_t;
        let used = quota.keep(child.id(), || {
            let before = cpu_time(process);
            thread::sleep(Duration::from_secs(1));
            cpu_time(process) - before
        });
        child.kill().unwrap();
        child.wait().unwrap();
        used
    }

    #[test]
    fn a_quota_is_kept_by_the_kernel_if_it_may_be_and_by_signals() {
        let quota = Quota::of(Beside::HalfQuota).unwrap();
        let group = quota.0.as_ref().map(|group| group.0.clone());
        assert_eq!(quota.keeper() == Keeper::Kernel, group.is_some());
        for quota in [quota, Quota(None)] {
            let used = used_with(&quota);
            // Only an upper bound: how much CPU the child gets on a loaded machine is not up to us.
            assert!(used < Duration::from_millis(700), "{:?}: {used:?}", quota.keeper());
        }
        assert!(group.is_none_or(|group| !group.exists()));
    }

    #[test]
    fn other_cells_have_none() {
        assert!(Quota::of(Beside::Quiet).is_none());
    }

    #[test]
    fn where_no_group_can_be_made_there_is_none() {
        assert!(Group::below(Path::new("/nonexistent"), "cpu.max", "1 2").is_none());
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("cgroup.procs"), "").unwrap();
        assert!(Group::below(directory.path(), "cpu.max", "1 2").is_none());
        let left: Vec<_> = fs::read_dir(&directory).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
