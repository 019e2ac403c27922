//! Runs that are broken on purpose, and that the torture must notice.

use crate::command::{text, torture};
use libtest_mimic::Failed;

/// A run broken on purpose fails, says why, and reports who waits for what.
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
        says_who_waits(scenario, &stderr)?;
    }
    Ok(())
}

/// That a report says of each waiter for what it waits, what that holds, and who has it.
fn says_who_waits(scenario: &str, report: &str) -> Result<(), Failed> {
    let mut waiters = report.lines().filter(|line| line.contains(" waits "));
    let is_lock = ["mutex", "rwlock", "robust", "once", "across"].contains(&scenario);
    let says = |line: &str| {
        let seen = line.contains(", expecting 0x") || line.contains(" when it came)");
        line.contains(", at 0x") && line.contains(", which holds 0x") && seen
    };
    let holder = |line: &str| line.contains("; held by ");
    let whole = waiters.clone().count() > 0 && waiters.clone().all(says);
    // At least those who wait for the one that is never given back.
    if !whole || is_lock && !(waiters.any(holder) && report.contains(", for ever (sabotage)")) {
        return Err(format!("who waits for what is missing:\n{report}").into());
    }
    Ok(())
}
