//! Compares a recording with what the program has measured by its own clocks.

use crate::programs::Truth;
use crate::run::Run;
use std::collections::BTreeMap;
use waitword_profile::explain::{Kind, explain_process};
use waitword_profile::read::Process;
use waitword_profile::symbols::Symbols;
use waitword_record::format::{Causes, Wait};

/// Totals agree with the program's own within this.
const TOLERANCE: f64 = 0.05;
/// A thread's first record makes its ring, which the program's clock may see, in nanoseconds.
const FIRST: f64 = 3e5;

/// Waits at one function: their number and nanoseconds.
type Sum = (u64, u64);

/// How many of the waits at a site, and how much of their time, the thread had no CPU. The
/// recorder's clock begins later and ends sooner than the program's: it may not have counted that.
fn delay_at(run: &Run, site: &str) -> Sum {
    let found = run.stdout.lines().filter_map(|line| {
        let mut words = line.strip_prefix("delay ")?.rsplitn(3, ' ');
        let (nanoseconds, count) = (words.next()?, words.next()?);
        (words.next()? == site).then_some((count.parse().ok()?, nanoseconds.parse().ok()?))
    });
    // A function may wait for a lock and at a condition variable.
    let all: Vec<Sum> = found.collect();
    assert!(!all.is_empty(), "no delay at {site}\n{}", run.shown);
    all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// What the program says of its waits: at each site for locks, and at the one of each other kind.
fn own_waits(run: &Run) -> BTreeMap<(bool, String), Sum> {
    let locks = run.stdout.lines().filter_map(|line| {
        let mut words = line.strip_prefix("wait ")?.rsplitn(3, ' ');
        let (nanoseconds, count) = (words.next()?, words.next()?);
        // std's mutex is a futex, which may be anything.
        let site = words.next()?.to_owned();
        let is_lock = !site.ends_with("_std_mutex");
        Some(((is_lock, site), (count.parse().ok()?, nanoseconds.parse().ok()?)))
    });
    let others = ["condvar", "semaphore", "join"].into_iter().filter_map(|kind| {
        let before = format!("answer {kind}_site ");
        let site = run.stdout.lines().find_map(|line| line.strip_prefix(&before))?.to_owned();
        let number = |what| run.answer(&format!("{kind}_{what}")).map(|number| number as u64);
        Some(((false, site), (number("waits")?, number("wait_ns")?)))
    });
    locks.chain(others).collect()
}

/// The recorded waits, with whether each is for a lock: the wait for the mutex after a signal is
/// the condition variable's, as for the program.
fn waits<'a>(process: &'a Process, symbols: &mut Symbols<'_>) -> Vec<(bool, &'a Wait)> {
    let all = process.waits.iter().map(|(_, wait)| {
        let is_lock = wait.object().is_some_and(|object| object.is_lock());
        (is_lock && !has(process, symbols, wait.stack, "pthread_cond_"), wait)
    });
    all.collect()
}

/// Whether the function is on this stack.
fn has(process: &Process, symbols: &mut Symbols<'_>, stack: u32, function: &str) -> bool {
    let frames = process.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
    frames.iter().any(|&address| {
        symbols.frames(address).iter().any(|frame| frame.function.contains(function))
    })
}

/// The waits at each function are those that the program has measured.
pub(crate) fn check_totals(run: &Run, process: &Process, may_be_fewer: bool) {
    let shown = &run.shown;
    assert_eq!(process.lost, 0, "{shown}");
    let own = own_waits(run);
    assert!(!own.is_empty(), "{shown}");
    let mut symbols = Symbols::of(process);
    let mut found: BTreeMap<&(bool, String), Sum> = BTreeMap::new();
    for (is_lock, wait) in waits(process, &mut symbols) {
        // At the innermost of the functions that the program has measured.
        let frames = process.stacks.get(&wait.stack).map_or(&[][..], Vec::as_slice);
        let site = frames.iter().find_map(|&address| {
            symbols.frames(address).iter().find_map(|frame| {
                own.keys().find(|(lock, site)| *lock == is_lock && frame.function.contains(site))
            })
        });
        if let Some(site) = site {
            let weight = 1_u64 << wait.weight_shift;
            let sum = found.entry(site).or_default();
            // The mutex's after a signal is a part of one wait.
            let is_part = !is_lock && wait.object().is_some_and(|object| object.is_lock());
            *sum = (sum.0 + if is_part { 0 } else { weight }, sum.1 + wait.took * weight);
        }
    }
    for (key, (count, nanoseconds)) in &own {
        let (counted, took) = found.get(key).copied().unwrap_or_default();
        let (delayed, delay) = delay_at(run, &key.1);
        // A wait just above the threshold by one clock may be just below it by the other.
        let few = 5 + count / 20;
        let allowed =
            (*nanoseconds as f64 * TOLERANCE).max(3e6) + FIRST * process.threads.len() as f64;
        let off = took as f64 - *nanoseconds as f64;
        let is_right = match may_be_fewer {
            true => counted <= count + few && off <= allowed,
            false => {
                let is_more = counted <= count + few && off <= allowed;
                let is_less = counted + few + delayed >= *count && -off <= allowed + delay as f64;
                is_more && is_less
            }
        };
        assert!(is_right, "{}: {counted} waits, {took} ns\n{shown}", key.1);
    }
}

/// Each lock was released by the function that the program says, which did meanwhile what the
/// program says.
pub(crate) fn check_holders(truth: &Truth, run: &Run, process: &Process) {
    let mut symbols = Symbols::of(process);
    for (waiter, holder) in truth.released_by {
        let waits: Vec<&Wait> = waits(process, &mut symbols)
            .into_iter()
            .filter(|(is_lock, _)| *is_lock)
            .map(|(_, wait)| wait)
            .filter(|wait| has(process, &mut symbols, wait.stack, waiter))
            .collect();
        let total: u64 = waits.iter().map(|wait| wait.took).sum();
        let by_holder: u64 = waits
            .iter()
            .filter(|wait| has(process, &mut symbols, wait.holder_stack, holder))
            .map(|wait| wait.took)
            .sum();
        assert!(
            total > 0 && by_holder as f64 >= 0.7 * total as f64,
            "{waiter}: {by_holder} of {total} ns by {holder}\n{}",
            run.shown,
        );
        check_causes(&waits, run, process);
    }
}

/// The holder slept, ran, or had no CPU for as much of its time as the program says.
fn check_causes(waits: &[&Wait], run: &Run, process: &Process) {
    let allowed = match (process.causes, run.answer("holder_asleep_percent")) {
        (Some(Causes::Switches), _) => 15.0,
        // Sums are of a longer time; this holder sleeps outside its section too.
        (Some(Causes::Sums), Some(90.0..)) => 15.0,
        _ => return,
    };
    let took = |wait: &&&Wait| u64::from(wait.running + wait.preempted + wait.asleep) * wait.took;
    let known: u64 = waits.iter().map(|wait| took(&wait)).sum();
    type Part = fn(&Wait) -> u16;
    let parts: [(&str, Part); 3] = [
        ("running", |wait| wait.running),
        ("preempted", |wait| wait.preempted),
        ("asleep", |wait| wait.asleep),
    ];
    for (name, part) in parts {
        if let Some(own) = run.answer(&format!("holder_{name}_percent")) {
            let sum: u64 = waits.iter().map(|wait| u64::from(part(wait)) * wait.took).sum();
            let found = 100.0 * sum as f64 / known.max(1) as f64;
            let shown = &run.shown;
            assert!((found - own).abs() < allowed, "{name}: {found} %, and not {own} %\n{shown}");
        }
    }
}

/// The percentage of its holders' time, by the program's own clocks, that this kind of finding is
/// about. On a busy machine, a holder that computes may have no CPU for most of the time.
fn own_percentage(kind: Kind, run: &Run) -> Option<f64> {
    let what = match kind {
        Kind::Computes => "running",
        Kind::Asleep => "asleep",
        Kind::Preempted | Kind::Inversion => "preempted",
        _ => return None,
    };
    run.answer(&format!("holder_{what}_percent"))
}

/// `explain` finds what it must find, nothing else, and says it.
pub(crate) fn check_findings(truth: &Truth, run: &Run, process: &Process, said: &str) {
    /// Above this percentage it must be found; above the other one it may be.
    const MUST: f64 = 65.0;
    const MAY: f64 = 20.0;
    let shown = &run.shown;
    // On a busy machine the less urgent thread hardly runs, so others wait for it seldom.
    let waited: u64 = own_waits(run).values().map(|(_, nanoseconds)| nanoseconds).sum();
    let is_so = |kind: Kind| {
        let is_rare = kind == Kind::Inversion && waited < 150_000_000;
        !is_rare && own_percentage(kind, run).is_none_or(|own| own >= MUST)
    };
    // Priorities do not come by accident.
    let may_be_so = |kind: Kind| {
        kind != Kind::Inversion && own_percentage(kind, run).is_some_and(|own| own >= MAY)
    };
    let found: Vec<Kind> =
        explain_process(process).findings.iter().map(|finding| finding.kind).collect();
    // Sums are of a longer time than a section: they prove only what is so all the time.
    let can_be_seen = |kind: Kind| match process.causes {
        Some(Causes::Switches) => true,
        Some(_) => !matches!(kind, Kind::Computes | Kind::Preempted | Kind::Inversion),
        None => !kind.needs_causes(),
    };
    let must: Vec<Kind> =
        truth.must.iter().copied().filter(|kind| can_be_seen(*kind) && is_so(*kind)).collect();
    for kind in &must {
        let is_said = found.contains(kind) && said.contains(&format!(" {kind}: "));
        assert!(is_said, "not found: {kind}\n{said}\n{shown}");
    }
    for kind in &found {
        let is_wanted = [truth.may, truth.must].concat().contains(kind) || may_be_so(*kind);
        assert!(is_wanted, "found: {kind}\n{said}\n{shown}");
    }
    if truth.must.is_empty() && found.is_empty() {
        assert!(said.starts_with("Nothing was found. Looked for: "), "{said}\n{shown}");
    }
    let all_seen = truth.must.iter().all(|kind| can_be_seen(*kind) && is_so(*kind));
    for text in truth.says.iter().filter(|_| all_seen) {
        assert!(said.contains(text), "not said: {text}\n{said}\n{shown}");
    }
    if process.causes == Some(Causes::Sums) {
        assert!(said.contains("sums in /proc"), "{said}\n{shown}");
    }
}
