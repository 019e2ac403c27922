//! Threads under `SCHED_RR`, because only real-time threads may lock a mutex with a priority
//! ceiling.

use super::object::zero;
use super::sort::CEILING;

/// Makes the calling thread a real-time one, at the lowest priority, with round robin, which lets
/// threads of the same priority run.
pub(crate) fn become_one() -> Result<(), String> {
    zero("pthread_setschedparam", set(libc::SCHED_RR, CEILING))
}

/// Whether this process may have such threads.
pub(crate) fn is_allowed() -> bool {
    let asked = std::thread::spawn(|| set(libc::SCHED_RR, CEILING));
    asked.join().is_ok_and(|answer| answer == 0)
}

fn set(policy: i32, priority: i32) -> i32 {
    // SAFETY: all zeros is a valid struct, and it is only read; the thread is the caller.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::pthread_setschedparam(libc::pthread_self(), policy, &raw const parameters)
    }
}
