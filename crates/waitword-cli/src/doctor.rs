//! `waitword doctor`: what this machine offers, and what waitword does with each.

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::process::ExitCode;
use waitword::probe::{self, Support};

/// Longer lines are hard to read.
const WIDEST: u16 = 130;

/// What the user can ask for.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// As JSON: a list of objects with `what`, `here` and `so`
    #[arg(long)]
    json: bool,
}

/// One thing that a machine may offer.
#[derive(Debug, Serialize)]
struct Finding {
    /// What it is.
    what: &'static str,
    /// Whether, or how, it is here.
    here: String,
    /// What waitword does with it.
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
        .set_header(["what", "here", "what waitword does with it"]);
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
    Finding {
        what,
        here: here.to_string(),
        so,
    }
}

/// One of two sentences, by whether it is there.
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
            "Every call is tried, none is inferred from the version.",
        ),
        finding(
            "CPUs",
            format!("{allowed} of {online} on line"),
            if allowed > 1 {
                "Waiters spin shortly before they sleep, never more at once than CPUs less one."
            } else {
                "Waiters sleep at once: with one CPU, whoever spins keeps the waker from running."
            },
        ),
        finding(
            "NUMA nodes",
            nodes,
            if nodes > 1 {
                "Each node has buckets of its own; a word can name the node its waiters stand on."
            } else {
                "One node holds all buckets; a word that names node 0, or -1, is accepted."
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
            "Threads that wait on private words sleep on it, up to 32 to a kernel word; shared words of 32, 16 and 8 bits are on it.",
            "Nothing works without it.",
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
            "Waiting on shared 64-bit words (on both halves at once), and on several words some of which are shared.",
            "Waiting on shared 64-bit words, or on many words some of which are shared, fails with ENOSYS.",
        ),
    ));
    for (what, support) in [
        ("futex_wait (futex2)", probe::futex2_wait_call()),
        ("futex_wake (futex2)", probe::futex2_wake_call()),
        ("futex_requeue (futex2)", probe::futex2_requeue_call()),
    ] {
        let so = "Not called: futex(2) does the same for 32-bit words and is there on older kernels. waitword's own calls take the same arguments.";
        findings.push(finding(what, support, so));
    }
    findings.extend(placement());
    findings
}

fn size(bits: u32, what: &'static str) -> Finding {
    let support = probe::futex2_size(bits);
    let so = match bits {
        32 => "Private words stand in waitword's own table; shared ones are the kernel's.",
        64 => "waitword's own at this size, private and shared; a kernel that has it is not asked.",
        _ => "waitword's own at this size: private in its table, shared on the 32 bits around.",
    };
    finding(what, support, so)
}

fn placement() -> Vec<Finding> {
    let numa = "Private words: waitword's own table follows the same contract. Shared words: passed on by the calls with futex2's arguments.";
    // The kernel makes the table when a process starts its first thread.
    let _ = std::thread::spawn(|| ()).join();
    let (hash, so) = match probe::private_hash_slots() {
        Err(error) => (
            Support::No(error).to_string(),
            "Sleepers stand in the kernel's global table.",
        ),
        Ok(0) => (
            "none: this process is on the global table".to_owned(),
            "Left as it is: sleepers stand in the kernel's global table, 32 to a word.",
        ),
        Ok(slots) => (
            slots.to_string(),
            "waitword's sleepers stand there, 32 to a word; it is enlarged where more than 512 wait at once.",
        ),
    };
    let wipe = probe::wipe_on_fork();
    vec![
        finding("FUTEX2_NUMA", probe::futex2_numa(), numa),
        finding(
            "FUTEX2_MPOL",
            probe::futex2_mpol(),
            "Private words: accepted, without effect. Shared words: passed on by the calls with futex2's arguments.",
        ),
        finding("kernel's private hash slots", hash, so),
        finding(
            "MADV_WIPEONFORK",
            wipe,
            either(
                wipe,
                "Table and parkers are wiped by the kernel in every forked child.",
                "A pthread_atfork handler clears the table in the child; a bare clone is not seen.",
            ),
        ),
    ]
}

fn scheduler() -> Vec<Finding> {
    let rseq = probe::rseq();
    let features = if rseq.is_registered() {
        format!(
            "registered; {} ({} bytes)",
            rseq.features().join(", "),
            rseq.feature_size
        )
    } else {
        "not registered by the C library".to_owned()
    };
    let paranoid = probe::perf_event_paranoid()
        .map_or_else(|| "no perf events".to_owned(), |level| level.to_string());
    vec![
        finding(
            "preemption model",
            probe::kernel().preemption,
            "Reported with every measurement; nothing depends on it.",
        ),
        finding(
            "rseq",
            features,
            "Not used by waiting and waking. Tells a lock whether its owner runs, without a system call.",
        ),
        finding(
            "rseq slice extension",
            probe::slice_extension(),
            "Not used yet. Would keep a thread from being preempted inside a bucket's lock.",
        ),
        finding(
            "perf switch ring",
            probe::switch_ring(),
            "Not used by waiting and waking. Tells almost exactly whether a thread runs, at a cost a switch.",
        ),
        finding(
            "perf_event_paranoid",
            paranoid,
            "Above 2, a process without privileges has no switch ring.",
        ),
    ]
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
