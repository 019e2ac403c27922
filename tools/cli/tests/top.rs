//! `waitword top` in a real terminal (tmux), and where there is none.

mod recorded;

use recorded::{LONG, PATIENCE, Recorded, Served, compile, compile_endless, waitword};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use waitword_testkit::command::output;

/// A terminal of 120 columns and 40 lines.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Runs this command in it, and then `echo` with the command's exit status.
    fn new(place: &Path, command: &str) -> Self {
        let terminal = Self { socket: place.join("tmux") };
        let command = format!("{command}; echo \"it ended: $?\"; sleep 1000");
        let size = ["-x", "120", "-y", "40"];
        // Without the user's configuration.
        let begun = ["-f", "/dev/null", "new-session", "-d"];
        terminal.tmux(&[&begun[..], &size, &["sh", "-c", &command]].concat());
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments).env("TERM", "xterm-256color");
        let output = command.output().expect("tmux (`apt-get install tmux`)");
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
        assert!(output.status.success(), "tmux {arguments:?}: {stdout}{stderr}");
        stdout
    }

    /// The process ID of the command.
    fn top(&self) -> u32 {
        let shell = self.tmux(&["list-panes", "-F", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        std::fs::read_to_string(children).unwrap().trim().parse().unwrap()
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> Vec<String> {
        self.tmux(&["capture-pane", "-p"]).lines().map(str::to_owned).collect()
    }

    /// The screen, once it is as wanted.
    #[track_caller]
    fn until(&self, what: &str, is_it: impl Fn(&[String]) -> bool) -> Vec<String> {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_it(&screen) {
                return screen;
            }
            assert!(began.elapsed() < PATIENCE, "not {what}:\n{}", screen.join("\n"));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[track_caller]
    fn until_there_is(&self, text: &str) -> Vec<String> {
        self.until(text, |screen| screen.iter().any(|line| line.contains(text)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // In a panic, this is no time for another.
        let mut command = Command::new("tmux");
        let _ = command.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// The ID of the program, from a title like `waitword top  /tmp/convoy (4711)`.
fn id_in(title: &str) -> u32 {
    let after = title.rsplit_once('(').unwrap_or_else(|| panic!("{title}")).1;
    after.split(')').next().unwrap().parse().unwrap_or_else(|_| panic!("{title}"))
}

fn exists(id: u32) -> bool {
    Path::new("/proc").join(id.to_string()).exists()
}

/// The names of directories of ours in the directory for temporary files.
fn left_behind(place: &Path) -> usize {
    std::fs::read_dir(place)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("wait"))
        .count()
}

#[test]
fn a_convoy_is_seen_looked_into_and_ended() {
    let _watchdog = waitword_testkit::watch_for(waitword_testkit::limit(300));
    let place = tempfile::tempdir().unwrap();
    let program = compile("convoy.c", place.path());
    let temporary = place.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let command = format!(
        "TMPDIR={} {} top --interval 0.5 -- {} {LONG}",
        temporary.display(),
        waitword(),
        program.display()
    );
    let terminal = Terminal::new(place.path(), &command);
    // What a visitor wants to know is there: where, who keeps it, how much.
    let screen = terminal.until("the lock", |screen| {
        let row = screen.get(3).map_or("", |row| row);
        row.contains("thread_in_the_con") && row.contains(" s ") && !row.contains(" - ")
    });
    assert!(screen[0].starts_with("waitword top") && screen[0].contains("/convoy ("));
    assert!(screen[2].contains("LOST/s▼") && screen[2].contains("HELD BY"), "{screen:#?}");
    assert!(screen[1].contains("17 threads"), "{screen:#?}");
    let private = std::fs::read_dir(&temporary).unwrap().next().unwrap().unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(private.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let id = id_in(&screen[0]);
    assert!(exists(id));
    terminal.press(&["s"]);
    terminal.until_there_is("WAITS/s▼");
    terminal.press(&["h"]);
    terminal.until_there_is("three threads waited all the time");
    terminal.press(&["Escape"]);
    terminal.until("without help", |it| !it.iter().any(|line| line.contains("┌ Help")));
    terminal.press(&["Enter"]);
    let screen = terminal.until_there_is("Which threads");
    assert!(screen.iter().any(|line| line.contains("convoy.c:")), "{screen:#?}");
    assert!(screen[2].starts_with("mutex 0x"), "{screen:#?}");
    terminal.press(&["f"]);
    let frozen = terminal.until_there_is("FROZEN");
    // The program goes on, and the screen does not.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(terminal.screen(), frozen);
    terminal.press(&["f"]);
    terminal.until("going on", |screen| screen[0] != frozen[0] && screen[3] != frozen[3]);
    terminal.press(&["Escape"]);
    terminal.until_there_is("WAITS/s▼");
    terminal.press(&["q"]);
    terminal.until_there_is("it ended: 0");
    assert!(!exists(id), "the program goes on");
    assert_eq!(left_behind(&temporary), 0);
}

/// If the terminal is closed, nothing stays behind.
#[test]
fn with_its_terminal_it_ends_and_so_does_the_program() {
    let _watchdog = waitword_testkit::watch_for(waitword_testkit::limit(300));
    let place = tempfile::tempdir().unwrap();
    let program = compile("convoy.c", place.path());
    let command = format!("{} top -- {} {LONG}", waitword(), program.display());
    let terminal = Terminal::new(place.path(), &command);
    let screen = terminal.until_there_is("thread_in_the_con");
    let (program, top) = (id_in(&screen[0]), terminal.top());
    assert!(exists(program) && exists(top));
    drop(terminal);
    let began = Instant::now();
    while exists(program) || exists(top) {
        // Sooner than the program ends by itself.
        assert!(began.elapsed() < PATIENCE / 2, "{} {}", exists(program), exists(top));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The directory of a process that another one has started, which ends and leaves a fork behind.
#[test]
fn a_directory_is_followed_and_a_small_terminal_is_enough() {
    let _watchdog = waitword_testkit::watch_for(waitword_testkit::limit(300));
    let place = tempfile::tempdir().unwrap();
    let program = compile("holder-sleeps.c", place.path());
    let recording = place.path().join("recording");
    std::fs::create_dir(&recording).unwrap();
    let command = format!("{} top --dir {}", waitword(), recording.display());
    let terminal = Terminal::new(place.path(), &command);
    terminal.until_there_is("No thread has waited for a lock yet");
    let mut child = Command::new(waitword())
        .args(["run", "--", "sh", "-c", "\"$0\" \"$1\" & wait"])
        .arg(&program)
        .arg(LONG)
        .env("WAITWORD_RECORD", &recording)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let is_there = |screen: &[String]| {
        screen.iter().any(|it| it.contains("waiter_of_lock") && it.contains("holder_of_lock"))
    };
    terminal.until("the lock and its holder", is_there);
    terminal.tmux(&["resize-window", "-x", "60", "-y", "12"]);
    terminal.until("narrow", |screen| {
        let titles = screen.get(2).map_or("", |line| line);
        titles.contains("LOST/s") && titles.contains("HELD BY") && !titles.contains("TOTAL")
    });
    // A signal ends it too, and the terminal is usable again.
    // SAFETY: a plain call; the process is a child of our terminal's shell.
    assert_eq!(unsafe { libc::kill(terminal.top() as i32, libc::SIGTERM) }, 0);
    terminal.until_there_is("it ended: 130");
    // `sh` ends with its child, whose ID is not known here.
    drop(terminal);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
    for id in children.unwrap_or_default().split_whitespace() {
        // SAFETY: as above; a child of our own child, which has not been waited for.
        unsafe { libc::kill(id.parse().unwrap(), libc::SIGKILL) };
    }
    let _ = child.kill();
    child.wait().unwrap();
}

/// What somebody else has started is found by its ID, and among all processes of the user.
#[test]
fn a_process_that_records_is_found_and_left_alone() {
    let _watchdog = waitword_testkit::watch_for(waitword_testkit::limit(300));
    let place = tempfile::tempdir().unwrap();
    let mut recorded = Recorded::start(place.path(), "holder-sleeps.c");
    let id = recorded.id();
    let (status, stdout, stderr) = plain(&["--pid", &id, "--seconds", "1"]);
    assert_eq!((status, &*stderr), (Some(0), ""), "{stdout}");
    let title = format!("holder-sleeps ({id}): ");
    assert!(stdout.starts_with(&title) && stdout.contains("< holder_of_lock"), "{stdout}");
    let (status, stdout, stderr) = plain(&["--once"]);
    assert_eq!((status, &*stderr), (Some(0), ""), "{stdout}");
    let row = stdout.lines().find(|it| it.contains(&format!("| {id} holder-sleeps ")));
    assert!(row.is_some_and(|row| row.contains("< waiter_of_lock")), "{stdout}");
    // In a terminal: Ctrl-C ends the command, and not the program.
    let command = format!("{} top; {0} top --pid {id}", waitword());
    let terminal = Terminal::new(place.path(), &command);
    let screen = terminal.until_there_is("waiter_of_lock");
    assert!(screen[0].contains("all processes of this user"), "{screen:#?}");
    assert!(screen[2].contains("PROCESS"), "{screen:#?}");
    terminal.press(&["C-c"]);
    terminal.until("the other one", |screen| screen[0].contains(&title[..title.len() - 2]));
    terminal.until_there_is("waiter_of_lock");
    terminal.tmux(&["resize-window", "-x", "15", "-y", "12"]);
    terminal.until_there_is("too small");
    terminal.tmux(&["resize-window", "-x", "120", "-y", "12"]);
    recorded.end();
    // What was shown stays.
    let screen = terminal.until_there_is("has ended");
    assert!(screen.iter().any(|line| line.contains("waiter_of_lock")), "{screen:#?}");
    terminal.press(&["q"]);
    terminal.until_there_is("it ended: 0");
}

/// No wait of the cycle ends, so the recording has no stack of it.
#[test]
fn threads_of_a_deadlock_are_seen_where_they_wait() {
    let _watchdog = waitword_testkit::watch_for(waitword_testkit::limit(300));
    let place = tempfile::tempdir().unwrap();
    let program = compile("deadlock-abba.c", place.path());
    let terminal =
        Terminal::new(place.path(), &format!("{} top -- {}", waitword(), program.display()));
    terminal.until("the locks", |screen| {
        screen.iter().filter(|line| line.contains("wants_the_next_lock")).count() >= 3
    });
    terminal.press(&["q"]);
    terminal.until_there_is("it ended: 0");
}

/// What does not record is made to, for as long as it is looked at.
#[test]
fn a_process_on_the_drop_in_records_while_it_is_followed() {
    let _watchdog = waitword_testkit::watch_for(waitword_testkit::limit(300));
    let place = tempfile::tempdir().unwrap();
    let mut program = Served::start(&compile_endless(place.path()), "contended");
    let id = program.id();
    assert!(!program.records());
    let (status, stdout, stderr) = plain(&["--pid", &id, "--seconds", "2"]);
    assert_eq!((status, &*stderr), (Some(0), ""), "{stdout}");
    let title = format!("program ({id})");
    assert!(stdout.starts_with(&format!("{title}: ")), "{stdout}");
    assert!(
        stdout.contains("wants_the_mutex") && stdout.contains("sleeps_with_the_mutex"),
        "{stdout}"
    );
    program.until_it_is_left_alone();
    // A key, Ctrl-C, and the end of the process.
    let follow = format!("{} top --pid {id}", waitword());
    let command = format!("for n in 1 2; do {follow}; echo \"$n: $?\"; read line; done; {follow}");
    let terminal = Terminal::new(place.path(), &command);
    for (key, ended) in [("q", "1: 0"), ("C-c", "2: 0")] {
        terminal.until("the lock", |screen| {
            screen[0].contains(&title) && screen.iter().any(|it| it.contains("wants_the_mutex"))
        });
        assert!(program.records());
        terminal.press(&[key]);
        terminal.until_there_is(ended);
        program.until_it_is_left_alone();
        terminal.press(&["Enter"]);
    }
    terminal.until_there_is("wants_the_mutex");
    program.end();
    let screen = terminal.until_there_is("has ended");
    assert!(screen.iter().any(|line| line.contains("wants_the_mutex")), "{screen:#?}");
    terminal.press(&["q"]);
    terminal.until_there_is("it ended: 0");
}

#[test]
fn a_process_that_cannot_be_made_to_record_is_left_alone_and_another_command_named() {
    let _watchdog = waitword_testkit::watch_for(waitword_testkit::limit(300));
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new("sleep");
    let mut child = command.arg("1000").spawn().unwrap();
    let id = child.id().to_string();
    let (status, _, stderr) = plain(&["--pid", &id, "--once"]);
    assert!(status == Some(2) && stderr.contains("does not run on waitword"), "{stderr}");
    assert!(stderr.contains("\n  waitword profile -- sleep 1000\n"), "{stderr}");
    assert!(stderr.ends_with(&format!("\n  waitword profile --pid {id}\n")), "{stderr}");
    child.kill().unwrap();
    child.wait().unwrap();
    let program = compile_endless(place.path());
    let mut filtered = Served::start(&program, "filtered");
    let began = Instant::now();
    while !has_filter(&filtered.id()) {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    let (status, _, stderr) = plain(&["--pid", &filtered.id(), "--once"]);
    assert!(status == Some(2) && stderr.contains("(--force: begin all the same)"), "{stderr}");
    // It may not make files.
    let (status, _, stderr) = plain(&["--pid", &filtered.id(), "--once", "--force"]);
    assert!(status == Some(2) && stderr.contains("Operation not permitted"), "{stderr}");
    filtered.until_it_is_left_alone();
    // Nobody locks anything.
    let mut idle = Served::start(&program, "idle");
    let (status, _, stderr) = plain(&["--pid", &idle.id(), "--once"]);
    assert!(status == Some(2) && stderr.contains("has locked or unlocked anything"), "{stderr}");
    assert!(stderr.contains(&format!("\n  waitword deadlock --pid {}\n", idle.id())), "{stderr}");
    idle.until_it_is_left_alone();
}

/// Whether the process has more system call filters than this one.
fn has_filter(pid: &str) -> bool {
    let count = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let value = |name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        [value("Seccomp:"), value("Seccomp_filters:")]
            .map(|value| value.trim().parse::<u32>().unwrap())
    };
    count(pid) > count("self")
}

fn plain(arguments: &[&str]) -> (Option<i32>, String, String) {
    let _watchdog = waitword_testkit::watch();
    let mut command = Command::new(waitword());
    let output = output(command.arg("top").args(arguments));
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    (output.status.code(), stdout, stderr)
}

#[test]
fn without_a_terminal_a_table_is_printed() {
    let place = tempfile::tempdir().unwrap();
    let program = compile("holder-computes.c", place.path());
    let program = program.to_str().unwrap();
    let file = place.path().join("output");
    let output = ["--output", file.to_str().unwrap()];
    // It ends by itself.
    let arguments = [&["--seconds", "60"][..], &output, &["--", program, "0.5"]].concat();
    let (status, stdout, stderr) = plain(&arguments);
    assert_eq!((status, &*stderr), (Some(0), ""), "{stdout}");
    let row = stdout.lines().find(|line| line.contains("| mutex 0x")).expect(&stdout);
    assert!(row.contains("< waiter_of_lock holder-computes.c:"), "{stdout}");
    assert!(row.contains("< holder_of_lock holder-computes.c:"), "{stdout}");
    // The program's own words, and its own clock.
    let written = std::fs::read_to_string(&file).unwrap();
    let own = written.lines().find_map(|line| line.strip_prefix("wait waiter_of_lock "));
    let own: f64 = own.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    let total = row.split('|').nth(5).unwrap().trim();
    let (number, unit) = total.split_once(' ').unwrap();
    let total = number.parse::<f64>().unwrap() * if unit == "s" { 1e9 } else { 1e6 };
    assert!((total - own).abs() <= own * 0.05, "{total} and {own}: {stdout}");
}

#[test]
fn what_cannot_be_shown_is_said() {
    let (status, _, stderr) = plain(&["--dir", "/no/such/directory"]);
    assert!(status == Some(2) && stderr.contains("/no/such/directory"), "{stderr}");
    let (status, _, stderr) = plain(&["--", "/no/such/program"]);
    assert!(status == Some(2) && stderr.contains("/no/such/program: not found"), "{stderr}");
    let (status, _, stderr) = plain(&["--interval", "0", "--", "true"]);
    assert!(status == Some(2) && stderr.contains("--interval"), "{stderr}");
    let (status, _, stderr) = plain(&["--pid", &i32::MAX.to_string()]);
    assert!(status == Some(2) && stderr.contains("there is no process"), "{stderr}");
    let place = tempfile::tempdir().unwrap();
    let (status, _, stderr) = plain(&["--dir", place.path().to_str().unwrap(), "--once"]);
    assert!(status == Some(2) && stderr.contains("no recording"), "{stderr}");
    std::fs::write(place.path().join("1.2.rings"), [1; 5000]).unwrap();
    let (status, _, stderr) = plain(&["--dir", place.path().to_str().unwrap(), "--once"]);
    assert!(status == Some(2) && stderr.contains("not a recording"), "{stderr}");
    // A program that fails: its last words.
    let (status, stdout, stderr) = plain(&["--", "sh", "-c", "echo its last words; exit 3"]);
    assert!(status == Some(1) && stderr.contains("its last words"), "{stdout}{stderr}");
    assert!(stdout.contains("No thread has waited for a lock."), "{stdout}");
}
