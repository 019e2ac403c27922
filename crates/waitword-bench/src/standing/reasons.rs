//! Why something is lost, workload by workload: what is known of it, and how it is known.

/// Why this workload's losses are what they are; `None` if nobody knows.
pub fn reason(workload: &str) -> Option<&'static str> {
    let mut reasons = REASONS.iter();
    reasons.find_map(|(name, why)| (*name == workload).then_some(*why))
}

/// Only what was looked into: by tracing, by counting, or by taking it out.
const REASONS: &[(&str, &str)] = &[
    (
        "calls",
        "Process-shared words are the kernel's: each of these is its system call, made through one function more, whose \
         return costs 70 to 450 ns on a virtual machine like this (ARCHITECTURE.md); `futex(2), inlined` has none. A \
         wait on a shared 64-bit word is a longer call, `futex_waitv` with two words.",
    ),
    (
        "wake",
        "Threads that really sleep are woken by the kernel's own calls, 32 at a time where many are woken together: \
         what ours has to do besides is to take them off its queue. Where a wake takes one, both make one call for \
         each.",
    ),
    (
        "ping-pong",
        "With spinning off both sleep and wake by the same system calls; ours goes through more functions, each return \
         of which costs on a virtual machine.",
    ),
    (
        "shared",
        "The same system calls as the kernel's, through one function more; a 64-bit word takes `futex_waitv` with two \
         words, and 8 and 16 bits are compared in the process first.",
    ),
    (
        "uncontended",
        "Recursive and error-checking mutexes of the drop-in ask who is calling by a look into thread-local storage, \
         which glibc, being the library that has it, gets for less: 132 and 136 instructions for 80 and 93 \
         (docs/costs.md).",
    ),
    (
        "barrier",
        "All sleep in the kernel and are woken 32 at a time, each batch by one that was woken: that is a little more \
         work in all than one call that wakes all.",
    ),
    ("event", "As for `barrier`."),
    (
        "lockhammer",
        "With nothing to do between, one thread of parking_lot's and of the textbook's mutex keeps the lock in its \
         CPU's cache for as long as its time slice lasts; ours hands it to the other CPU every 15 µs (the slice), and \
         each change costs the transfer of the lines. That is the price of its fairness (`spread`, and `fairness` of \
         `mutex`). With 200 ns between, waiting threads that are awake take CPU from those that work.",
    ),
    ("rates", "As for `lockhammer`."),
    (
        "mutex",
        "One waiter is awake and looks at the lock: the lock never lies idle for a wake-up, and that waiter uses a CPU \
         (`CPU`, `preempted`). Peers with short waits at p99 let one thread have the lock for a whole time slice: what \
         it waits is next to nothing, what the others wait is in `wait max` and `fairness`. In the worst case, 16 \
         threads that sleep inside, a lock that is handed to a sleeper lies idle until that one runs; the fastest \
         thread of a lock that nobody hands over is done before the others have begun, so `fastest` and `average` are \
         lost by whoever is fair.",
    ),
    (
        "shifting",
        "The adaptive lock has to see that the load has changed before it changes itself, and pays in each phase for \
         looking.",
    ),
    (
        "rwlock",
        "Of 9 readers and 1 writer, `writes`: the writer of parking_lot, nsync and oneTBB \
         writes on and on while the readers are kept out (their `reads` are fewer); ours lets the readers in between. \
         `write max`: on two CPUs the writer waits for a CPU as well as for the lock.",
    ),
    (
        "signal",
        "On two CPUs, whoever waits first spins, for up to 10 µs. While both are awake that is enough: then a hand-over \
         takes 1 µs. Once one has slept, its wake-up takes longer (15 to 30 µs on this machine), the other gives up and \
         sleeps as well, and it stays so: rounds are of the one kind or the other. With 16 pairs there is no idle CPU \
         to spin on. On one CPU all make the same switches, and what ours does for them is more: to sleep for a lock \
         takes more atomic operations and instructions (docs/costs.md, \"lock, sleeps\").",
    ),
    (
        "cond-perf",
        "With the mutex free (not held during the broadcast), glibc's and std's herd meets no resistance on two CPUs: \
         one system call wakes all, and each finds the mutex free. Ours wakes one, and up to 31 more where those before \
         had the mutex at once: more calls in all. With the mutex held, that herd is what costs them.",
    ),
    (
        "pp",
        "Many pairs, each with a mutex of its own, on two CPUs: no herd, no contention, only signal, sleep and switch. \
         All switch equally often; what ours does for each sleep is more (docs/costs.md, \"lock, sleeps\").",
    ),
    (
        "programs",
        "Programs that hardly wait for locks show the noise of the machine.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::workloads;

    #[test]
    fn a_reason_is_that_of_a_workload() {
        for (name, why) in REASONS {
            let known = |workload: &crate::Workload| workload.name == *name;
            assert!(workloads().iter().any(known), "{name}");
            assert!(why.ends_with('.'), "{name}");
            assert_eq!(reason(name), Some(*why));
        }
        assert_eq!(reason("no such"), None);
    }
}
