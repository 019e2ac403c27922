//! The machine and its scheduler: CPUs, nodes, preemption, and ways to know whether a thread runs.

use super::Support;
use crate::sys::from_raw;
use crate::sys::mem::PAGE;
use crate::sys::sched;
use syscalls::{Sysno, syscall1, syscall2, syscall5, syscall6};

/// Restartable sequences: the memory area in which the kernel tells a thread which CPU it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rseq {
    /// How many bytes of `struct rseq` this kernel fills in (`AT_RSEQ_FEATURE_SIZE`). 0 if the
    /// kernel does not report it: before Linux 6.3, or if it has no rseq.
    pub feature_size: u32,
    /// How many bytes the C library has registered for its threads; 0 if it has not registered any.
    pub registered_size: u32,
}

impl Rseq {
    /// Bytes up to and including the node number.
    const NODE: u32 = 24;
    /// Bytes up to and including the concurrency number.
    const CONCURRENCY: u32 = 28;

    /// Whether the threads have an area that can be read at all.
    pub fn is_registered(&self) -> bool {
        self.registered_size != 0
    }

    /// The names of the fields that can be read in a thread's area.
    pub fn features(&self) -> Vec<&'static str> {
        let mut features = Vec::new();
        if !self.is_registered() {
            return features;
        }
        features.push("cpu_id");
        if self.feature_size >= Self::NODE {
            features.push("node_id");
        }
        if self.feature_size >= Self::CONCURRENCY {
            features.push("mm_cid");
        }
        features
    }
}

/// The support for restartable sequences in this process.
pub fn rseq() -> Rseq {
    const AT_RSEQ_FEATURE_SIZE: usize = 27;
    let feature_size = std::fs::read("/proc/self/auxv")
        .ok()
        .and_then(|auxv| auxiliary(&auxv, AT_RSEQ_FEATURE_SIZE))
        .unwrap_or(0);
    Rseq { feature_size: feature_size as u32, registered_size: crate::sys::rseq::registered_size() }
}

/// The value of `key` in an auxiliary vector: pairs of machine words, ended by key 0.
fn auxiliary(vector: &[u8], key: usize) -> Option<usize> {
    const WORD: usize = size_of::<usize>();
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).ok();
    vector.chunks_exact(2 * WORD).find_map(|pair| {
        let (found, value) = pair.split_at(WORD);
        (word(found)? == key).then(|| word(value))?
    })
}

/// Whether the kernel has rseq's time slice extensions (`prctl` 79, Linux 7.0; `ENOTSUPP` from one
/// that was built without them, though it is new enough). Whether the calling thread can use them
/// depends on the C library too: [`time_slice::is_available`](crate::time_slice::is_available).
pub fn slice_extension() -> Support {
    const PR_RSEQ_SLICE_EXTENSION: usize = 79;
    const GET: usize = 1;
    // SAFETY: no memory is passed, and GET changes nothing.
    Support::succeeds(from_raw(unsafe {
        syscall5(Sysno::prctl, PR_RSEQ_SLICE_EXTENSION, GET, 0, 0, 0)
    }))
}

/// Whether a thread may have its own context switches written to a ring that other threads can read
/// (`perf_event_open`, software dummy event with `context_switch`, user space only). Opens such a
/// ring for the calling thread, maps it read-only, and closes it.
pub fn switch_ring() -> Support {
    const SOFTWARE: u32 = 1;
    const DUMMY: u64 = 9;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    const CONTEXT_SWITCH: u64 = 1 << 26;
    const CLOSE_ON_EXEC: usize = 8;
    const ATTRIBUTE_SIZE: u32 = 112;
    const PROT_READ: usize = 1;
    const MAP_SHARED: usize = 1;

    // `struct perf_event_attr` as 64-bit words: type and size, config, period, sample type, read
    // format, flags, and zeros.
    let mut attribute = [0u64; ATTRIBUTE_SIZE as usize / 8];
    let head = [SOFTWARE.to_ne_bytes(), ATTRIBUTE_SIZE.to_ne_bytes()].concat();
    attribute[0] = u64::from_ne_bytes(head.try_into().expect("two words of four bytes"));
    attribute[1] = DUMMY;
    attribute[5] = EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | SAMPLE_ID_ALL | CONTEXT_SWITCH;
    let ring = 2 * PAGE;

    // SAFETY: `attribute` is as long as it states and outlives the call. The kernel reads it; if it
    // does not know the size, it may write the size that it does know into it, and `attribute` is
    // not used afterwards. pid 0, cpu -1, no group: the calling thread.
    // The mapping goes to an address of the kernel's choice, is never read, and is unmapped again
    // with the length that it was mapped with. The descriptor was opened here and is known only
    // here, so no other file is closed.
    unsafe {
        let file = match from_raw(syscall5(
            Sysno::perf_event_open,
            attribute.as_mut_ptr() as usize,
            0,
            usize::MAX,
            usize::MAX,
            CLOSE_ON_EXEC,
        )) {
            Ok(file) => file,
            Err(error) => return Support::No(error),
        };
        let mapped = from_raw(syscall6(Sysno::mmap, 0, ring, PROT_READ, MAP_SHARED, file, 0));
        if let Ok(address) = mapped {
            let _ = syscall2(Sysno::munmap, address, ring);
        }
        let _ = syscall1(Sysno::close, file);
        Support::succeeds(mapped)
    }
}

/// The kernel's release, and how it preempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// As `uname -r` prints it.
    pub release: String,
    /// For instance `full`, `lazy`, `rt`; with a remark if the kernel does not report it exactly.
    pub preemption: String,
}

/// The running kernel.
pub fn kernel() -> Kernel {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    Kernel {
        release: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        preemption: preemption_model(
            std::fs::read_to_string("/sys/kernel/debug/sched/preempt").ok().as_deref(),
            &read("/proc/cmdline"),
            &read("/proc/sys/kernel/version"),
        ),
    }
}

/// From debugfs (`none voluntary (full) lazy`), else from the command line, else from `uname -v`.
fn preemption_model(debugfs: Option<&str>, command_line: &str, version: &str) -> String {
    if let Some(chosen) =
        debugfs.and_then(|text| text.split_once('(')).and_then(|(_, rest)| rest.split_once(')'))
    {
        return chosen.0.to_owned();
    }
    let mut words = version.split_whitespace();
    if words.clone().any(|word| word == "PREEMPT_RT") {
        return "rt".to_owned();
    }
    if let Some(chosen) =
        command_line.split_whitespace().find_map(|word| word.strip_prefix("preempt="))
    {
        return chosen.to_owned();
    }
    match words.find_map(|word| word.strip_prefix("PREEMPT")) {
        Some("") => "full".to_owned(),
        Some("_LAZY") => "lazy".to_owned(),
        Some("_DYNAMIC") => "dynamic, the kernel's default (debugfs not readable)".to_owned(),
        Some(other) => other.trim_start_matches('_').to_lowercase(),
        None => "none or voluntary".to_owned(),
    }
}

/// How many NUMA nodes are online; at least 1.
pub fn numa_nodes() -> usize {
    std::fs::read_to_string("/sys/devices/system/node/online")
        .ok()
        .and_then(|text| list_length(&text))
        .unwrap_or(1)
        .max(1)
}

/// How many CPUs the calling thread may run on, and how many are online.
pub fn cpus() -> (usize, usize) {
    let allowed = sched::cpus() as usize;
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|text| list_length(&text))
        .unwrap_or(allowed);
    (allowed, online)
}

/// How many numbers a list such as `0-3,8,10-11` names; `None` if it is not a list.
fn list_length(list: &str) -> Option<usize> {
    list.trim().split(',').try_fold(0, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(sum + last.checked_sub(first)? + 1)
    })
}

/// The sysctl that restricts the use of performance events; `None` if the kernel has none.
pub fn perf_event_paranoid() -> Option<i32> {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_counted() {
        assert_eq!(list_length("0\n"), Some(1));
        assert_eq!(list_length("0-3,8,10-11\n"), Some(7));
        assert_eq!(list_length(""), None);
        assert_eq!(list_length("3-1"), None);
    }

    #[test]
    fn preemption_is_read_from_the_best_source_there_is() {
        let model = preemption_model;
        assert_eq!(model(Some("none voluntary (full) lazy\n"), "", ""), "full");
        assert_eq!(model(Some("none (lazy)\n"), "preempt=full", ""), "lazy");
        assert_eq!(model(None, "quiet preempt=none", "#1 SMP"), "none");
        assert_eq!(model(None, "", "#1 SMP PREEMPT_RT 2026"), "rt");
        assert_eq!(model(None, "", "#1 SMP PREEMPT 2026"), "full");
        assert_eq!(model(None, "", "#1 SMP 2026"), "none or voluntary");
        assert!(model(None, "", "#1 SMP PREEMPT_DYNAMIC 2026").starts_with("dynamic"));
    }

    #[test]
    fn the_auxiliary_vector_is_read_in_pairs() {
        let bytes: Vec<u8> =
            [27usize, 28, 6, 4096, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(auxiliary(&bytes, 27), Some(28));
        assert_eq!(auxiliary(&bytes, 6), Some(4096));
        assert_eq!(auxiliary(&bytes, 28), None);
    }

    #[test]
    fn rseq_names_no_feature_of_an_unregistered_page() {
        let rseq = |feature_size, registered_size| Rseq { feature_size, registered_size };
        assert!(rseq(28, 0).features().is_empty());
        assert_eq!(rseq(0, 32).features(), ["cpu_id"]);
        assert_eq!(rseq(28, 32).features(), ["cpu_id", "node_id", "mm_cid"]);
    }
}
