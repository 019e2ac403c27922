//! The header of every report: the machine on which it was measured. A figure without it is
//! meaningless.

use crate::pause;
use crate::ticks;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use waitword::probe;

/// The machine, and its settings that affect the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the CPU.
    pub cpu: String,
    /// CPUs that this process may run on.
    pub cpus_allowed: usize,
    /// CPUs of the machine that are online.
    pub cpus_online: usize,
    /// NUMA nodes.
    pub numa_nodes: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Preemption model of the kernel.
    pub preemption: String,
    /// Version of the C library.
    pub glibc: String,
    /// The policy that puts an idle CPU to sleep. A CPU in a deep sleep wakes late.
    pub idle_governor: Option<String>,
    /// Length of one pause instruction, the unit of the sections under a lock.
    pub pause_nanoseconds: f64,
    /// Ticks of the time-stamp counter per nanosecond, for comparison with published figures in
    /// cycles; 1 if there is no such counter.
    pub ticks_per_nanosecond: f64,
    /// The kernel's restriction of performance events.
    pub perf_event_paranoid: Option<i32>,
    /// Buckets of the process's hash table in the kernel, at the start and at the end of the run.
    /// Our table asks for more as it grows, which helps the baseline too.
    pub private_hash_slots: [Option<usize>; 2],
}

impl Machine {
    /// The current machine.
    pub fn this() -> Self {
        // The kernel creates the process's own hash table with the first thread.
        let _ = std::thread::spawn(|| ()).join();
        let kernel = probe::kernel();
        let (cpus_allowed, cpus_online) = probe::cpus();
        let slots = probe::private_hash_slots().ok();
        Self {
            cpu: cpu_name(&read("/proc/cpuinfo").unwrap_or_default())
                .unwrap_or("unknown")
                .to_owned(),
            cpus_allowed,
            cpus_online,
            numa_nodes: probe::numa_nodes(),
            kernel: kernel.release,
            preemption: kernel.preemption,
            glibc: glibc_version(),
            idle_governor: read("/sys/devices/system/cpu/cpuidle/current_governor"),
            pause_nanoseconds: pause::nanoseconds(),
            ticks_per_nanosecond: 1.0 / ticks::nanoseconds_per_tick(),
            perf_event_paranoid: probe::perf_event_paranoid(),
            private_hash_slots: [slots, slots],
        }
    }

    /// Reads again what the run itself may have changed.
    pub fn look_again(&mut self) {
        self.private_hash_slots[1] = probe::private_hash_slots().ok();
    }

    /// Name and value of each line.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let slots =
            self.private_hash_slots.map(|slots| or_none(slots.map(|slots| slots.to_string())));
        vec![
            ("CPU", self.cpu.clone()),
            ("CPUs", format!("{} of {} online", self.cpus_allowed, self.cpus_online)),
            ("NUMA nodes", self.numa_nodes.to_string()),
            ("kernel", self.kernel.clone()),
            ("preemption", self.preemption.clone()),
            ("C library", self.glibc.clone()),
            ("pause instruction", format!("{:.1} ns", self.pause_nanoseconds)),
            ("time-stamp counter", format!("{:.3} ticks per ns", self.ticks_per_nanosecond)),
            ("idle governor", or_none(self.idle_governor.clone())),
            ("private hash slots", format!("{} at start, {} at end", slots[0], slots[1])),
            (
                "perf_event_paranoid",
                or_none(self.perf_event_paranoid.map(|level| level.to_string())),
            ),
        ]
    }
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn cpu_name(cpuinfo: &str) -> Option<&str> {
    let names = ["model name", "Model", "uarch", "cpu"];
    names.iter().find_map(|name| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == *name).then(|| value.trim())
        })
    })
}

#[cfg(target_env = "gnu")]
pub(crate) fn glibc_version() -> String {
    // SAFETY: the function returns a constant, zero-terminated string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn glibc_version() -> String {
    "not glibc".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_has_a_name() {
        let cpuinfo = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: Some CPU 9000\n";
        assert_eq!(cpu_name(cpuinfo), Some("Some CPU 9000"));
        assert_eq!(cpu_name("processor : 0\n"), None);
    }

    #[test]
    fn every_line_of_the_header_has_a_value() {
        let lines = Machine::this().lines();
        assert!(lines.iter().all(|(_, value)| !value.is_empty()), "{lines:?}");
    }
}
