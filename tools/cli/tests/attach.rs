//! `waitword profile --pid` on a program that runs on the drop-in: it records from then on, and
//! goes on as before when that has ended, however it has ended.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;
use waitword_profile::attach::{Attached, Refusal, Request};
use waitword_profile::read::{Process, read};
use waitword_record::format::Object;
use waitword_testkit::command::{output, texts};
use waitword_testkit::{limit, watch_for};

const REQUEST: Request =
    Request { threshold: 10_000, patience: Duration::from_secs(20), despite_filter: false };
/// `nobody`, and another ordinary user.
const NOBODY: u32 = 65534;
const ANOTHER: u32 = 65533;

fn begin(pid: u32, request: Request) -> Result<Attached, Refusal> {
    Attached::begin(pid, request, &AtomicBool::new(false))
}

fn is_root() -> bool {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn waitword(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    command.args(arguments);
    command
}

/// `program.c` on the drop-in; killed at the end.
struct Running {
    place: TempDir,
    child: Child,
}

impl Running {
    fn start(mode: &str) -> Self {
        Self::start_by(mode, |program| {
            let mut command = waitword(&["run", "--"]);
            command.arg(program);
            command
        })
    }

    /// `command` runs the program of this name.
    fn start_by(mode: &str, command: impl FnOnce(&Path) -> Command) -> Self {
        let place = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(), open).unwrap();
        let program = place.path().join("program");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attach/program.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(source);
        texts(output(&mut compiler));
        let stdout = std::fs::File::create(place.path().join("stdout")).unwrap();
        let mut command = command(&program);
        let child = command.arg(mode).stdin(Stdio::null()).stdout(stdout).process_group(0);
        let mut this = Self { child: child.spawn().unwrap(), place };
        this.goes_on();
        this
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn said(&self) -> u64 {
        std::fs::metadata(self.place.path().join("stdout")).unwrap().len()
    }

    /// Waits until threads of it have had the lock some times.
    fn goes_on(&mut self) {
        let before = self.said();
        while self.said() < before + 4 {
            assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn records(&self) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        maps.contains(".rings")
    }

    fn signal(&self, number: i32) {
        // SAFETY: plain numbers; the process is a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, number) }, 0);
    }

    /// Asks for a refusal, and for a program that goes on without a recording.
    fn refuses(&mut self, request: Request) -> Refusal {
        let refusal = begin(self.pid(), request).expect_err("a refusal");
        assert!(!self.records());
        refusal
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the group of a child that has not been waited for.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// Waits until the recording has waits for this kind of object, of the process with this ID.
fn until_waits(directory: &Path, pid: Option<u32>, object: Object) -> Process {
    loop {
        let processes = read(directory).unwrap_or_default();
        let has = |process: &Process| {
            let mut waits = process.waits.iter();
            pid.is_none_or(|pid| process.pid == pid)
                && waits.any(|(_, wait)| wait.object() == Some(object) && wait.took > 2_000_000)
        };
        if let Some(process) = processes.into_iter().find(has) {
            return process;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn shows_sites(text: &str) {
    let sites = [
        ("wants_the_mutex (", "kept by sleeps_with_the_mutex ("),
        ("wants_to_read (", "kept by sleeps_with_the_rwlock ("),
    ];
    for (waiter, holder) in sites {
        let mut lines = text.lines().skip_while(|line| !line.contains(waiter));
        assert!(lines.next().is_some_and(|line| line.contains("program.c:")), "{waiter}: {text}");
        let kept = lines.next().unwrap_or_default();
        assert!(kept.contains(holder) && kept.contains("program.c:"), "{holder}: {text}");
        assert!(kept.contains("asleep in clock_nanosleep"), "{holder}: {text}");
    }
    assert!(text.contains("sleeps_on_a_word ("), "{text}");
}

#[test]
fn a_running_program_is_recorded_again_and_again() {
    let _watchdog = watch_for(limit(180));
    let mut program = Running::start("contended");
    let pid = program.pid().to_string();
    let kept = program.place.path().join("kept");
    for round in 0..2 {
        let mut command = waitword(&["profile", "--pid", &pid, "--seconds", "3"]);
        if round == 0 {
            command.arg("-o").arg(&kept);
        }
        let (shown, _) = texts(output(&mut command));
        shows_sites(&shown);
        program.goes_on();
        assert!(!program.records());
    }
    for entry in std::fs::read_dir(&kept).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
    assert_eq!(read(&kept).unwrap()[0].pid.to_string(), pid);
    // Nothing stays where both could write.
    let mut attached = begin(program.pid(), REQUEST).unwrap();
    let inside = std::fs::read_link(attached.directory()).unwrap();
    let directory = std::fs::metadata(&inside).unwrap();
    assert_eq!(directory.mode() & 0o777, 0o700);
    // One at a time.
    assert!(matches!(begin(program.pid(), REQUEST), Err(Refusal::Busy)));
    until_waits(attached.directory(), None, Object::Mutex);
    until_waits(attached.directory(), None, Object::Futex);
    attached.end();
    program.goes_on();
    // What was recorded stays until this is dropped.
    assert!(!program.records() && !read(attached.directory()).unwrap()[0].waits.is_empty());
    drop(attached);
    assert!(!inside.exists());
}

/// Starts a command that records the program for long, and kills it once it does. Its directory
/// stays.
fn kill_a_tool(program: &Running) -> PathBuf {
    let mut tool = waitword(&["profile", "--pid", &program.pid().to_string(), "--seconds", "3600"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !program.records() {
        std::thread::sleep(Duration::from_millis(10));
    }
    tool.kill().unwrap();
    tool.wait().unwrap();
    rings_of(program.pid()).parent().unwrap().to_owned()
}

#[test]
fn a_killed_tool_leaves_a_program_that_soon_records_no_more() {
    let _watchdog = watch_for(limit(180));
    let mut program = Running::start("contended");
    let first = kill_a_tool(&program);
    program.goes_on();
    // Another one need not wait for the end.
    let attached = begin(program.pid(), REQUEST).unwrap();
    until_waits(attached.directory(), None, Object::Mutex);
    drop(attached);
    program.goes_on();
    assert!(!program.records());

    let second = kill_a_tool(&program);
    while program.records() {
        program.goes_on();
    }
    program.goes_on();
    [first, second].iter().for_each(|directory| std::fs::remove_dir_all(directory).unwrap());
}

/// A rings file that a process has mapped.
fn rings_of(pid: u32) -> PathBuf {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps.lines().find(|line| line.ends_with(".rings")).expect("a rings file");
    line[line.find('/').unwrap()..].into()
}

#[test]
fn a_tool_that_is_told_to_stop_shows_what_there_is() {
    let _watchdog = watch_for(limit(180));
    let mut program = Running::start("contended");
    let tool = waitword(&["profile", "--pid", &program.pid().to_string(), "--seconds", "3600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !program.records() {
        std::thread::sleep(Duration::from_millis(10));
    }
    until_waits(rings_of(program.pid()).parent().unwrap(), None, Object::Mutex);
    // SAFETY: plain numbers; the process is a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(tool.id() as i32, libc::SIGINT) }, 0);
    let (shown, _) = texts(tool.wait_with_output().unwrap());
    assert!(shown.contains("wants_the_mutex ("), "{shown}");
    program.goes_on();
    assert!(!program.records());
}

#[test]
fn a_request_that_nobody_follows_is_taken_back() {
    let _watchdog = watch_for(limit(180));
    let mut program = Running::start("idle");
    let short = Request { patience: Duration::from_millis(300), ..REQUEST };
    assert!(matches!(program.refuses(short), Refusal::NobodyFollowed(_)));
    let pid = program.pid().to_string();
    let mut command = waitword(&["profile", "--pid", &pid, "--seconds", "1"]);
    let (shown, said) = texts(output(&mut command));
    assert!(said.contains("no thread of it has locked or unlocked anything for 1s"), "{said}");
    assert!(shown.contains("These are estimates."), "{shown}");
    // Its first lock finds that nothing is wanted any more.
    program.signal(libc::SIGUSR1);
    program.goes_on();
    assert!(!program.records());
    begin(program.pid(), REQUEST).unwrap();
}

#[test]
fn forked_children_are_recorded_too_and_end_with_their_parent() {
    let _watchdog = watch_for(limit(180));
    let mut program = Running::start("forks");
    let mut attached = begin(program.pid(), REQUEST).unwrap();
    until_waits(attached.directory(), Some(program.pid()), Object::Mutex);
    program.signal(libc::SIGUSR1);
    let child = loop {
        let path = format!("/proc/{0}/task/{0}/children", program.pid());
        let children = std::fs::read_to_string(path).unwrap();
        if let Some(child) = children.split_whitespace().next() {
            break child.parse().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    until_waits(attached.directory(), Some(child), Object::Mutex);
    let records = || {
        let maps = std::fs::read_to_string(format!("/proc/{child}/maps")).unwrap();
        // Its parent's are mapped as well.
        maps.contains(&format!("/{child}."))
    };
    assert!(records());
    attached.end();
    program.goes_on();
    assert!(!program.records());
    while records() {
        program.goes_on();
    }
}

#[test]
fn a_program_that_may_not_make_files_says_so_and_goes_on() {
    let _watchdog = watch_for(limit(180));
    let mut program = Running::start("filtered");
    // A filter might as well kill it.
    assert!(matches!(program.refuses(REQUEST), Refusal::Filtered));
    let forced = Request { despite_filter: true, ..REQUEST };
    match program.refuses(forced) {
        Refusal::Failed(why) => assert!(why.contains("Operation not permitted"), "{why}"),
        other => panic!("{other:?}"),
    }
    program.goes_on();
    let pid = program.pid().to_string();
    let mut command = waitword(&["profile", "--pid", &pid, "--seconds", "1", "--force"]);
    let (shown, said) = texts(output(&mut command));
    assert!(said.contains("it cannot make files: Operation not permitted"), "{said}");
    assert!(shown.contains("These are estimates."), "{shown}");
    program.goes_on();
}

#[test]
fn processes_that_are_gone_or_do_not_run_on_waitword_are_refused() {
    let _watchdog = watch_for(limit(180));
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    match begin(child.id(), REQUEST) {
        Err(Refusal::Denied(why)) => assert!(why.contains("there is no process"), "{why}"),
        other => panic!("{other:?}"),
    }
    let mut off = Running::start_by("contended", |program| {
        let mut command = waitword(&["run", "--"]);
        command.arg(program).env("WAITWORD", "off");
        command
    });
    assert!(matches!(off.refuses(REQUEST), Refusal::Unserved));
    let mut plain = Running::start_by("contended", |program| Command::new(program));
    assert!(matches!(plain.refuses(REQUEST), Refusal::Unserved));
    plain.goes_on();
    // It ends while it is recorded.
    let program = Running::start("contended");
    let attached = begin(program.pid(), REQUEST).unwrap();
    until_waits(attached.directory(), None, Object::Mutex);
    drop(program);
    assert!(attached.has_ended());
    assert!(!read(attached.directory()).unwrap()[0].waits.is_empty());
}

#[test]
fn a_program_that_records_by_itself_is_left_to_it() {
    let _watchdog = watch_for(limit(180));
    let recording = tempfile::tempdir().unwrap();
    let program = Running::start_by("contended", |program| {
        let mut command = waitword(&["run", "--"]);
        command.arg(program).env("WAITWORD_RECORD", recording.path());
        command
    });
    match begin(program.pid(), REQUEST) {
        Err(Refusal::RecordsAlready(directory)) => assert_eq!(directory, recording.path()),
        other => panic!("{other:?}"),
    }
    let pid = program.pid().to_string();
    let mut command = waitword(&["profile", "--pid", &pid, "--seconds", "2"]);
    let (shown, _) = texts(output(&mut command));
    assert!(shown.contains("wants_the_mutex (") && shown.contains("It records already"), "{shown}");
}

#[test]
fn another_user_s_program_is_denied_to_all_but_root() {
    let _watchdog = watch_for(limit(180));
    if !is_root() {
        println!("only root can start programs of several users");
        return;
    }
    let mut program = Running::start_by("contended", |program| {
        let mut command = waitword(&["run", "--"]);
        command.arg(program).uid(NOBODY).gid(NOBODY).env("XDG_CACHE_HOME", "/nowhere");
        command
    });
    // The built command may be where other users cannot come.
    let copy = program.place.path().join("waitword");
    std::fs::copy(env!("CARGO_BIN_EXE_waitword"), &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(["profile", "--seconds", "1", "--pid", &program.pid().to_string()]);
    let denied = output(command.uid(ANOTHER).gid(ANOTHER));
    let said = String::from_utf8_lossy(&denied.stderr);
    assert!(said.contains("only root may look into it"), "{said}");
    assert_eq!(denied.status.code(), Some(2));
    program.goes_on();
    let attached = begin(program.pid(), REQUEST).unwrap();
    until_waits(attached.directory(), None, Object::Mutex);
    assert_eq!(std::fs::metadata(attached.directory()).unwrap().uid(), NOBODY);
}

#[test]
fn a_program_with_other_mounts_is_recorded_where_it_can_write() {
    let _watchdog = watch_for(limit(180));
    let mut may = Command::new("unshare");
    if !is_root() || !output(may.args(["-m", "true"])).status.success() {
        println!("no mount namespace can be made here");
        return;
    }
    let built = env!("CARGO_BIN_EXE_waitword");
    let program = Running::start_by("contended", |program| {
        // What is below /tmp disappears, but not from the directory that is open. What the program
        // has there is not here.
        let script = "cd \"$1\" && mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /var/tmp && \
                      cp waitword program /tmp && cd /tmp && \
                      exec ./waitword run -- ./program \"$2\"";
        let directory = program.parent().unwrap();
        std::fs::copy(built, directory.join("waitword")).unwrap();
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(directory);
        command
    });
    // Its functions have names all the same.
    let pid = program.pid().to_string();
    let (shown, _) = texts(output(&mut waitword(&["profile", "--pid", &pid, "--seconds", "2"])));
    shows_sites(&shown);
    let (shown, _) = texts(output(&mut waitword(&["top", "--pid", &pid, "--seconds", "2"])));
    assert!(shown.contains("wants_the_mutex program.c:"), "{shown}");
    let attached = begin(program.pid(), REQUEST).unwrap();
    until_waits(attached.directory(), None, Object::Mutex);
    let inside = rings_of(program.pid());
    assert!(inside.starts_with("/tmp") && !inside.exists(), "{}", inside.display());
    // The mounts go with the program; the recording can still be read.
    drop(program);
    assert!(!read(attached.directory()).unwrap()[0].waits.is_empty());
}
