//! Why something is lost, workload by workload: what is known of it, and how it is known.

/// Why this workload's losses are what they are; `None` if nobody knows.
pub fn reason(workload: &str) -> Option<&'static str> {
    REASONS
        .iter()
        .find_map(|(name, why)| (*name == workload).then_some(*why))
}

const REASONS: &[(&str, &str)] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::workloads;

    #[test]
    fn a_reason_is_that_of_a_workload() {
        for (name, why) in REASONS {
            assert!(
                workloads().iter().any(|workload| workload.name == *name),
                "{name}"
            );
            assert!(why.ends_with('.'), "{name}");
        }
        assert_eq!(reason("no such"), None);
    }
}
