//! `waitword profile` and `waitword explain` on programs whose answer is known (`tools/truth`):
//! what is recorded is what each program has measured by its own clocks, at the function where it
//! waited; the lock was released by the function that the program says; and the findings are those
//! that it has and no others.

#[path = "truth/compare.rs"]
mod compare;
#[path = "truth/hanging.rs"]
mod hanging;
#[path = "truth/programs.rs"]
mod programs;
#[path = "truth/run.rs"]
mod run;

use programs::{HANGING, TRUTHS, Truth};
use run::{Way, explained, recorded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use waitword_testkit::Watchdog;

const USUAL: Way = Way { has_frame_pointers: true, has_switches: true, as_nobody: false };
/// The other ways, each with some of the programs.
const WAYS: [(Way, &[&str]); 3] = [
    (Way { has_frame_pointers: false, ..USUAL }, &["chain.c", "convoy.c", "inlined.cpp", "herd.c"]),
    (Way { has_switches: false, ..USUAL }, &["holder-sleeps.c", "holder-computes.c", "chain.c"]),
    (
        Way { has_frame_pointers: false, has_switches: false, as_nobody: true },
        &["holder-sleeps.c", "idle-workers.c", "std_locks.rs"],
    ),
];

fn check(truth: &Truth, way: Way) {
    let run = recorded(truth.source, way);
    let processes = waitword_profile::read::read(&run.recording()).unwrap();
    // Others are forked to be busy, or to feed a pipe.
    let process = processes.iter().max_by_key(|process| process.waits.len()).unwrap();
    compare::check_totals(&run, process, truth.may_be_fewer);
    compare::check_holders(truth, &run, process);
    compare::check_findings(truth, &run, process, &explained(&run, way));
}

/// On a busy machine a holder may lose its CPU for long, and other threads then keep the lock. The
/// last try counts.
fn one_try_of_three(check: impl Fn() + std::panic::RefUnwindSafe) {
    if !(0..2).any(|_| std::panic::catch_unwind(&check).is_ok()) {
        check();
    }
}

/// The programs are measured one at a time, all of them within so many seconds.
fn alone(seconds: u64) -> (MutexGuard<'static, ()>, Watchdog) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (alone, waitword_testkit::watch_for(waitword_testkit::limit(seconds)))
}

#[test]
fn what_is_recorded_is_what_the_programs_measure() {
    let _alone = alone(300);
    for truth in &TRUTHS {
        one_try_of_three(|| check(truth, USUAL));
    }
}

/// Without frame pointers; where the kernel does not show context switches; as an ordinary user.
#[test]
fn it_is_so_in_other_ways() {
    let _alone = alone(300);
    for (way, sources) in WAYS {
        for source in sources {
            let truth = TRUTHS.iter().find(|truth| truth.source == *source).expect(source);
            one_try_of_three(|| check(truth, way));
        }
    }
}

/// Every program in every way: ten minutes.
#[test]
#[ignore = "takes ten minutes: cargo test -p waitword-cli --test truth -- --ignored"]
fn every_program_in_every_way() {
    let _alone = alone(1800);
    let mut failed = Vec::new();
    for number in 0..8 {
        let [has_frame_pointers, has_switches, as_nobody] = [1, 2, 4].map(|bit| number & bit != 0);
        let way = Way { has_frame_pointers, has_switches, as_nobody };
        let is_so = |check: &(dyn Fn() + std::panic::RefUnwindSafe)| {
            std::panic::catch_unwind(|| one_try_of_three(check)).is_ok()
        };
        for truth in &TRUTHS {
            if !is_so(&|| check(truth, way)) {
                failed.push(format!("{}: {way:?}", truth.source));
            }
        }
        for hanging in &HANGING {
            if !is_so(&|| hanging::check(hanging, way)) {
                failed.push(format!("{}: {way:?}", hanging.source));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn what_hangs_is_recorded_up_to_its_end() {
    let _alone = alone(300);
    for hanging in &HANGING {
        one_try_of_three(|| hanging::check(hanging, USUAL));
    }
}
