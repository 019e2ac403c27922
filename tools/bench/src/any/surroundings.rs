//! What runs beside a measurement: busy processes, or a restriction to one CPU. (`quota.rs` has the
//! CPU time quota.)

use super::cell::Beside;
use crate::cpus::allowed_cpus;
use crate::harness::Failure;
use libc::pid_t;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

/// Processes that compute for as long as this value lives.
pub(super) struct Busy(Vec<pid_t>);

impl Busy {
    /// Starts the busy processes of these surroundings.
    ///
    /// # Errors
    /// The system cannot start more processes.
    pub(super) fn beside(beside: Beside) -> Result<Self, Failure> {
        let cpus = allowed_cpus();
        let busy = match beside {
            Beside::BusyOne => 1,
            Beside::BusyAll => cpus.len(),
            Beside::Quiet | Beside::Pinned | Beside::OneCpu | Beside::HalfQuota => 0,
        };
        let mut all = Self(Vec::new());
        for &cpu in &cpus[..busy] {
            all.0.push(start_busy(cpu)?);
        }
        Ok(all)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for &process in &self.0 {
            // SAFETY: no memory is passed; the status pointer is null. The process is our child,
            // and nothing else has waited for it.
            unsafe {
                libc::kill(process, libc::SIGKILL);
                libc::waitpid(process, core::ptr::null_mut(), 0);
            }
        }
    }
}

fn start_busy(cpu: usize) -> Result<pid_t, Failure> {
    let parent = std::process::id();
    // SAFETY: the child allocates nothing, takes no lock, and makes only system calls.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::new(format!(
            "cannot start a busy process: {}",
            io::Error::last_os_error()
        ))),
        0 => {
            // SAFETY: system calls; the only memory passed is a CPU set on this stack.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let mut set: libc::cpu_set_t = core::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
                // The parent may have ended before the death signal was set.
                while libc::getppid() as u32 == parent {
                    super::work::work(1_000_000);
                }
                libc::_exit(0);
            }
        }
        process => Ok(process),
    }
}

/// Makes a command run on the CPUs of these surroundings and die with the thread that starts it.
pub(super) fn confine(command: &mut Command, beside: Beside) {
    let only = (beside == Beside::OneCpu).then(|| allowed_cpus()[0]);
    // SAFETY: system calls between fork and exec; the only memory passed is a CPU set on the stack.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if let Some(cpu) = only {
                let mut set: libc::cpu_set_t = core::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// CPU time a process has used so far; zero if it no longer exists.
pub(super) fn cpu_time(process: pid_t) -> Duration {
    let mut clock = 0;
    // SAFETY: `clock` and `time` are valid places for the results.
    unsafe {
        let mut time: libc::timespec = core::mem::zeroed();
        if libc::clock_getcpuclockid(process, &raw mut clock) != 0
            || libc::clock_gettime(clock, &raw mut time) != 0
        {
            return Duration::ZERO;
        }
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    const LOOK: Duration = Duration::from_millis(1);

    #[test]
    fn a_busy_process_is_busy_and_ends() {
        let busy = Busy::beside(Beside::BusyOne).unwrap();
        let process = busy.0[0];
        let began = Instant::now();
        while cpu_time(process) < Duration::from_millis(20) {
            assert!(began.elapsed() < Duration::from_secs(20), "it does nothing");
            thread::sleep(LOOK);
        }
        drop(busy);
        assert_eq!(cpu_time(process), Duration::ZERO);
    }
}
