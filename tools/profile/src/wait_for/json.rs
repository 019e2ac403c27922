//! The answer as JSON, for scripts.
//!
//! ```json
//! { "format": 1, "pid": 4711, "threads": 104, "without_known_holder": 0,
//!   "findings": [ { "kind": "cycle", "holder": null, "threads": [ 4712, 4713 ] } ],
//!   "waits": [ {
//!     "thread": 4712, "name": "worker", "object": "Mutex", "kind": "normal",
//!     "address": 140001, "since_ns": null, "source": "Glibc",
//!     "holders": [ 4713 ], "readers": null, "unknown": null,
//!     "stack": [ { "function": "f", "file": "a.c", "line": 7, "module": "a" } ],
//!     "stack_is_complete": true } ] }
//! ```
//!
//! The kind of a finding is `cycle`, `ended` (of which `holder` is the thread that has ended) or
//! `starved`. `since_ns` is the time that the thread has waited. `unknown` says why the holders are
//! not known. `without_known_holder` is the number of threads that wait for a lock of which that is
//! so.

use super::cycles::Finding;
use super::examine::Report;
use super::graph::{Holders, Wait};
use crate::export::json::frame;
use crate::symbols::Symbols;
use serde_json::{Value, json};

/// The report on this process.
pub fn json(pid: u32, report: &Report, symbols: &mut Symbols<'_>) -> Value {
    let waits: Vec<Value> =
        report.waits().map(|(thread, it)| wait(report, symbols, thread, it)).collect();
    json!({
        "format": 1,
        "pid": pid,
        "threads": report.graph.threads.len(),
        "without_known_holder": report.without_holder().len(),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "waits": waits,
    })
}

fn finding(finding: &Finding) -> Value {
    let (kind, holder) = match finding {
        Finding::Cycle(_) => ("cycle", None),
        Finding::Ended { holder, .. } => ("ended", Some(*holder)),
        Finding::Starved { .. } => ("starved", None),
    };
    json!({ "kind": kind, "holder": holder, "threads": finding.waiters() })
}

fn wait(report: &Report, symbols: &mut Symbols<'_>, thread: u32, wait: &Wait) -> Value {
    let node = &report.graph.threads[&thread];
    let (mut holders, mut readers, mut unknown) = (Vec::new(), None, None);
    match &wait.holders {
        Holders::Threads(threads) => holders = threads.clone(),
        Holders::Readers(count) => readers = Some(*count),
        Holders::Elsewhere(holder) => holders = vec![*holder],
        Holders::Unknown(why) => unknown = Some(*why),
        Holders::None => {}
    }
    let mut stack: Vec<Value> = Vec::new();
    for &address in &node.stack.frames {
        stack.extend(symbols.frames(address).iter().map(frame));
    }
    json!({
        "thread": thread,
        "name": node.thread.name,
        "object": format!("{:?}", wait.object),
        "kind": wait.kind,
        "address": wait.address,
        "since_ns": wait.since.map(|since| report.graph.at.saturating_sub(since)),
        "source": format!("{:?}", wait.source),
        "holders": holders,
        "readers": readers,
        "unknown": unknown,
        "stack": stack,
        "stack_is_complete": node.stack.is_complete,
    })
}
