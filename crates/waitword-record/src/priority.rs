//! A thread's own priority, without what another thread lends it.

use crate::format::{Priority, Ring};
use core::sync::atomic::Ordering;

impl Ring {
    /// Notes the priority of the calling thread, which the ring belongs to.
    pub(crate) fn note_priority(&self) {
        // Relaxed: it stands alone.
        self.priority.store(own().0, Ordering::Relaxed);
    }
}

/// The calling thread's priority.
fn own() -> Priority {
    // SAFETY: plain numbers; errno is kept by the callers of this module. The calls of the C
    // library may not be the kernel's: glibc returns what it remembers.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    match policy as i32 & !libc::SCHED_RESET_ON_FORK {
        _ if policy < 0 => Priority::UNKNOWN,
        libc::SCHED_FIFO | libc::SCHED_RR => {
            // The kernel's `struct sched_param`, of which the C libraries have larger ones.
            let mut priority = 0_i32;
            // SAFETY: the kernel writes one number, to `priority`.
            let failed =
                unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority) } != 0;
            match failed {
                true => Priority::UNKNOWN,
                false => Priority::real_time(priority),
            }
        }
        libc::SCHED_DEADLINE => Priority::DEADLINE,
        libc::SCHED_IDLE => Priority::IDLE,
        _ => {
            // SAFETY: plain numbers. The kernel returns 20 - nice, 1 to 40, or a negative error.
            let answer = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
            match answer {
                1..=40 => Priority::nice(20 - answer as i32),
                _ => Priority::UNKNOWN,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_niceness_is_its_own() {
        let here = own();
        assert_ne!(here, Priority::UNKNOWN);
        let nicer = std::thread::spawn(|| {
            // SAFETY: plain numbers; on Linux this is the calling thread's niceness.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) }, 0);
            own()
        });
        assert_eq!(nicer.join().unwrap(), Priority::nice(19));
        assert_eq!(own(), here);
    }
}
