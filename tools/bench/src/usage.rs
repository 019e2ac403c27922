//! The resources that the process has used, and whether other processes used the machine meanwhile.

use core::ops::{AddAssign, Sub};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// CPU time and context switches of the whole process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time.
    pub cpu_seconds: f64,
    /// How often a thread gave up the CPU to sleep.
    pub voluntary_switches: u64,
    /// How often a thread was preempted.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Usage so far of all threads, including those that have ended.
    pub fn now() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    /// Usage so far of child processes that have ended.
    pub fn of_children() -> Self {
        Self::of(libc::RUSAGE_CHILDREN)
    }

    /// Usage so far of the calling thread. Makes two system calls.
    pub fn of_this_thread() -> Self {
        // SAFETY: plain data, which the call fills in.
        let time = unsafe {
            let mut time: libc::timespec = core::mem::zeroed();
            assert_eq!(libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time), 0);
            time
        };
        Self {
            // The other call's time is only as recent as the last tick of the kernel's clock.
            cpu_seconds: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9,
            ..Self::of(libc::RUSAGE_THREAD)
        }
    }

    /// Voluntary and involuntary switches together.
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    fn of(whom: libc::c_int) -> Self {
        // SAFETY: all zeros is a valid `struct rusage`, which the call fills in.
        Self::from_rusage(&unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            assert_eq!(libc::getrusage(whom, &mut usage), 0);
            usage
        })
    }

    /// Converts the kernel's structure.
    pub fn from_rusage(usage: &libc::rusage) -> Self {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self {
            cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

impl Sub for Usage {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu_seconds: (self.cpu_seconds - earlier.cpu_seconds).max(0.0),
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.cpu_seconds += other.cpu_seconds;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// Detects load that is not ours: the machine's busy time (`/proc/stat`, including the time that a
/// hypervisor gave to other guests) minus our own CPU time.
#[derive(Debug)]
pub struct LoadWatch {
    started: Instant,
    busy: Option<f64>,
    own: f64,
    /// Length of the kernel's accounting tick, in seconds.
    tick: f64,
    cpus: f64,
}

impl LoadWatch {
    /// Starts watching.
    pub fn start() -> Self {
        // SAFETY: the calls return numbers of the system and touch no memory.
        let (ticks, cpus) = unsafe {
            (libc::sysconf(libc::_SC_CLK_TCK), libc::sysconf(libc::_SC_NPROCESSORS_ONLN))
        };
        let tick = 1.0 / ticks.max(1) as f64;
        Self {
            started: Instant::now(),
            busy: busy_seconds(tick),
            own: own_seconds(),
            tick,
            cpus: cpus.max(1) as f64,
        }
    }

    /// Whether the observation is long enough to detect other load.
    pub fn can_tell(&self) -> bool {
        // The tolerance is then a tenth.
        self.started.elapsed().as_secs_f64() >= 20.0 * self.tick
    }

    /// Whether other processes used more than a tenth of the machine since [`LoadWatch::start`].
    /// Two ticks per CPU are tolerated, because the kernel counts in whole ticks.
    pub fn was_disturbed(&self) -> bool {
        let Some((before, after)) = self.busy.zip(busy_seconds(self.tick)) else {
            return false;
        };
        let own = own_seconds() - self.own;
        is_disturbed(after - before, own, self.started.elapsed(), self.cpus, self.tick)
    }
}

fn own_seconds() -> f64 {
    Usage::now().cpu_seconds + Usage::of_children().cpu_seconds
}

fn is_disturbed(busy: f64, own: f64, wall: Duration, cpus: f64, tick: f64) -> bool {
    busy - own > 0.1 * wall.as_secs_f64() * cpus + 2.0 * tick * cpus
}

fn busy_seconds(tick: f64) -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    Some(busy_ticks(&stat)? as f64 * tick)
}

/// All time in the line `cpu` that was not idle: user, nice, system, interrupts, stolen.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> =
        line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _io, interrupt, soft, stolen, ..] = fields[..] else {
        return None;
    };
    Some(user + nice + system + interrupt + soft + stolen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_everything_but_idle_and_waiting_for_io() {
        let stat = "cpu  10 1 20 500 99 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_ticks(stat), Some(40));
        assert_eq!(busy_ticks("cpu  10 1\n"), None);
        assert_eq!(busy_ticks(""), None);
    }

    #[test]
    fn a_hog_is_seen_and_our_own_time_is_not() {
        let wall = Duration::from_millis(500);
        assert!(!is_disturbed(1.0, 0.98, wall, 2.0, 0.01));
        assert!(!is_disturbed(0.14, 0.1, Duration::from_millis(50), 2.0, 0.01));
        assert!(is_disturbed(1.0, 0.5, wall, 2.0, 0.01));
    }

    #[test]
    fn other_load_is_judged_only_after_some_ticks() {
        let watch = LoadWatch::start();
        assert!(!watch.can_tell());
        let earlier = Duration::from_secs_f64(20.0 * watch.tick);
        let started = watch.started.checked_sub(earlier).expect("up for longer");
        assert!(LoadWatch { started, ..watch }.can_tell());
    }

    #[test]
    fn a_thread_is_not_charged_for_another() {
        let spin = |time: Duration| {
            let started = Instant::now();
            while started.elapsed() < time {}
        };
        let before = Usage::of_this_thread();
        std::thread::spawn(move || spin(Duration::from_millis(50))).join().unwrap();
        let other = Usage::of_this_thread() - before;
        assert!(other.cpu_seconds < 0.04, "{other:?}");
        assert!(other.voluntary_switches > 0, "{other:?}");
        spin(Duration::from_millis(20));
        let own = Usage::of_this_thread() - before;
        assert!(own.cpu_seconds > 0.0, "{own:?}");
    }

    #[test]
    fn usage_grows() {
        let before = Usage::now();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(20) {}
        assert!((Usage::now() - before).cpu_seconds > 0.0);
    }
}
