//! `go tool pprof` reads the profile of a recording and shows the numbers that `waitword` shows.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;
use waitword_testkit::command::{output, texts};
use waitword_testkit::{limit, until, watch};

/// The program of `go tool pprof`; `None` without Go.
fn pprof() -> Option<Command> {
    let Ok(found) = Command::new("go").args(["tool", "-n", "pprof"]).output() else {
        eprintln!("not tested: there is no `go`");
        return None;
    };
    let (path, _) = texts(found);
    let mut command = Command::new(path.trim());
    command.stdin(Stdio::null());
    Some(command)
}

/// Two locks, and a thread at each of them.
fn recording(place: &Path) -> String {
    let truth = Path::new(env!("CARGO_MANIFEST_DIR")).join("../truth/chain.c");
    let program = place.join("chain");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(truth);
    texts(output(&mut cc));
    let directory = place.join("recording");
    let mut profile = Command::new(env!("CARGO_BIN_EXE_waitword"));
    profile.args(["profile", "-o"]).arg(&directory).arg("--").arg(program).arg("0.3");
    texts(output(&mut profile));
    directory.to_str().unwrap().to_owned()
}

/// What our own report says of a recording.
struct Ours {
    text: String,
    json: Value,
}

impl Ours {
    fn sites(&self) -> impl Iterator<Item = &Value> {
        let all = self.json["processes"][0]["sites"].as_array().unwrap();
        all.iter().filter(|site| site["is_lock"] == true)
    }

    /// The sum of a field over the sites whose stack (`waiter`, `releaser`) has this function.
    fn of(&self, function: &str, stack: &str, field: &str) -> u64 {
        let has = |site: &&Value| {
            let frames = site[stack].as_array().unwrap();
            frames.iter().any(|frame| frame["function"] == function)
        };
        self.sites().filter(has).map(|site| site[field].as_u64().unwrap()).sum()
    }

    fn all(&self, field: &str) -> u64 {
        self.sites().map(|site| site[field].as_u64().unwrap()).sum()
    }
}

/// What `-top` says: the total, and of a function with what it called.
struct Top(String);

impl Top {
    fn of(pprof: Command, profile: &str, index: &str) -> Self {
        let mut pprof = pprof;
        pprof.args(["-top", "-unit=ns", "-nodecount=1000", &format!("-sample_index={index}")]);
        Self(texts(output(pprof.arg(profile))).0)
    }

    fn number(text: &str) -> u64 {
        text.trim_end_matches("ns").parse().unwrap()
    }

    fn total(&self) -> u64 {
        let line = self.0.lines().find(|line| line.ends_with(" total")).expect(&self.0);
        Self::number(line.split(' ').nth_back(1).unwrap())
    }

    /// The fourth column is the function's own time with that of what it called.
    fn of_function(&self, function: &str) -> u64 {
        let mut rows = self.0.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.get(5) == Some(&function)).expect(&self.0);
        Self::number(row[3])
    }
}

#[test]
fn pprof_shows_the_numbers_of_the_summary() {
    let _watchdog = watch();
    let Some(_) = pprof() else { return };
    let place = tempfile::tempdir().unwrap();
    let directory = recording(place.path());
    let [json, profile] = ["json", "pb.gz"].map(|name| {
        let path = place.path().join(name);
        path.to_str().unwrap().to_owned()
    });
    let mut report = Command::new(env!("CARGO_BIN_EXE_waitword"));
    report.args(["report", &directory, "--text", "--json", &json, "--pprof", &profile]);
    let (text, _) = texts(output(&mut report));
    let json = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let ours = Ours { text, json };
    assert!(ours.all("ns") > 0 && ours.sites().count() >= 2, "{}", ours.text);

    let run = |index| Top::of(pprof().unwrap(), &profile, index);
    for (index, field, stack, functions) in [
        ("delay", "ns", "waiter", &["a_waits_for_lock_1", "b_waits_for_lock_2"][..]),
        ("contentions", "count", "waiter", &["a_waits_for_lock_1", "b_waits_for_lock_2"]),
        ("holder_delay", "ns", "releaser", &["c_holds_lock_2"]),
        ("holder_contentions", "count", "releaser", &["c_holds_lock_2"]),
    ] {
        let top = run(index);
        for function in functions {
            let expected = ours.of(function, stack, field);
            assert!(expected > 0, "{function}");
            assert_eq!(top.of_function(function), expected, "{index}: {function}\n{}", top.0);
        }
        if stack == "waiter" {
            assert_eq!(top.total(), ours.all(field), "{index}\n{}", top.0);
        }
    }
    // The summary has three digits of the same number.
    let head = ours.text.lines().next().unwrap();
    let lost = head.split(": ").nth(1).unwrap().split(" lost").next().unwrap();
    let (number, unit) = lost.split_once(' ').unwrap();
    let unit = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        _ => panic!("{head}"),
    };
    let total = run("delay").total() as f64;
    assert!((number.parse::<f64>().unwrap() * unit - total).abs() <= 0.006 * total, "{head}");

    the_pages_of_pprof(&profile, &ours);
}

/// `pprof -http`, until it is dropped.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut rest = String::new();
        let _ = self.stderr.read_to_string(&mut rest);
        eprint!("{rest}");
    }
}

fn the_pages_of_pprof(profile: &str, ours: &Ours) {
    let mut pprof = pprof().unwrap();
    // Without a number, it takes a port that is free.
    pprof.args(["-http=127.0.0.1:", "-no_browser", profile]).stdout(Stdio::null());
    let mut child = pprof.stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut server = Server { child, stderr };
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert!(server.stderr.read_line(&mut line).unwrap() > 0, "it has ended");
        if let Some((_, address)) = line.trim().split_once("http://") {
            break address;
        }
    };
    let top = page(address, "/ui/top?si=delay");
    // The rows are in the page as JSON: in the last call of a function.
    let (_, rows) = top.rsplit_once("TopTable(").and_then(|(_, it)| it.split_once('[')).unwrap();
    let (rows, _) = rows.split_once("]);").unwrap();
    let rows: Vec<Value> = serde_json::from_str(&format!("[{rows}]")).unwrap();
    let function = "a_waits_for_lock_1";
    let row = rows.iter().find(|row| row["Name"] == function).unwrap();
    assert_eq!(row["Cum"].as_u64(), Some(ours.of(function, "waiter", "ns")), "{row}");
    let graph = page(address, "/ui/flamegraph?si=delay");
    let (_, total) = graph.split_once("\"Total\":").unwrap();
    let digits = total.split(|letter: char| !letter.is_ascii_digit()).next().unwrap();
    assert_eq!(digits.parse(), Ok(ours.all("ns")));
}

fn page(address: &str, path: &str) -> String {
    // It says its address a moment before it listens.
    let connect = || TcpStream::connect(address);
    until(|| connect().is_ok());
    let mut stream = connect().unwrap();
    stream.set_read_timeout(Some(limit(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    // Of HTTP 1.0, so that the answer is not in pieces and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    answer
}
