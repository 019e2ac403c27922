//! A recording as JSON, for scripts.
//!
//! ```json
//! { "format": 1,
//!   "processes": [ {
//!     "pid": 4711, "threshold_ns": 10000, "lost": 0,
//!     "sites": [ {
//!       "object": "Mutex", "is_lock": true,
//!       "count": 45, "ns": 903, "longest_ns": 20, "timed_out": 0,
//!       "holder_running_ns": 3, "holder_preempted_ns": 0, "holder_asleep_ns": 900,
//!       "objects": 1, "threads": 2,
//!       "waiter": [ { "function": "f", "file": "a.c", "line": 7, "module": "a" } ],
//!       "releaser": [ ] } ] } ] }
//! ```
//!
//! Sites are in order of `ns`. Stacks begin with the innermost function. What the holder did is
//! known as far as the three numbers add up to `ns`. `file` and `line` are null if they are
//! unknown, and `releaser` is empty if the thread that released the lock is.

use super::frames;
use crate::read::Process;
use crate::sites::sites;
use crate::symbols::{Frame, Symbols};
use serde_json::{Value, json};

/// All processes of a recording.
pub fn json(processes: &[Process]) -> Value {
    json!({
        "format": 1,
        "processes": processes.iter().map(process).collect::<Vec<_>>(),
    })
}

fn process(process: &Process) -> Value {
    let mut symbols = Symbols::of(process);
    let mut stack = |number| -> Vec<Value> {
        frames(process, &mut symbols, number).iter().map(frame).collect()
    };
    let sites: Vec<Value> = sites(process)
        .iter()
        .map(|(key, site)| {
            json!({
                "object": format!("{:?}", key.object),
                "is_lock": key.object.is_lock(),
                "count": site.count,
                "ns": site.nanoseconds,
                "longest_ns": site.longest,
                "timed_out": site.timed_out,
                "holder_running_ns": site.running,
                "holder_preempted_ns": site.preempted,
                "holder_asleep_ns": site.asleep,
                "objects": site.objects,
                "threads": site.threads,
                "waiter": stack(key.stack),
                "releaser": stack(key.holder_stack),
            })
        })
        .collect();
    json!({
        "pid": process.pid,
        "threshold_ns": process.threshold,
        "lost": process.lost,
        "sites": sites,
    })
}

/// A function of a stack.
pub(crate) fn frame(frame: &Frame) -> Value {
    let (file, line) = frame.line.clone().unzip();
    json!({
        "function": frame.function,
        "file": file,
        "line": line,
        "module": frame.module,
    })
}
