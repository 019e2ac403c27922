//! `waitword top`: where the threads of a program lose time waiting for locks, while it runs.
//!
//! `view.rs` makes what is shown from the sums; `screen.rs` draws it, `plain.rs` prints it where
//! there is no terminal.

mod plain;
mod screen;
mod view;

use crate::out_file::print;
use crate::record_session::{End, Output, Session};
use anyhow::{Context as _, Result, bail};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::widgets::Paragraph;
use screen::{Screen, Sort};
use signal_hook::consts::SIGHUP;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use view::View;
use waitword_profile::live::{Live, source::Source};

/// How soon a signal is noticed.
const LOOK: Duration = Duration::from_millis(200);

/// What is shown if there is nothing else.
const NOBODY: &str = "No process of this user records. Start one with: waitword profile -- PROGRAM";

/// The arguments of `waitword top`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("of"))]
#[command(group = clap::ArgGroup::new("recorded").args(["pid", "command"]))]
#[command(after_help = "\
Examples:
  waitword top
      Shows the locks at which the threads of your recording processes lose the most time: of all
      that run under `waitword profile`, or with WAITWORD_RECORD.
  waitword top --pid $(pgrep -n server) --once
      Prints one table of one of them.
  waitword top -- ./server --port 8080
      Runs the server, which ends with `top`.

LOST/s is how much time all threads together lost in the last second: 3 s means that three threads
waited all the time. HELD BY names the function that released the lock when threads had waited for
it, and the thread that holds it now. Keys: h or ? in the screen shows them.")]
pub(crate) struct Args {
    /// Follow this process. If it does not record, it is made to, as by `waitword profile --pid`
    #[arg(long, value_name = "N", group = "of")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: Option<u32>,
    /// Follow all recordings in this directory
    #[arg(long, value_name = "DIR", group = "of")]
    dir: Option<PathBuf>,
    /// How often the screen changes, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Show no screen: print one table of this many seconds, and exit
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// The same as --seconds 1; also if stdout is not a terminal
    #[arg(long, conflicts_with = "seconds")]
    once: bool,
    /// Write what the program prints to this file (it is appended)
    #[arg(long, value_name = "FILE", requires = "command")]
    output: Option<PathBuf>,
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
    match top(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn top(args: &Args) -> Result<ExitCode> {
    let interval = duration("--interval", args.interval)?;
    let seconds = match args.seconds {
        Some(seconds) => Some(duration("--seconds", seconds)?),
        None if args.once || !has_screen() => Some(Duration::from_secs(1)),
        None => None,
    };
    let stop = crate::stop::stop_on_signals()?;
    signal_hook::flag::register(SIGHUP, Arc::clone(&stop))?;
    let session = match (&args.dir, args.pid) {
        (Some(directory), _) => Session::of_directory(directory),
        (None, Some(pid)) => match Session::of_process(pid, args.threshold, args.force, &stop)? {
            Some(session) => session,
            None => return Ok(ExitCode::from(crate::stop::STOPPED)),
        },
        (None, None) if args.command.is_empty() => Session::of_user(),
        (None, None) => {
            let output = args.output.clone().map_or(Output::Private, Output::File);
            Session::start(&args.command, args.threshold, &output)?
        }
    };
    let live = session.live()?;
    let mut top = Top { session, live, began: Instant::now(), stop };
    match seconds {
        Some(seconds) => top.print(seconds),
        None => top.show(interval),
    }
}

/// Whether stdout is a terminal that can be drawn on.
fn has_screen() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|it| it != "dumb")
}

/// A time between a tenth of a second and an hour.
fn duration(option: &str, seconds: f64) -> Result<Duration> {
    if !(0.1..=3600.0).contains(&seconds) {
        bail!("{option} must be between 0.1 and 3600 seconds");
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// What is followed.
struct Top {
    session: Session,
    live: Live,
    began: Instant,
    /// The user has asked to end.
    stop: Arc<AtomicBool>,
}

impl Top {
    /// Reads all that is new, and looks where threads are that wait for long.
    fn poll(&mut self) -> Result<()> {
        self.read()?;
        if self.live.look_at_long_waits() {
            self.read()?;
            self.live.look_at_long_waits();
        }
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        while !self.live.poll(|_, _, _| ())?.is_complete && !self.is_stopped() {}
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: nothing else is published by it.
        self.stop.load(Ordering::Relaxed)
    }

    fn view(&mut self, length: Duration) -> View {
        let ended = self.session.ended();
        let title = match ended {
            Some(End::Status(status)) => format!("{} has ended: {status}", self.session.title),
            Some(End::Unknown) => format!("{} has ended", self.session.title),
            None => self.session.title.clone(),
        };
        let tail = self.session.output_tail(4096).unwrap_or_default();
        let last = tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let length = length.as_nanos() as u64;
        let mut view = View::of(&mut self.live, length, title, self.began.elapsed(), last);
        if self.session.source == Source::User {
            view.says_process = true;
            if view.processes + view.ended == 0 {
                view.remark.get_or_insert_with(|| NOBODY.to_owned());
            }
        }
        view
    }

    /// Prints one table, after this time or when the program ends.
    fn print(&mut self, seconds: Duration) -> Result<ExitCode> {
        self.poll()?;
        let until = Instant::now() + seconds;
        while !self.is_stopped() && Instant::now() < until && self.session.ended().is_none() {
            let rest = until.saturating_duration_since(Instant::now());
            std::thread::sleep(rest.min(Duration::from_millis(50)));
        }
        let ended = self.session.ended();
        self.poll()?;
        if self.live.processes().next().is_none() {
            if let Some(problem) = self.live.problem() {
                bail!("{problem}");
            }
            match self.session.source {
                Source::User => bail!("{NOBODY}"),
                _ if self.session.is_private() => {}
                _ => bail!("{}: no recording (a file that ends in .rings)", self.session.title),
            }
        }
        let view = self.view(seconds);
        print(&plain::table(&view))?;
        if let Some(End::Status(status)) = ended
            && !status.success()
        {
            eprintln!("waitword: {}: {status}", self.session.title);
            for line in self.session.output_tail(2048).unwrap_or_default().lines() {
                eprintln!("{}", waitword_profile::live::printable(line));
            }
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the screen until the user has seen enough.
    fn show(&mut self, interval: Duration) -> Result<ExitCode> {
        let mut terminal = ratatui::try_init().context("cannot use this terminal")?;
        let result = self.show_on(&mut terminal, interval);
        // The terminal as it was, whatever has happened. If it is gone, dropping it would print
        // that to stderr, which is gone too: a panic, before the program is ended.
        if ratatui::try_restore().is_err() {
            core::mem::forget(terminal);
        }
        result
    }

    fn show_on(
        &mut self,
        terminal: &mut ratatui::DefaultTerminal,
        interval: Duration,
    ) -> Result<ExitCode> {
        let mut screen = Screen::default();
        let events = events();
        // The first table comes sooner.
        let mut next = Instant::now() + interval.min(Duration::from_millis(500));
        // A recording may be long already.
        let reading = Paragraph::new("Reading what has been recorded so far ...");
        terminal.draw(|frame| frame.render_widget(reading, frame.area()))?;
        self.poll()?;
        screen.show(self.view(Duration::from_secs(1)));
        loop {
            if let Some(lock) = screen.wants_detail() {
                let detail = view::Detail::of(&mut self.live, lock);
                screen.show_detail(detail);
            }
            terminal.draw(|frame| screen.draw(frame))?;
            loop {
                if self.is_stopped() {
                    return Ok(ExitCode::from(crate::stop::STOPPED));
                }
                let rest = next.saturating_duration_since(Instant::now());
                if rest.is_zero() {
                    next = Instant::now() + interval;
                    self.poll()?;
                    let view = self.view(Duration::from_secs(1).max(interval));
                    if screen.show(view) {
                        break;
                    }
                    continue;
                }
                match events.recv_timeout(rest.min(LOOK)) {
                    Ok(Event::Key(key))
                        if key.kind != KeyEventKind::Release && press(&mut screen, key) =>
                    {
                        return Ok(ExitCode::SUCCESS);
                    }
                    Ok(_) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => bail!("the terminal is gone"),
                }
            }
        }
    }
}

/// The keys, and changes of the terminal's size.
///
/// Another thread reads them: if the terminal goes away, crossterm reads its end forever. That
/// thread ends with the process, which is soon, because of the signal.
fn events() -> Receiver<Event> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Does what a key means. Returns whether it ends the command.
fn press(screen: &mut Screen, key: KeyEvent) -> bool {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if with_control => return true,
        KeyCode::Char('q') => return true,
        KeyCode::Char('s') => screen.sort(Sort::next),
        KeyCode::Char('S') => screen.sort(Sort::before),
        KeyCode::Char('f' | ' ') => screen.freeze(),
        KeyCode::Char('h' | '?') => screen.help(),
        KeyCode::Enter | KeyCode::Right => screen.enter(),
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => screen.back(),
        KeyCode::Up | KeyCode::Char('k') => screen.go(-1),
        KeyCode::Down | KeyCode::Char('j') => screen.go(1),
        KeyCode::PageUp => screen.go(-10),
        KeyCode::PageDown => screen.go(10),
        KeyCode::Home => screen.go(isize::MIN),
        KeyCode::End => screen.go(isize::MAX),
        _ => {}
    }
    false
}
