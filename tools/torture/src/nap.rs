//! How a thread lets others run while it waits for them without a lock or a word.

/// Lets other threads run, whatever their priority. For loops that wait for another thread: a
/// real-time thread that only yields keeps its CPU, and two of them keep both CPUs.
pub(crate) fn let_others_run() {
    // SAFETY: takes no pointers.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    match policy {
        libc::SCHED_FIFO | libc::SCHED_RR => nap(50),
        _ => std::thread::yield_now(),
    }
}

/// Sleeps for at most this many microseconds: a signal ends the sleep. The standard library instead
/// sleeps again for the rest, which never ends in a storm of signals: the kernel adds its slack of
/// 50 µs to the rest each time.
pub(crate) fn nap(microseconds: u64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: microseconds.min(999_999) as i64 * 1000 };
    // SAFETY: reads a whole `timespec`.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    fn on_the_first_cpu() {
        // SAFETY: zeros are an empty set; changes the calling thread only.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
            let cpus = 0..libc::CPU_SETSIZE as usize;
            let first = cpus.into_iter().find(|&cpu| libc::CPU_ISSET(cpu, &set));
            libc::CPU_ZERO(&mut set);
            libc::CPU_SET(first.expect("a CPU to run on"), &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
        }
    }

    /// A real-time thread waits for an ordinary one on the same CPU. If it only yielded, it would
    /// look millions of times, until the kernel grants ordinary threads their twentieth of the
    /// second.
    #[test]
    fn a_real_time_thread_lets_ordinary_ones_run() {
        let (is_set, looks) = (&AtomicBool::new(false), 10_000);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                on_the_first_cpu();
                let parameters = libc::sched_param { sched_priority: 1 };
                // SAFETY: reads a whole structure; changes the calling thread only.
                let set = unsafe {
                    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
                    libc::sched_setscheduler(0, policy, &raw const parameters)
                };
                if set != 0 {
                    eprintln!("not tried: real-time threads are not permitted");
                    return;
                }
                // It inherits the CPU, but not the policy.
                threads.spawn(|| is_set.store(true, SeqCst));
                let waited = (0..looks).find(|_| {
                    let_others_run();
                    is_set.load(SeqCst)
                });
                assert!(waited.is_some(), "not set after {looks} looks");
            });
        });
    }
}
