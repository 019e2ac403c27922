//! The torture as a program that the tests start.

use clap::Parser;
use libtest_mimic::Failed;
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

/// The first argument that makes this program the torture; the torture's own arguments follow.
pub(crate) const AS_TORTURE: &str = "torture";

#[derive(clap::Parser)]
struct Torture {
    #[command(flatten)]
    args: waitword_torture::Args,
}

/// Runs the torture, if the program was started as the torture.
pub(crate) fn run_if_torture() -> Option<ExitCode> {
    if let Some(code) = waitword_torture::run_if_child() {
        return Some(code);
    }
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    (arguments.first()? == AS_TORTURE).then(|| {
        waitword_torture::run(&Torture::parse_from(arguments).args, &|| {
            Err("the command carries it, this test does not".to_owned())
        })
    })
}

/// Runs the torture. Its own watchdogs end a hang. If these hang too, the limit ends it.
pub(crate) fn torture(arguments: &str) -> Result<Output, Failed> {
    const LIMIT: Duration = Duration::from_secs(100);
    let mut child = Command::new(std::env::current_exe()?)
        .arg(AS_TORTURE)
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let id = child.id();
    let started = Instant::now();
    let (done, ended) = std::sync::mpsc::channel::<()>();
    // Reads both pipes to their end, while another thread enforces the limit.
    let watch = std::thread::spawn(move || {
        let over = ended.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if over {
            // SAFETY: our own child, which has not been waited for yet.
            unsafe { libc::kill(id as i32, libc::SIGKILL) };
        }
        over
    });
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let errors = child.stderr.take().map(|mut from| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut from, &mut text).map(|_| text)
        })
    });
    if let Some(mut from) = child.stdout.take() {
        std::io::Read::read_to_end(&mut from, &mut stdout)?;
    }
    if let Some(reader) = errors {
        stderr = reader.join().map_err(|_| "the reader has panicked")??;
    }
    drop(done);
    if watch.join().map_err(|_| "the watch has panicked")? {
        return Err(format!("killed after {:?}", started.elapsed()).into());
    }
    let status = child.wait()?;
    Ok(Output { status, stdout, stderr })
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
