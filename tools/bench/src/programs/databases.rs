//! Databases. Each is a server loaded by its own benchmark, which is not on the drop-in: only the
//! server is measured.
//!
//! The tables are filled once. After each run the server must find no errors in them.

use super::child::{Child, Ended, Launcher, number_after};
use super::need::find;
use super::place::Place;
use super::program::{Done, Job, Size};
use crate::harness::{Failure, check};
use std::time::{Duration, Instant};

/// How long a server may take until it accepts connections.
const READY: Duration = Duration::from_secs(60);

/// MariaDB, with one thread for each of sixteen connections, under sysbench's mix of reads and
/// writes.
pub(super) fn mariadb(place: Place, size: Size) -> Result<Job, Failure> {
    let transactions = size.of(2000);
    let server = Mariadb { socket: place.path("s").display().to_string(), place };
    let mut is_filled = false;
    Ok(Box::new(move |launcher: &Launcher| {
        if !is_filled {
            server.fill(launcher)?;
            is_filled = true;
        }
        let mut running = server.start(launcher)?;
        server.wait_until_ready(launcher, &mut running)?;
        let events = format!("--events={transactions}");
        let said = server.sysbench(launcher, &["--time=0", &events, "run"])?.said();
        let tables = server.sql(launcher, "check table test.sbtest1, test.sbtest2")?;
        check(tables.matches("\tOK\n").count() == 2, || tables.clone())?;
        let counted = number_after(&said, "total number of events:")?;
        check(counted == transactions as f64, || said.clone())?;
        let ended = running.stop(libc::SIGTERM)?;
        Ok(Done {
            operations: transactions,
            seconds: number_after(&said, "total time:")?,
            usage: ended.usage,
            same: tables.into_bytes(),
        })
    }))
}

struct Mariadb {
    place: Place,
    socket: String,
}

impl Mariadb {
    fn fill(&self, launcher: &Launcher) -> Result<(), Failure> {
        let install = [
            "--no-defaults",
            "--user=root",
            &self.data(),
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ];
        launcher.run_plain(&self.place, "mariadb-install-db", install)?;
        let mut server = self.start(&launcher.plain())?;
        self.wait_until_ready(launcher, &mut server)?;
        self.sql(launcher, "create database test")?;
        self.sysbench(launcher, &["prepare"])?;
        server.stop(libc::SIGTERM).map(drop)
    }

    fn data(&self) -> String {
        format!("--datadir={}", self.place.path("data").display())
    }

    fn start<'a>(&self, launcher: &Launcher<'a>) -> Result<Child<'a>, Failure> {
        let socket = format!("--socket={}", self.socket);
        let arguments = [
            "--no-defaults",
            // If the caller is not root, the server only prints that this has no effect.
            "--user=root",
            &self.data(),
            &socket,
            "--skip-networking",
            "--pid-file=pid",
            "--innodb-flush-log-at-trx-commit=2",
        ];
        launcher.start(&self.place, "mariadbd", arguments)
    }

    fn wait_until_ready(&self, launcher: &Launcher, server: &mut Child) -> Result<(), Failure> {
        ready(server, || self.sql(launcher, "select 1").map(drop))
    }

    /// Runs a statement, and returns the server's answer.
    fn sql(&self, launcher: &Launcher, statement: &str) -> Result<String, Failure> {
        let arguments = ["--no-defaults", "-S", &self.socket, "-u", "root", "-e", statement];
        let ended = launcher.run_plain(&self.place, "mariadb", arguments)?;
        Ok(ended.said())
    }

    fn sysbench(&self, launcher: &Launcher, what: &[&str]) -> Result<Ended, Failure> {
        let socket = format!("--mysql-socket={}", self.socket);
        let usual = [
            "oltp_read_write",
            &socket,
            "--mysql-user=root",
            "--mysql-db=test",
            "--tables=2",
            "--table-size=5000",
            "--threads=16",
        ];
        launcher.run_plain(&self.place, "sysbench", usual.iter().chain(what))
    }
}

/// PostgreSQL, with one process for each of eight connections, under pgbench. Its processes share
/// memory and synchronize through semaphores; few have threads.
pub(super) fn postgres(place: Place, size: Size) -> Result<Job, Failure> {
    let each = size.of(400);
    let server = Postgres::new(place)?;
    let mut is_filled = false;
    Ok(Box::new(move |launcher: &Launcher| {
        if !is_filled {
            server.fill(launcher)?;
            is_filled = true;
        }
        let mut running = server.start(launcher)?;
        server.wait_until_ready(launcher, &mut running)?;
        let count = each.to_string();
        let said =
            server.client(launcher, "pgbench", &["-n", "-c", "8", "-j", "2", "-t", &count])?.said();
        let done = format!("{0}/{0}", 8 * each);
        check(said.contains(&done), || said.clone())?;
        let sums = "select (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from \
                    pgbench_history)";
        let equal = server.client(launcher, "psql", &["-Atc", sums])?.stdout;
        check(equal == b"t\n", || "the sums differ".to_owned())?;
        let ended = running.stop(libc::SIGINT)?;
        Ok(Done {
            operations: 8 * each,
            seconds: (8 * each) as f64 / number_after(&said, "tps =")?,
            usage: ended.usage,
            same: equal,
        })
    }))
}

struct Postgres {
    place: Place,
    directory: String,
    /// PostgreSQL refuses to run as root. For root, these are the `setpriv` arguments that switch
    /// to another user; otherwise empty.
    as_user: Vec<String>,
}

impl Postgres {
    const USER: &str = "nobody";

    fn new(place: Place) -> Result<Self, Failure> {
        let directory = place.directory().display().to_string();
        // SAFETY: the call has no preconditions and cannot fail.
        let is_root = unsafe { libc::geteuid() } == 0;
        let mut as_user = Vec::new();
        if is_root {
            as_user = ["--reuid", Self::USER, "--regid", "nogroup", "--clear-groups"]
                .map(str::to_owned)
                .to_vec();
        }
        Ok(Self { place, directory, as_user })
    }

    /// The command line of one of PostgreSQL's programs.
    fn line(&self, program: &str, arguments: &[&str]) -> (String, Vec<String>) {
        let mut words = self.as_user.clone();
        let path = find(program).map_or_else(|| program.into(), |path| path.display().to_string());
        words.push(path);
        words.extend(arguments.iter().map(|&word| word.to_owned()));
        let first = if self.as_user.is_empty() { words.remove(0) } else { "setpriv".to_owned() };
        (first, words)
    }

    fn run(
        &self,
        launcher: &Launcher,
        program: &str,
        arguments: &[&str],
    ) -> Result<Ended, Failure> {
        let (first, words) = self.line(program, arguments);
        launcher.run_plain(&self.place, &first, words)
    }

    fn fill(&self, launcher: &Launcher) -> Result<(), Failure> {
        if !self.as_user.is_empty() {
            launcher.run_plain(&self.place, "chown", [Self::USER, &self.directory])?;
        }
        let data = self.data();
        self.run(launcher, "initdb", &["-D", &data, "-A", "trust", "-U", "bench"])?;
        let mut server = self.start(&launcher.plain())?;
        self.wait_until_ready(launcher, &mut server)?;
        self.client(launcher, "pgbench", &["-i", "-q", "-s", "2"])?;
        server.stop(libc::SIGINT).map(drop)
    }

    fn data(&self) -> String {
        format!("{}/data", self.directory)
    }

    fn start<'a>(&self, launcher: &Launcher<'a>) -> Result<Child<'a>, Failure> {
        let data = self.data();
        let arguments =
            ["-D", &data, "-k", &self.directory, "-h", "", "-c", "synchronous_commit=off"];
        let (first, words) = self.line("postgres", &arguments);
        launcher.start(&self.place, &first, words)
    }

    fn wait_until_ready(&self, launcher: &Launcher, server: &mut Child) -> Result<(), Failure> {
        ready(server, || self.client(launcher, "psql", &["-c", "select 1"]).map(drop))
    }

    /// Runs a client of the server.
    fn client(
        &self,
        launcher: &Launcher,
        program: &str,
        arguments: &[&str],
    ) -> Result<Ended, Failure> {
        let to = ["-h", &self.directory, "-U", "bench"];
        let last: &[&str] = if program == "pgbench" { &["postgres"] } else { &["-d", "postgres"] };
        self.run(launcher, program, &[&to, arguments, last].concat())
    }
}

/// Repeats `ask` until the server answers.
fn ready(server: &mut Child, ask: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        server.is_running()?;
        match ask() {
            Ok(()) => return Ok(()),
            Err(failure) if started.elapsed() > READY => return Err(failure),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}
