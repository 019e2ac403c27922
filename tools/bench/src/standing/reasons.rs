//! Explanations of our losses, workload by workload: what is known, and how it is known.

/// The explanation of this workload's losses; `None` if there is none.
pub fn reason(workload: &str) -> Option<&'static str> {
    let mut reasons = REASONS.iter();
    reasons.find_map(|(name, why)| (*name == workload).then_some(*why))
}

/// Only what has been investigated: by tracing, by counting, or by removing the suspected cause.
const REASONS: &[(&str, &str)] = &[
    (
        "calls",
        "Process-shared words use the kernel's futex: each operation is the kernel's system call \
         plus one more function call, whose return costs 70 to 450 ns on a virtual machine like \
         this (docs/design/waiter-table.md); `futex(2), inlined` has no such call. A wait on a \
         shared 64-bit word takes a longer system call, `futex_waitv` with two words.",
    ),
    (
        "wake",
        "Sleeping threads are woken by the kernel's own calls, 32 at a time if many are woken \
         together. In addition, ours must take them off its queue. If each wake wakes one thread, \
         both make one call per thread.",
    ),
    (
        "ping-pong",
        "With spinning off, both sleep and wake by the same system calls. Ours goes through more \
         functions, and each return from one costs time on a virtual machine.",
    ),
    (
        "shared",
        "The same system calls as the kernel's futex, through one more function. A 64-bit word \
         takes `futex_waitv` with two words; 8- and 16-bit words are compared in the process \
         first.",
    ),
    (
        "uncontended",
        "The drop-in's recursive and error-checking mutexes look up the calling thread in \
         thread-local storage. glibc owns that storage and can do this for less: 80 and 93 \
         instructions instead of our 132 and 136 (docs/costs.md).",
    ),
    (
        "barrier",
        "All waiters sleep in the kernel and are woken 32 at a time, each batch by a thread that \
         was just woken. In total this is slightly more work than one call that wakes all.",
    ),
    ("event", "As for `barrier`."),
    (
        "lockhammer",
        "With no work between sections, one thread keeps parking_lot's or the textbook mutex in \
         its CPU's cache for its whole time slice. Our mutex moves to the other CPU every 15 µs \
         (the slice), and each move costs a transfer of the cache lines. That is the price of \
         fairness (`spread`, and `fairness` of `mutex`). With 200 ns of work between sections, \
         waiting threads that are awake take CPU time from those that work.",
    ),
    ("rates", "As for `lockhammer`."),
    (
        "mutex",
        "One waiter is awake and watches the lock: the lock is never idle during a wake-up, but \
         that waiter uses a CPU (`CPU`, `preempted`). Peers with short waits at p99 let one \
         thread have the lock for a whole time slice: that thread hardly waits, and the waits of \
         the other threads show in `wait max` and `fairness`. In the worst case, 16 threads that \
         sleep inside, a lock that is handed to a sleeper is idle until the sleeper runs. If a \
         lock is never handed off, its fastest thread is done before the other threads have \
         begun, so every fair lock loses `fastest` and `average`.",
    ),
    (
        "shifting",
        "The adaptive lock must notice that the load has changed before it can adapt, and it pays \
         for this observation in each phase.",
    ),
    (
        "rwlock",
        "With 9 readers and 1 writer, `writes`: the writer of parking_lot, nsync and oneTBB \
         writes continuously while the readers are kept out (their `reads` are lower); ours lets \
         readers in between writes. `write max`: on two CPUs the writer waits for a CPU as well \
         as for the lock.",
    ),
    (
        "signal",
        "On two CPUs, the thread that waits first spins for up to 10 µs. While both threads are \
         awake that is enough, and a hand-off takes 1 µs. Once one thread has slept, its wake-up \
         takes longer (15 to 30 µs on this machine), so the other thread gives up and sleeps as \
         well, and this state persists: a round is of one kind or the other. With 16 pairs there \
         is no idle CPU to spin on. On one CPU all make the same switches, but ours does more \
         work for each: sleeping for a lock takes more atomic operations and instructions \
         (docs/costs.md, \"lock, sleeps\").",
    ),
    (
        "cond-perf",
        "With the mutex free (not held during the broadcast), the thundering herd of glibc and \
         std meets no resistance on two CPUs: one system call wakes all threads, and each finds \
         the mutex free. Ours wakes one, and then up to 31 more if the earlier ones got the mutex \
         at once, which takes more calls in total. With the mutex held, that herd is expensive \
         for glibc and std.",
    ),
    (
        "pp",
        "Many pairs, each with its own mutex, on two CPUs: no herd and no contention, only \
         signal, sleep and switch. All switch equally often; ours does more work for each sleep \
         (docs/costs.md, \"lock, sleeps\").",
    ),
    ("programs", "Programs that rarely wait for locks show the noise of the machine."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::workloads;

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
