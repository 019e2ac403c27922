//! A process that makes calls for sequence after sequence. If it dies or hangs, a new one is
//! started.

use std::io::{BufRead, BufReader, Write};
use std::process::{self, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Much longer than any sequence takes.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Child {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    running: Option<Running>,
}

struct Running {
    process: process::Child,
    orders: ChildStdin,
    lines: Receiver<String>,
}

impl Child {
    pub(crate) fn new(name: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        Self { name, command: Box::new(command), running: None }
    }

    /// Returns the answers to these lines, or how the process ended.
    pub(crate) fn answers(&mut self, lines: &[String]) -> Result<Vec<String>, String> {
        let running = self.running.get_or_insert_with(|| Running::start((self.command)()));
        let mut text = lines.join("\n");
        text.push_str("\n.\n");
        // If this fails because the process has ended, the loop below finds out.
        let _ = running.orders.write_all(text.as_bytes());
        let mut answers = Vec::new();
        loop {
            match running.lines.recv_timeout(PATIENCE) {
                Ok(line) if line == "." => return Ok(answers),
                Ok(line) => answers.push(line),
                Err(_) => break,
            }
        }
        let ended = running.end();
        self.running = None;
        // The answers are lost: the process buffers them until a sequence is over.
        Err(format!("{}: {ended}", self.name))
    }
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let orders = process.stdin.take().expect("piped");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        let (line, lines) = channel();
        std::thread::spawn(move || {
            for answer in answers.lines().map_while(Result::ok) {
                let _ = line.send(answer);
            }
        });
        Self { process, orders, lines }
    }

    /// Ends the process, unless it has ended by itself.
    fn end(&mut self) -> String {
        match self.process.try_wait().expect("our own child") {
            Some(status) => format!("ended: {status}"),
            None => {
                let _ = self.process.kill();
                let _ = self.process.wait();
                "hangs".to_owned()
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
