//! The CPUs that this process may use, and binding threads to them.

use rustix::thread::CpuSet;

/// The CPUs that this process may use, in ascending order.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return vec![0];
    };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Binds the calling thread to these CPUs.
///
/// # Panics
/// If the system refuses, because the figures would then mean something else.
pub(crate) fn run_on(cpus: &[usize]) {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &set).expect("binding a thread to CPUs it may use");
}
