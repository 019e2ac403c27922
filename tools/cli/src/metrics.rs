//! `waitword metrics`: the waits of a program, for Prometheus and for collectors of profiles.
//!
//! One thread reads what is new in the recording every second, and makes all answers; `http.rs` has
//! the requests, `sums.rs` the numbers and `text.rs` the format.

mod http;
mod sums;
mod text;

use crate::record_session::{End, Guard, Output, Session};
use anyhow::{Context as _, Result, bail};
use http::{Request, Response};
use std::ffi::OsString;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use sums::Gathered;
use waitword_profile::live::Live;

/// How often the recording is read if nobody asks.
const PERIOD: Duration = Duration::from_secs(1);
/// How soon the end of the program, or a signal, is noticed.
const LOOK: Duration = Duration::from_millis(100);
/// How long a program may take to end after a signal to this command.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest profile, in seconds: as long as the past is kept.
const LONGEST_PROFILE: u64 = waitword_profile::live::rates::HISTORY / 1_000_000_000;

/// The arguments of `waitword metrics`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("of").required(true))]
#[command(group = clap::ArgGroup::new("recorded").args(["pid", "command"]))]
#[command(after_help = "\
Examples:
  waitword metrics --listen 127.0.0.1:9643 -- ./server --port 8080
      Runs the server; Prometheus scrapes http://127.0.0.1:9643/metrics.
  waitword metrics --pid $(pgrep -n server)
      Serves a process that runs on waitword already. Then:
      go tool pprof -top 'http://127.0.0.1:9643/debug/pprof/mutex?seconds=30'

With a program, the exit status is the program's. Whoever can connect sees the names of functions;
the default address is for this machine only. The book lists the metrics
(book/src/observe/fleet.md).")]
pub(crate) struct Args {
    /// Serve this process until it ends. If it does not record, it is made to, as by `waitword
    /// profile --pid`
    #[arg(long, value_name = "N", group = "of")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: Option<u32>,
    /// Serve all recordings in this directory, as processes come and go
    #[arg(long, value_name = "DIR", group = "of")]
    dir: Option<PathBuf>,
    /// Where to listen; port 0: any, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9643")]
    listen: SocketAddr,
    /// Also answer requests for this name of the machine. Otherwise only those for an address or
    /// `localhost` are, so that no web page can send a browser here
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// How many places have metrics of their own: the first ones that lose time, the costliest
    /// first. All others are summed up
    #[arg(long, value_name = "COUNT", default_value_t = 50,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    sites: u16,
    /// Waits that are shorter are not seen, in nanoseconds
    #[arg(long, value_name = "NS", default_value_t = 10_000, requires = "recorded")]
    threshold: u64,
    /// With --pid: also if the process has a system call filter of its own, which may kill it
    #[arg(long, requires = "pid", conflicts_with_all = ["dir", "command"])]
    force: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        group = "of",
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match metrics(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// What answers are made of.
struct State {
    live: Live,
    gathered: Gathered,
}

impl State {
    /// Reads what is new.
    fn poll(&mut self) -> Result<()> {
        loop {
            let gathered = &mut self.gathered;
            let polled = self.live.poll(|process, _, record| gathered.add(process.id, record))?;
            self.gathered.name(&mut self.live);
            if polled.is_complete {
                return Ok(());
            }
        }
    }
}

fn metrics(args: &Args) -> Result<ExitCode> {
    // First what can fail: no program is started in vain.
    let listener = TcpListener::bind(args.listen);
    let listener = listener.with_context(|| format!("--listen {}", args.listen))?;
    let address = listener.local_addr()?;
    let stop = crate::stop::stop_on_signals()?;
    let mut session = match (&args.dir, args.pid) {
        (Some(directory), _) => Session::of_directory(directory),
        (None, Some(pid)) => match Session::of_process(pid, args.threshold, args.force, &stop)? {
            Some(session) => session,
            None => return Ok(ExitCode::from(crate::stop::STOPPED)),
        },
        (None, None) => Session::start(&args.command, args.threshold, &Output::Shared)?,
    };
    let live = session.live()?;
    let gathered = Gathered::new(args.sites.into());
    let mut state = State { live, gathered };
    let (sender, asked) = channel::<Asked>();
    http::serve(listener, args.host.clone(), move |request| ask(&sender, request))?;
    eprintln!("waitword: metrics at http://{address}/metrics");
    let mut next = Instant::now();
    loop {
        let ended = session.ended();
        // Relaxed: nothing else is published by it.
        if stop.load(Ordering::Relaxed) {
            if let Guard::Program(program) = &mut session.guard {
                program.end(PATIENCE);
            }
            return Ok(match session.ended() {
                Some(End::Status(status)) => code(status),
                _ => ExitCode::from(crate::stop::STOPPED),
            });
        }
        match ended {
            Some(End::Status(status)) => return Ok(code(status)),
            Some(End::Unknown) => {
                // Whoever read this may have gone.
                let _ = writeln!(std::io::stderr(), "waitword: {} has ended", session.title);
                return Ok(ExitCode::SUCCESS);
            }
            None => {}
        }
        if Instant::now() >= next {
            state.poll()?;
            next = Instant::now() + PERIOD;
        }
        // The server's threads have the other end, and do not end.
        if let Ok((request, reply)) = asked.recv_timeout(LOOK) {
            // A client that has gone does not matter.
            let _ = reply.send(answer(&mut state, &request));
        }
    }
}

/// The exit status of a shell that has run this program.
fn code(status: std::process::ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(code as u8),
        (None, signal) => ExitCode::from(128 + signal.unwrap_or_default() as u8),
    }
}

/// A request, and where the answer is waited for.
type Asked = (Request, Sender<Response>);

/// Called by the thread of a connection.
fn ask(asked: &Sender<Asked>, request: Request) -> Response {
    let (reply, answer) = channel();
    let answer = asked.send((request, reply)).ok().and_then(|()| answer.recv().ok());
    answer.unwrap_or_else(|| Response::error(500, "the process has ended\n".to_owned()))
}

fn answer(state: &mut State, request: &Request) -> Response {
    let answer = match &*request.path {
        "/metrics" => metrics_text(state, request),
        "/debug/pprof/mutex" | "/debug/pprof/" | "/debug/pprof" => profile(state, request),
        "/" => Ok(Response::text("/metrics\n/debug/pprof/mutex?seconds=30\n".to_owned())),
        _ => return Response::error(404, "there are /metrics and /debug/pprof/mutex\n".to_owned()),
    };
    answer.unwrap_or_else(|error| Response::error(500, format!("{error:#}\n")))
}

fn metrics_text(state: &mut State, request: &Request) -> Result<Response> {
    state.poll()?;
    let text = text::open_metrics(state.gathered.snapshot(&state.live))?;
    let accept = request.accept.as_ref();
    let wants_open_metrics =
        accept.is_some_and(|types| types.contains("application/openmetrics-text"));
    Ok(if wants_open_metrics {
        Response::ok("application/openmetrics-text; version=1.0.0; charset=utf-8", text.into())
    } else {
        let text = text::of_prometheus(&text);
        Response::ok("text/plain; version=0.0.4; charset=utf-8", text.into())
    })
}

/// As in Go, a profile of all waits, or of some seconds: here, of the last ones, at once.
fn profile(state: &mut State, request: &Request) -> Result<Response> {
    let nanoseconds = match seconds(&request.query) {
        Ok(seconds) => seconds.map(|seconds| seconds * 1_000_000_000),
        Err(error) => return Ok(Response::error(400, format!("{error}\n"))),
    };
    state.poll()?;
    let profile = state.live.pprof(nanoseconds)?;
    Ok(Response::ok("application/octet-stream", profile))
}

fn seconds(query: &str) -> Result<Option<u64>> {
    let Some(value) = query.split('&').find_map(|part| part.strip_prefix("seconds=")) else {
        return Ok(None);
    };
    match value.parse() {
        Ok(seconds @ 1..=LONGEST_PROFILE) => Ok(Some(seconds)),
        _ => bail!("seconds must be from 1 to {LONGEST_PROFILE}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_of_all_waits_or_of_some_seconds() {
        assert_eq!(seconds("").unwrap(), None);
        assert_eq!(seconds("debug=0&seconds=30").unwrap(), Some(30));
        for wrong in ["seconds=", "seconds=0", "seconds=-1", "seconds=301", "seconds=x"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
