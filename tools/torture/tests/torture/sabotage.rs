//! Runs that are broken on purpose. The torture must notice each.

use crate::command::{text, torture};
use libtest_mimic::Failed;

/// A run broken on purpose fails, says why, and reports which thread waits for what.
pub(crate) fn is_caught(
    scenario: &str,
    sabotage: &str,
    why: &str,
    report: &str,
) -> Result<(), Failed> {
    let output = torture(&format!(
        "--only {scenario} --seconds 20 --patience 2 --faults none --sabotage {sabotage}"
    ))?;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let complaint = format!("FAILED: {scenario}: {why}");
    let is_whole = stderr.contains(report) && stderr.contains("words and objects:");
    let is_whole = is_whole && stdout.contains("again, with the same choices: ");
    if output.status.success() || !stdout.contains(&complaint) || !is_whole {
        return Err(format!("not caught as it should be:\n{stdout}\n{stderr}").into());
    }
    if sabotage == "skip-wake" {
        names_each_waiter(scenario, &stderr)?;
    }
    Ok(())
}

/// Checks that a report names, for each waiter, what it waits for, what that holds, and which
/// thread holds it.
fn names_each_waiter(scenario: &str, report: &str) -> Result<(), Failed> {
    let mut waiters = report.lines().filter(|line| line.contains(" waits "));
    let is_lock = ["mutex", "rwlock", "robust", "once", "across"].contains(&scenario);
    let says = |line: &str| {
        let seen = line.contains(", expecting 0x") || line.contains(" when called)");
        line.contains(", at 0x") && line.contains(", which holds 0x") && seen
    };
    let holder = |line: &str| line.contains("; held by ");
    let whole = waiters.clone().count() > 0 && waiters.clone().all(says);
    // At least the threads that wait for the lock that is never released.
    if !whole || is_lock && !(waiters.any(holder) && report.contains(", forever (sabotage)")) {
        return Err(format!("no report of which thread waits for what:\n{report}").into());
    }
    Ok(())
}
