//! `waitword metrics` as a collector uses it.

mod recorded;

use recorded::{LONG, PATIENCE, Recorded, Served, compile, compile_endless, waitword};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use waitword_testkit::command::output;

/// The command, and the address that it has printed.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(arguments: &[&str], stdout: Stdio) -> Self {
        let mut command = Command::new(waitword());
        command.args(["metrics", "--listen", "127.0.0.1:0", "--host", "here.example"]);
        command.args(arguments);
        let mut child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("waitword: metrics at http://");
        let address = address.and_then(|it| it.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }

    /// The status line and headers, and the body.
    fn get(&self, target: &str, header: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = if header.contains("Host:") { "" } else { "Host: here.example\r\n" };
        let request = format!("GET {target} HTTP/1.1\r\n{host}{header}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let body = answer.split_off(end + 4);
        (String::from_utf8(answer).unwrap(), body)
    }

    fn metrics(&self) -> String {
        let (head, body) = self.get("/metrics", "");
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        String::from_utf8(body).unwrap()
    }

    fn signal(&self) {
        // SAFETY: a plain call; a child of ours that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) }, 0);
    }
}

impl Drop for Server {
    /// If the test fails; otherwise it has ended.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of all samples with this name whose labels contain this text.
fn sum(metrics: &str, name: &str, label: &str) -> f64 {
    let is_it = |line: &&str| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            && line.contains(label)
    };
    let values = metrics.lines().filter(is_it);
    values.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Both its verdict and its advice.
#[track_caller]
fn promtool_accepts(metrics: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("promtool (`.ci/run packages`, or Debian's package prometheus)");
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}\n{metrics}");
}

/// The values of the label `site` in all samples whose names start like this.
fn sites<'a>(metrics: &'a str, name: &str) -> BTreeSet<&'a str> {
    let of_name = metrics.lines().filter(|line| line.starts_with(name));
    let sites = of_name.filter_map(|line| line.split_once("site=\"")?.1.split_once('"'));
    sites.map(|(site, _)| site).collect()
}

#[test]
fn a_process_is_served_until_it_ends_with_a_bounded_number_of_labels() {
    let _watchdog = waitword_testkit::watch();
    let place = tempfile::tempdir().unwrap();
    let mut recorded = Recorded::start(place.path(), "chain.c");
    let id = recorded.id();
    let mut server = Server::start(&["--pid", &id, "--sites", "1"], Stdio::null());
    let began = Instant::now();
    let metrics = loop {
        let metrics = server.metrics();
        let other = "site=\"(other)\"";
        let is_there = sum(&metrics, "waitword_lock_contentions_total", other) >= 3.0
            && sum(&metrics, "waitword_lock_hold_seconds_count", other) >= 3.0;
        if is_there {
            break metrics;
        }
        assert!(began.elapsed() < PATIENCE, "{metrics}");
        std::thread::sleep(Duration::from_millis(100));
    };
    for name in ["waitword_lock_wait", "waitword_lock_contentions", "waitword_lock_holder"] {
        let sites = sites(&metrics, name);
        assert!(sites.len() == 2 && sites.contains("(other)"), "{name}: {sites:?}");
    }
    assert_eq!(sites(&metrics, "waitword_lock_hold_").len(), 2, "{metrics}");
    recorded.end();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// What does not record is made to, for as long as it is served.
#[test]
fn a_process_on_the_drop_in_records_while_it_is_served() {
    let _watchdog = waitword_testkit::watch();
    let place = tempfile::tempdir().unwrap();
    let mut program = Served::start(&compile_endless(place.path()), "contended");
    for is_last in [false, true] {
        assert!(!program.records());
        let mut server = Server::start(&["--pid", &program.id()], Stdio::null());
        let began = Instant::now();
        loop {
            let metrics = server.metrics();
            let waits = sum(&metrics, "waitword_lock_contentions_total", "wants_the_mutex");
            if waits >= 3.0 && metrics.contains("sleeps_with_the_mutex") {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{metrics}");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(program.records());
        match is_last {
            false => server.signal(),
            true => program.end(),
        }
        let status = server.child.wait().unwrap().code();
        assert_eq!(status, Some(if is_last { 0 } else { 130 }));
        if !is_last {
            program.until_it_is_left_alone();
        }
    }
}

#[test]
fn a_running_program_is_served() {
    let _watchdog = waitword_testkit::watch();
    let place = tempfile::tempdir().unwrap();
    let program = compile("holder-sleeps.c", place.path());
    let mut server = Server::start(&["--", program.to_str().unwrap(), LONG], Stdio::null());
    let began = Instant::now();
    let metrics = loop {
        let metrics = server.metrics();
        if sum(&metrics, "waitword_lock_contentions_total", "waiter_of_lock") >= 20.0 {
            break metrics;
        }
        assert!(began.elapsed() < PATIENCE, "{metrics}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let count = sum(&metrics, "waitword_lock_wait_seconds_count", "waiter_of_lock");
    let time = sum(&metrics, "waitword_lock_wait_seconds_sum", "waiter_of_lock");
    assert_eq!(count, sum(&metrics, "waitword_lock_contentions_total", "waiter_of_lock"));
    assert!(time > 0.0 && metrics.contains("object=\"mutex\""), "{metrics}");
    // Everything is charged to some cause.
    let causes = sum(&metrics, "waitword_lock_holder_seconds_total", "waiter_of_lock");
    assert!((causes - time).abs() < 1e-6, "{causes} {time}");
    assert!(sum(&metrics, "waitword_lock_hold_seconds_count", "holder_of_lock") > 0.0, "{metrics}");
    assert_eq!(sum(&metrics, "waitword_processes", ""), 1.0, "{metrics}");
    assert_eq!(sum(&metrics, "waitword_lost_records_total", ""), 0.0, "{metrics}");
    // It goes on, and no sum becomes smaller.
    let later = loop {
        let later = server.metrics();
        if sum(&later, "waitword_lock_contentions_total", "waiter_of_lock") > count {
            break later;
        }
        assert!(began.elapsed() < PATIENCE, "{later}");
    };
    assert!(sum(&later, "waitword_lock_wait_seconds_sum", "waiter_of_lock") > time);
    promtool_accepts(&later);
    // What Prometheus asks for.
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let (head, body) = server.get("/metrics", accept);
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with(b"# EOF\n"));
    for (target, status) in [
        ("/debug/pprof/mutex", 200),
        ("/debug/pprof/mutex?seconds=5", 200),
        ("/debug/pprof", 200),
        ("/debug/pprof/mutex?seconds=x", 400),
        ("/else", 404),
    ] {
        let (head, body) = server.get(target, "");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{target}: {head}");
        assert!(status != 200 || body[..2] == [0x1f, 0x8b], "{target}: not compressed");
    }
    // A web page whose name leads to this address.
    let (head, body) = server.get("/metrics", "Host: evil.example\r\n");
    assert!(head.starts_with("HTTP/1.1 421 ") && !body.starts_with(b"#"), "{head}");
    // A signal ends the program, and this is how it ended.
    server.signal();
    assert_eq!(server.child.wait().unwrap().code(), Some(128 + libc::SIGTERM));
}

#[test]
fn the_status_and_the_output_are_the_program_s() {
    let _watchdog = waitword_testkit::watch();
    let mut server = Server::start(&["--", "sh", "-c", "echo from it; exit 7"], Stdio::piped());
    let mut text = String::new();
    server.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((&*text, server.child.wait().unwrap().code()), ("from it\n", Some(7)));
}

#[test]
fn a_directory_is_served_until_a_signal_and_what_is_wrong_is_said() {
    let _watchdog = waitword_testkit::watch();
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["--dir", place.path().to_str().unwrap()], Stdio::null());
    assert_eq!(sum(&server.metrics(), "waitword_processes", ""), 0.0);
    let mut command = Command::new(waitword());
    // The port is taken, so the program is not started.
    let marker = place.path().join("started");
    command.args(["metrics", "--listen", &server.address, "--", "touch"]).arg(&marker);
    let refused = output(&mut command);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && stderr.contains(&server.address), "{stderr}");
    assert!(!marker.exists());
    server.signal();
    assert_eq!(server.child.wait().unwrap().code(), Some(130));
    let mut command = Command::new(waitword());
    let refused = output(command.args(["metrics", "--listen", "127.0.0.1:0", "--dir", "/no/such"]));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && stderr.contains("/no/such"), "{stderr}");
}
