//! `waitword doctor`: shows what this machine supports and how waitword uses it.

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::process::ExitCode;
use waitword::probe::{self, Support};
use waitword::time_slice;

/// Longer lines are hard to read.
const WIDEST: u16 = 130;

/// The arguments of `waitword doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON: a list of objects with the fields `what`, `here` and `so`
    #[arg(long)]
    json: bool,
}

/// One feature that a machine may have.
#[derive(Debug, Serialize)]
struct Finding {
    /// The feature's name.
    what: &'static str,
    /// Whether this machine has it, or its value here.
    here: String,
    /// How waitword uses it.
    so: &'static str,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let findings = findings();
    if args.json {
        match serde_json::to_string_pretty(&findings) {
            Ok(text) => println!("{text}"),
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new();
    if table.width().is_none_or(|width| width > WIDEST) {
        table.set_width(WIDEST);
    }
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["feature", "here", "how waitword uses it"]);
    for finding in &findings {
        table.add_row([finding.what, &finding.here, finding.so]);
    }
    println!("{table}");
    ExitCode::SUCCESS
}

fn findings() -> Vec<Finding> {
    let mut findings = machine();
    findings.extend(futexes());
    findings.extend(scheduler());
    findings
}

fn finding(what: &'static str, here: impl ToString, so: &'static str) -> Finding {
    Finding { what, here: here.to_string(), so }
}

/// The sentence that applies to this support.
fn either(support: Support, there: &'static str, missing: &'static str) -> &'static str {
    if support.is_there() { there } else { missing }
}

fn machine() -> Vec<Finding> {
    let kernel = probe::kernel();
    let (allowed, online) = probe::cpus();
    let nodes = probe::numa_nodes();
    vec![
        finding(
            "kernel",
            kernel.release,
            "waitword tries each call; it infers nothing from the version.",
        ),
        finding(
            "CPUs",
            format!("{allowed} of {online} online"),
            if allowed > 1 {
                "Waiters stay awake briefly before they sleep, and yield their CPU meanwhile."
            } else {
                "Waiters sleep at once: on one CPU, a spinning waiter keeps the waker from running."
            },
        ),
        finding(
            "NUMA nodes",
            nodes,
            if nodes > 1 {
                "Each node has its own buckets. A word can name the node that queues its waiters."
            } else {
                "One node holds all buckets. A word may name node 0, or -1."
            },
        ),
    ]
}

fn futexes() -> Vec<Finding> {
    let classic = probe::futex();
    let mut findings = vec![finding(
        "futex(2)",
        classic,
        either(
            classic,
            "Waiters on private words sleep in it, up to 32 per kernel word. Shared words of 8, 16 \
             and 32 bits use it.",
            "Required: nothing works without it.",
        ),
    )];
    let sizes = [
        (8, "futex2, 8 bits"),
        (16, "futex2, 16 bits"),
        (32, "futex2, 32 bits"),
        (64, "futex2, 64 bits"),
    ];
    for (bits, what) in sizes {
        findings.push(size(bits, what));
    }
    let waitv = probe::futex_waitv();
    findings.push(finding(
        "futex_waitv",
        waitv,
        either(
            waitv,
            "Used to wait on a shared 64-bit word (both halves at once), or on several words if \
             some are shared.",
            "Waiting on a shared 64-bit word, or on several words if some are shared, fails with \
             ENOSYS.",
        ),
    ));
    for (what, support) in [
        ("futex_wait (futex2)", probe::futex2_wait_call()),
        ("futex_wake (futex2)", probe::futex2_wake_call()),
        ("futex_requeue (futex2)", probe::futex2_requeue_call()),
    ] {
        let so = "Not used: futex(2) does the same for 32-bit words and exists on older kernels. \
                  waitword's own calls take the same arguments.";
        findings.push(finding(what, support, so));
    }
    findings.extend(placement());
    findings
}

fn size(bits: u32, what: &'static str) -> Finding {
    let support = probe::futex2_size(bits);
    let so = match bits {
        32 => "Private words use waitword's own table; shared words use the kernel.",
        64 => "waitword's own at this size, private and shared, even if the kernel has it.",
        _ => "waitword's own at this size: private in its table, shared on the 32 bits around it.",
    };
    finding(what, support, so)
}

fn placement() -> Vec<Finding> {
    let numa = "Private words: waitword's own table follows the same contract. Shared words: the \
                calls with futex2's arguments pass the flag to the kernel.";
    // The kernel creates the table when a process starts its first thread.
    let _ = std::thread::spawn(|| ()).join();
    let (hash, so) = match probe::private_hash_slots() {
        Err(error) => (Support::No(error).to_string(), "Sleepers use the kernel's global table."),
        Ok(0) => (
            "none: this process uses the global table".to_owned(),
            "waitword does not change this: sleepers use the global table, 32 per word.",
        ),
        Ok(slots) => (
            slots.to_string(),
            "waitword's sleepers use this table, 32 per word. It is enlarged if more than 512 \
             threads wait at once.",
        ),
    };
    let wipe = probe::wipe_on_fork();
    let robust = probe::robust_unlock();
    vec![
        finding("FUTEX2_NUMA", probe::futex2_numa(), numa),
        finding(
            "FUTEX2_MPOL",
            probe::futex2_mpol(),
            "Private words: accepted, no effect. Shared words: the calls with futex2's arguments \
             pass the flag to the kernel.",
        ),
        finding("kernel's private hash slots", hash, so),
        finding(
            "robust unlock",
            robust,
            either(
                robust,
                "A robust mutex is freed and off its thread's list in one step: always with \
                 priority inheritance, and without it if no thread waits.",
                "If a thread is killed as it unlocks a robust mutex, its memory must not be reused \
                 until the thread has ended.",
            ),
        ),
        finding(
            "MADV_WIPEONFORK",
            wipe,
            either(
                wipe,
                "The kernel wipes the table and the parkers in every forked child.",
                "A pthread_atfork handler clears the table in the child. It misses a bare clone.",
            ),
        ),
    ]
}

fn scheduler() -> Vec<Finding> {
    let rseq = probe::rseq();
    let features = if rseq.is_registered() {
        format!("registered; {} ({} bytes)", rseq.features().join(", "), rseq.feature_size)
    } else {
        "not registered by the C library".to_owned()
    };
    let paranoid = probe::perf_event_paranoid()
        .map_or_else(|| "no perf events".to_owned(), |level| level.to_string());
    vec![
        finding(
            "preemption model",
            probe::kernel().preemption,
            "Reported with every measurement. Nothing depends on it.",
        ),
        finding(
            "rseq",
            features,
            "Gives a thread its CPU number without a system call. Locks use it to choose which \
             waiter to wake.",
        ),
        slice_extension(),
        finding(
            "perf switch ring",
            probe::switch_ring(),
            "Not used to wait or wake. It shows almost exactly whether a thread runs, at a cost \
             per switch.",
        ),
        finding(
            "perf_event_paranoid",
            paranoid,
            "Above 2, an unprivileged process has no switch ring.",
        ),
    ]
}

fn slice_extension() -> Finding {
    let kernel = probe::slice_extension();
    let so = match (kernel.is_there(), time_slice::is_available()) {
        (true, true) => {
            "A thread that holds a bucket asks for one, so that it is not preempted there. So does \
             `time_slice::extend`."
        }
        // The variable is the other reason, and whoever sets it knows.
        (true, false) => {
            "Not used: it needs an rseq area as large as the kernel's, which glibc 2.41 registers \
             (and WAITWORD_TIME_SLICE must not be 0)."
        }
        (false, _) => {
            "A thread may be preempted while it holds a bucket; others that need the bucket sleep \
             then. Linux 7.0 has extensions, if built with CONFIG_RSEQ_SLICE_EXTENSION."
        }
    };
    finding("rseq slice extension", kernel, so)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_says_what_is_here_and_what_is_done_with_it() {
        for finding in findings() {
            assert!(!finding.here.is_empty(), "{finding:?}");
            assert!(finding.so.ends_with('.'), "{finding:?}");
        }
    }
}
