//! All workloads.

use crate::harness::Workload;

/// All workloads, in the order in which they run.
pub fn workloads() -> &'static [Workload] {
    &[
        super::calls::WORKLOAD,
        super::hash::WORKLOAD,
        super::wake::WORKLOAD,
        super::wake_parallel::WORKLOAD,
        super::requeue::WORKLOAD,
        super::ping_pong::WORKLOAD,
        super::shared::WORKLOAD,
        super::scale::WORKLOAD,
        super::memory::WORKLOAD,
        super::uncontended::WORKLOAD,
        super::semaphore::WORKLOAD,
        super::queue::WORKLOAD,
        super::barrier::WORKLOAD,
        super::event::WORKLOAD,
        super::lockhammer::WORKLOAD,
        super::rates::WORKLOAD,
        super::mutex::WORKLOAD,
        super::shifting::WORKLOAD,
        super::rwlock::WORKLOAD,
        super::hand_over::WORKLOAD,
        super::cond_perf::WORKLOAD,
        super::pp::WORKLOAD,
        super::programs::WORKLOAD,
        super::recording::WORKLOAD,
    ]
}

impl Workload {
    /// Whether it runs if no workload is requested by name: those that the mails of the five
    /// patches measured, or with `full` all.
    pub fn is_usual(&self, full: bool) -> bool {
        const OF_THE_MAILS: [&str; 6] = [
            super::calls::WORKLOAD.name,
            super::mutex::WORKLOAD.name,
            super::rwlock::WORKLOAD.name,
            super::hand_over::WORKLOAD.name,
            super::cond_perf::WORKLOAD.name,
            super::pp::WORKLOAD.name,
        ];
        full || OF_THE_MAILS.contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn names_are_unique_and_every_workload_has_cases() {
        let mut names: Vec<_> = workloads().iter().map(|workload| workload.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), workloads().len());
        for workload in workloads() {
            assert!(!(workload.cases)(&Settings::default()).is_empty());
            assert!(!workload.about.is_empty());
        }
    }
}
