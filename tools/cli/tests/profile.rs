//! `waitword profile` on programs whose waits are known.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use waitword_testkit::command::output;

/// Two threads share a mutex. One sleeps with it held, 20 times 5 ms; the other waits meanwhile and
/// prints how long, by its own clock. A child does the same with twice as many turns.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t turn;
static int turns;
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
__attribute__((noinline)) void sleeps_with_the_mutex(void) {
    pthread_mutex_lock(&mutex);
    pthread_barrier_wait(&turn);
    usleep(5000);
    pthread_mutex_unlock(&mutex);
    /* It would lock again before the other thread has the mutex. */
    pthread_barrier_wait(&turn);
}
__attribute__((noinline)) long wants_the_mutex(void) {
    pthread_barrier_wait(&turn);
    long began = now();
    pthread_mutex_lock(&mutex);
    long took = now() - began;
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&turn);
    return took;
}
static void *holder(void *unused) {
    for (int i = 0; i < turns; i++)
        sleeps_with_the_mutex();
    return unused;
}
static void work(void) {
    pthread_t thread;
    long took = 0;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, holder, NULL);
    for (int i = 0; i < turns; i++)
        took += wants_the_mutex();
    pthread_join(thread, NULL);
    printf("%d %ld\n", getpid(), took);
    fflush(stdout);
}
int main(int argc, char **argv) {
    turns = 20;
    work();
    if (argc > 1) {
        if (fork() == 0) {
            turns = 40;
            work();
            exit(0);
        }
        wait(NULL);
    }
    return 7;
}
"#;

fn build(place: &Path, options: &[&str]) -> PathBuf {
    let (source, program) = (place.join("program.c"), place.join("program"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut command = Command::new("cc");
    command.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).args(options).arg(&source);
    assert!(output(&mut command).status.success());
    program
}

fn profile(arguments: &[&str], program: &Path, its: &[&str]) -> (Output, String, String) {
    let _watchdog = waitword_testkit::watch();
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    command.arg("profile").args(arguments).arg("--").arg(program).args(its);
    let output = output(&mut command);
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    (output, stdout, stderr)
}

/// The milliseconds in a text such as `98.7 ms` or `1.20 s`.
fn milliseconds(text: &str) -> f64 {
    let (number, unit) = text.trim().split_once(' ').unwrap();
    let number: f64 = number.parse().unwrap();
    match unit {
        "s" => number * 1e3,
        "ms" => number,
        _ => panic!("{text}"),
    }
}

/// The count in a line such as `100.0 %  98.4 ms  19 waits for Mutex, ...`.
fn waits(line: &str) -> u64 {
    let count = line.split(" wait").next().unwrap();
    count.rsplit(' ').next().unwrap().parse().unwrap()
}

/// On a busy machine a thread may come so late that it need not wait.
fn are_nearly(waits: u64, turns: u64) -> bool {
    (turns * 3 / 4..=turns).contains(&waits)
}

#[test]
fn the_waits_are_those_of_the_program_s_own_clock() {
    for options in [&["-fno-omit-frame-pointer"][..], &["-fomit-frame-pointer"]] {
        let place = tempfile::tempdir().unwrap();
        let program = build(place.path(), options);
        let (output, stdout, stderr) = profile(&[], &program, &[]);
        assert_eq!(output.status.code(), Some(7), "the program's status: {stderr}");
        let own: f64 = stdout.split_whitespace().nth(1).unwrap().parse().unwrap();
        let head = stderr.lines().next().unwrap();
        let lost = head.split(": ").nth(1).unwrap().split(" lost").next().unwrap();
        let off = (milliseconds(lost) * 1e6 - own).abs();
        assert!(off <= (own * 0.05).max(3e6), "{stdout}{stderr}");
        let site = stderr.lines().nth(1).unwrap();
        assert!(site.contains("100.0 %") && site.contains(" waits for Mutex"), "{stderr}");
        assert!(are_nearly(waits(site), 20), "{stderr}");
        assert!(site.contains("wants_the_mutex") && site.contains("program.c:27"), "{stderr}");
        let holder = stderr.lines().nth(2).unwrap();
        assert!(holder.contains("kept by sleeps_with_the_mutex"), "{stderr}");
    }
}

#[test]
fn a_child_is_recorded_too_and_the_recording_is_kept_where_it_is_wanted() {
    let place = tempfile::tempdir().unwrap();
    let program = build(place.path(), &[]);
    let directory = place.path().join("recording");
    let (_, stdout, stderr) =
        profile(&["-o", directory.to_str().unwrap()], &program, &["and a child"]);
    let processes: Vec<&str> =
        stdout.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(processes.len(), 2, "{stdout}{stderr}");
    for (process, turns) in processes.iter().zip([20, 40]) {
        let from = stderr.find(&format!("process {process}: ")).expect(&stderr);
        assert!(are_nearly(waits(stderr[from..].lines().nth(1).unwrap()), turns), "{stderr}");
    }
    use std::os::unix::fs::PermissionsExt as _;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // It is not overwritten.
    let (output, _, stderr) = profile(&["-o", directory.to_str().unwrap()], &program, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("File exists"), "{stderr}");
}

#[test]
fn a_recording_that_cannot_begin_is_reported_and_the_program_runs() {
    let place = tempfile::tempdir().unwrap();
    let program = build(place.path(), &[]);
    for (directory, why) in [("relative", "not an absolute name"), ("/no/such", "no files")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
        command.args(["run", "--"]).arg(&program).env("WAITWORD_RECORD", directory);
        let output = output(&mut command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
}

#[test]
fn a_recording_is_exported_with_the_same_numbers() {
    let place = tempfile::tempdir().unwrap();
    let program = build(place.path(), &["-Wl,--build-id=0x0123456789abcdef"]);
    let names = ["recording", "pb.gz", "folded", "json", "html", "svg", "work.svg", "pftrace"];
    let [directory, pprof, folded, json, html, svg, work, trace] = names.map(|name| {
        let path = place.path().join(name);
        path.to_str().unwrap().to_owned()
    });
    profile(&["-o", &directory], &program, &[]);
    let report = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
        output(command.arg("report").arg(&directory).args(arguments))
    };
    let shown = report(
        &[
            &["--text", "--pprof", &pprof, "--folded", &folded, "--json", &json][..],
            &["--html", &html, "--flamegraph", &svg, "--trace", &trace],
        ]
        .concat(),
    );
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && text.contains("wants_the_mutex"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let sites = json["processes"][0]["sites"].as_array().unwrap();
    let mutex = sites.iter().find(|site| site["object"] == "Mutex").unwrap();
    assert!(are_nearly(mutex["count"].as_u64().unwrap(), 20), "{mutex}");
    assert_eq!(mutex["is_lock"], true);
    assert_eq!(mutex["waiter"][0]["function"], "wants_the_mutex");
    assert_eq!(mutex["waiter"][0]["line"], 27);
    assert_eq!(mutex["releaser"][0]["function"], "sleeps_with_the_mutex");
    // The barrier is a wait for other threads, and no contention.
    let barrier = sites.iter().find(|site| site["object"] == "Barrier").unwrap();
    assert_eq!(barrier["is_lock"], false);
    let folded = std::fs::read_to_string(folded).unwrap();
    assert!(folded.lines().all(|line| line.contains(";[Mutex] ")), "{folded}");
    let microseconds: u64 =
        folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert!(microseconds.abs_diff(mutex["ns"].as_u64().unwrap() / 1000) < 100, "{folded}");
    // Compressed: gzip's magic number. Its contents: the unit tests of the exporter.
    assert_eq!(std::fs::read(pprof).unwrap()[..2], [0x1f, 0x8b]);
    let module = json["processes"][0]["modules"].as_array().unwrap();
    let own = module.iter().find(|it| it["file"] == program.to_str().unwrap()).unwrap();
    assert_eq!((&own["build_id"], &own["has_file"]), (&"0123456789abcdef".into(), &true.into()));
    // What they contain: the unit tests of each format, and `tools/profile/tests/page.rs`.
    assert!(report(&["--flamegraph", &work, "--idle"]).status.success());
    let [html, svg, work] = [html, svg, work].map(|file| std::fs::read_to_string(file).unwrap());
    assert!(html.contains("wants_the_mutex") && html.contains("lost waiting for locks"));
    assert!(svg.contains("wants_the_mutex") && svg.contains("[Mutex]") && !svg.contains("Barrier"));
    assert!(work.contains("[Barrier]") && !work.contains("Mutex"));
    let trace = std::fs::read(trace).unwrap();
    assert!(trace.windows(15).any(|bytes| bytes == b"wants_the_mutex"));
    // What does not go together, and what is no recording.
    for (refused, why) in [
        (&["--markdown", "page.md"][..], "bench"),
        (&["--text", "--idle"], "--idle goes with"),
        (&["--html", "/no/such/page.html"], "/no/such/page.html"),
        (&["--text", "--symbols", "/no/such"], "--symbols /no/such"),
    ] {
        let refused = report(refused);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && stderr.contains(why), "{stderr}");
    }
    std::fs::write(format!("{directory}/0.0.rings"), "garbage").unwrap();
    let refused = report(&["--text"]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && stderr.contains("not a recording"), "{stderr}");
}

/// A program that was built again after its recording: the names are not taken from the new one.
#[test]
fn names_are_only_from_the_file_that_was_recorded() {
    let place = tempfile::tempdir().unwrap();
    let program = build(place.path(), &["-Wl,--build-id=0x01"]);
    let directory = place.path().join("recording");
    profile(&["-o", directory.to_str().unwrap()], &program, &[]);
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(&program, elsewhere.join("program")).unwrap();
    build(place.path(), &["-Wl,--build-id=0x02"]);
    let report = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
        let output = output(command.arg("report").arg(&directory).arg("--text").args(arguments));
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let [text, said] = report(&[]);
    assert!(text.contains("program+0x") && !text.contains("wants_the_mutex"), "{text}");
    assert_eq!(said.matches("is not the one recorded, with build ID 01").count(), 1, "{said}");
    let [text, said] = report(&["--symbols", elsewhere.to_str().unwrap()]);
    assert!(text.contains("wants_the_mutex") && !said.contains("program"), "{text}{said}");
}

#[test]
fn what_is_no_recording_is_not_explained() {
    let place = tempfile::tempdir().unwrap();
    let explain = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
        let output = output(command.arg("explain").arg(place.path()));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(explain().contains("no recording"));
    std::fs::write(place.path().join("1.1.rings"), "garbage").unwrap();
    let said = explain();
    assert!(said.contains("1.1.rings") && said.contains("not a recording"), "{said}");
}
