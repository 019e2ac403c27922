//! The command as a user runs it: short runs, and errors for bad input.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use waitword_testkit::command::output_within;

/// No call below takes more than a few seconds, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `waitword` with these arguments. If it does not end, kills it and fails.
fn waitword(arguments: &[&str]) -> Output {
    waitword_while(arguments, |_| ())
}

/// The same, and calls `meanwhile` with the process number once the command has started.
fn waitword_while(arguments: &[&str], meanwhile: impl FnOnce(u32)) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    output_within(PATIENCE, command.args(arguments), meanwhile)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json_of(file: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn a_short_run_measures_and_writes_its_report() {
    let place = tempfile::tempdir().unwrap();
    let [file, page, again] =
        ["report.json", "page.html", "again.html"].map(|name| place.path().join(name));
    let path = file.to_str().unwrap();
    let output = waitword(&[
        "bench",
        "memory",
        "wake",
        "requeue",
        "--rounds",
        "1",
        "--keep-disturbed",
        "--threads",
        "2,5",
        "--json",
        path,
        "--html",
        page.to_str().unwrap(),
    ]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("t = 5, all at once"), "{stdout}");
    let output = waitword(&["report", path, "--html", again.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let [page, again] = [page, again].map(|file| std::fs::read_to_string(file).unwrap());
    assert!(page.contains("<h3>t = 5, all at once<") && page.ends_with("</html>"));
    assert!(page == again, "another page from the stored report");
    let report = json_of(&file);
    assert_eq!(report["complete"], true);
    let names: Vec<_> = (0..3).map(|n| &report["workloads"][n]["name"]).collect();
    assert_eq!(names, ["wake", "requeue", "memory"]);
    assert_eq!(report["workloads"][1]["cases"][0]["rounds"], 1);
}

/// A plain `waitword bench` must end with one screen of results: wins and losses alike, and a few
/// random loads.
#[test]
fn a_usual_run_ends_with_a_screen_of_tables() {
    let output = waitword(&[
        "bench",
        "--peers",
        "parking_lot",
        "--rounds",
        "1",
        "--window",
        "2",
        "--keep-disturbed",
    ]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.lines().count() <= 60, "{stdout}");
    for line in stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for patch in ["2003", "2005", "2007", "2008", "2016"] {
        assert!(stdout.contains(patch), "{patch}: {stdout}");
    }
    assert!(stdout.contains("\nmutex, busy-all "), "{stdout}");
    assert!(stdout.contains("Every row: --all"), "{stdout}");
}

/// The published texts come from the stored reports, and from nothing else.
#[test]
fn what_is_published_is_made_of_stored_reports_and_checked() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let (stored, docs) = (place.join("results"), place.join("docs"));
    for directory in [&stored, &docs] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let marked =
        |name: &str| format!("before\n<!-- results: {name} -->\n<!-- results: end -->\nafter\n");
    let [readme, page] = [place.join("README.md"), docs.join("page.md")];
    std::fs::write(&readme, marked("futexes")).unwrap();
    std::fs::write(&page, marked("any")).unwrap();
    let publish = |check: &[&str]| {
        let [from, to] = [&stored, place].map(|path| path.to_str().unwrap());
        waitword(&[&["bench", "publish", "--from", from, "--to", to], check].concat())
    };
    let measure = |file: &str, more: &[&str]| {
        let json = stored.join(file);
        let usual = ["--rounds", "1", "--json", json.to_str().unwrap()];
        let output = waitword(&[&["bench"], more, &usual].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    // A report with rounds under other load is refused. On a loaded machine the run above may have
    // produced only such rounds, so they are marked by hand.
    measure("calls.json", &["calls", "--peers", "none", "--keep-disturbed"]);
    let json = stored.join("calls.json");
    let mut report = json_of(&json);
    let cases = report["workloads"][0]["cases"].as_array_mut().unwrap();
    cases[0]["disturbed"] = 1.into();
    std::fs::write(&json, report.to_string()).unwrap();
    let refused = publish(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("despite other load"));
    let cases = report["workloads"][0]["cases"].as_array_mut().unwrap();
    cases.iter_mut().for_each(|case| case["disturbed"] = 0.into());
    std::fs::write(&json, report.to_string()).unwrap();

    let fails = publish(&["--check"]);
    assert_eq!(fails.status.code(), Some(1), "{}", text(&fails.stdout));
    assert!(text(&fails.stderr).contains("README.md: does not match the reports"));
    assert!(publish(&[]).status.success());
    assert!(publish(&["--check"]).status.success(), "generated again, it is the same");
    let shown = std::fs::read_to_string(&readme).unwrap();
    assert!(shown.starts_with("before\n") && shown.ends_with("\nafter\n"), "{shown}");
    assert!(
        shown.contains("| wait, wrong value |") && shown.contains("A trial of 1 rounds"),
        "{shown}"
    );
    assert!(shown.contains("`waitword bench calls --peers none"), "{shown}");
    let all = std::fs::read_to_string(place.join("RESULTS.md")).unwrap();
    assert!(
        all.contains("- commit: ")
            && all.contains("- peers: ")
            && all.contains("### results/calls.json")
    );
    assert!(std::fs::read_to_string(&page).unwrap().contains("Nothing was measured."));
    // A text that was changed by hand is found.
    std::fs::write(&readme, shown.replace("| wait, wrong value |", "| wait, any value |")).unwrap();
    assert_eq!(publish(&["--check"]).status.code(), Some(1));
}

/// A contender (a futex of any width, the drop-in) that fails to prove that it does its work ends
/// the run with an error.
#[test]
fn every_contender_is_shown_to_do_its_work() {
    let workloads = ["calls", "hash", "shared", "semaphore", "barrier", "event"];
    let arguments =
        [&["bench"], &workloads[..], &["--rounds", "1", "--keep-disturbed", "--threads", "2,5"]]
            .concat();
    let output = waitword(&arguments);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    for contender in ["waitword 8 ", "waitword, latch", "drop-in "] {
        assert!(stdout.contains(contender), "no {contender}: {stdout}");
    }
}

/// Waits until the process handles Ctrl-C, and sends it one.
fn interrupt(process: u32) {
    let started = Instant::now();
    let has_handler = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        caught & (1 << (libc::SIGINT - 1)) != 0
    };
    while !has_handler() {
        assert!(started.elapsed() < PATIENCE, "it never handles Ctrl-C");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Time for some rounds.
    std::thread::sleep(Duration::from_secs(2));
    // SAFETY: the signal goes to our own child, which is not reaped before this returns.
    let sent = unsafe { libc::kill(process as libc::pid_t, libc::SIGINT) };
    assert_eq!(sent, 0);
}

#[test]
fn ctrl_c_ends_the_run_with_what_there_is() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // So many cases that the run does not end by itself, and so few rounds that some cases are
    // complete, however loaded the machine is.
    let arguments =
        ["bench", "--full", "--peers", "none", "--rounds", "1", "--keep-disturbed", "--json"];
    let output =
        waitword_while(&[&arguments[..], &[file.path().to_str().unwrap()]].concat(), interrupt);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{stdout}{}", text(&output.stderr));
    assert!(stdout.contains("Stopped before the end"), "{stdout}");
    assert!(stdout.contains("wait, wrong value, ns"), "{stdout}");
    let report = json_of(file.path());
    assert_eq!(report["complete"], false);
    assert_eq!(report["workloads"][0]["cases"][0]["rounds"], 1);
}

#[test]
fn a_run_is_compared_with_an_older_one_and_a_variant_with_its_twin() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let run = |more: &[&str]| {
        let usual = ["bench", "requeue", "--threads", "3", "--rounds", "6", "--keep-disturbed"];
        let output = waitword(&[&usual[..], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    run(&["--json", path]);
    let compared = run(&["--compare", path]);
    assert!(compared.contains("10 figures compared: "), "{compared}");
    let twins = run(&["--twice"]);
    assert!(twins.contains("| waitword 32, again"), "{twins}");
    assert!(twins.contains("of 16 ratios of a variant to itself"), "{twins}");
}

/// Measures each family with every contender that has a lock for it, in the surroundings that need
/// no privileges.
#[test]
fn random_loads_are_measured_and_replayed() {
    let drawn = [
        "bench",
        "any",
        "--seed",
        "3",
        "--cells",
        "1",
        "--rounds",
        "1",
        "--keep-disturbed",
        "--milliseconds",
        "60",
        "--beside",
        "quiet,one-cpu,half-quota",
        "--flavours",
    ];
    let output = waitword(&drawn);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    for family in ["mutex", "many-mutexes", "rwlock", "queue", "pool", "fork-join", "burst"] {
        for beside in ["quiet", "one-cpu", "half-quota"] {
            assert!(stdout.contains(&format!("{family}, {beside} ")), "{stdout}");
        }
    }
    let replay = [
        "bench",
        "any",
        "--replay",
        "mutex/quiet/3/0",
        "--milliseconds",
        "20",
        "--contenders",
        "waitword,std",
    ];
    let output = waitword(&replay);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    assert!(stdout.contains("\nwaitword: ") && stdout.contains("\nstd: "), "{stdout}");
    assert!(stdout.contains('#') && stdout.contains('.'), "{stdout}");
}

#[test]
fn bad_input_is_answered_before_anything_is_measured() {
    for (arguments, answer) in [
        (&["bench", "wakes"][..], "no workload is called 'wakes'"),
        (&["bench", "--rounds", "0"], "at least 1"),
        (&["bench", "--threads", "2,x"], "numbers from 1"),
        (&["bench", "--json", "/no/such/folder/x"], "cannot write"),
        (&["bench", "--compare", "/no/such/x"], "cannot read"),
        (&["bench", "--compare", "/dev/null"], "no report in"),
        (&["bench", "any", "--family", "lock"], "known: mutex, "),
        (&["bench", "any", "--beside", "noise"], "known: quiet, "),
        (&["bench", "any", "--replay", "mutex/7"], "mutex/quiet/7/12"),
        (&["bench", "any", "--chart", "wide", "--replay", "mutex/quiet/1/1"], "such as 120,5"),
        (&["bench", "--peers", "std,nobody"], "no peer is called 'nobody'"),
        (&["bench", "--html", "/no/such/folder/x"], "cannot write"),
        (&["report", "/no/such/x", "--html", "/dev/null"], "cannot read"),
        (&["report", "/dev/null", "--html", "/dev/null"], "no report in"),
        (&["costs", "--check", "/no/such/file"], "cannot read"),
        (&["costs", "--check", "/dev/null"], "not a table of costs"),
    ] {
        let output = waitword(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(answer), "{stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_cost_that_differs_from_the_table_is_named() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/costs.md");
    let output = waitword(&["costs", "--only", "fetch_add", "--check", table]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}");
    if stdout.contains("not counted") {
        return;
    }
    assert!(stdout.contains("1 rows, all as in"), "{stdout}");

    // The columns: name, instructions, atomic operations.
    let planted = |line: &str| {
        let mut cells: Vec<&str> = line.split('|').collect();
        cells[3] = " 1 ";
        cells.join("|")
    };
    let changed: String = std::fs::read_to_string(table)
        .unwrap()
        .lines()
        .map(|line| match line.contains("fetch_add") {
            true => planted(line) + "\n",
            false => format!("{line}\n"),
        })
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, changed).unwrap();
    let path = file.path().to_str().unwrap();
    let output = waitword(&["costs", "--only", "fetch_add", "--check", path]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("fetch_add on two words\": atomic: was 1, is 2"), "{stdout}");
}

#[test]
fn the_doctor_speaks_both_languages() {
    let output = waitword(&["doctor"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("futex_waitv"));
    let output = waitword(&["doctor", "--json"]);
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(findings.as_array().unwrap().len() > 10);
}
