//! The command as a user calls it: short runs, and answers to bad input.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No call below takes more than a few seconds, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `waitword` with these arguments; kills it, and fails, if it does not end.
fn waitword(arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_waitword"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut streams = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut texts = (Vec::new(), Vec::new());
        streams.0.read_to_end(&mut texts.0).unwrap();
        streams.1.read_to_end(&mut texts.1).unwrap();
        texts
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("`waitword {}` hangs", arguments.join(" "));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let (stdout, stderr) = reader.join().unwrap();
    Output {
        status,
        stdout,
        stderr,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_short_run_measures_and_writes_its_report() {
    let in_temp = |ending: &str| {
        let name = format!("waitword-report-{}.{ending}", std::process::id());
        std::env::temp_dir().join(name)
    };
    let (file, page, again) = (in_temp("json"), in_temp("html"), in_temp("again.html"));
    let path = file.to_str().unwrap();
    let output = waitword(&[
        "bench",
        "memory",
        "wake",
        "requeue",
        "--rounds",
        "1",
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
    let [page, again] = [page, again].map(|file| {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        text
    });
    assert!(page.contains("<h3>t = 5, all at once<") && page.ends_with("</html>"));
    assert!(page == again, "another page from the stored report");
    let report = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["complete"], true);
    let names: Vec<_> = (0..3).map(|n| &report["workloads"][n]["name"]).collect();
    assert_eq!(names, ["wake", "requeue", "memory"]);
    assert_eq!(report["workloads"][1]["cases"][0]["rounds"], 1);
}

#[test]
fn bad_input_is_answered_before_anything_is_measured() {
    for (arguments, answer) in [
        (&["bench", "wakes"][..], "no workload is called 'wakes'"),
        (&["bench", "--rounds", "0"], "at least 1"),
        (&["bench", "--threads", "2,x"], "numbers from 1"),
        (&["bench", "--json", "/no/such/folder/x"], "cannot write"),
        (&["bench", "--html", "/no/such/folder/x"], "cannot write"),
        (
            &["report", "/no/such/x", "--html", "/dev/null"],
            "cannot read",
        ),
        (&["report", "/dev/null", "--html", "/dev/null"], "not JSON"),
    ] {
        let output = waitword(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(answer), "{stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
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
