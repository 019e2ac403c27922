//! `waitword deadlock`, `profile --watch` and `profile --pid` on programs whose answer is known
//! (`tools/truth`), with and without frame pointers, as root and as an ordinary user; and that the
//! program does not notice.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use waitword_testkit::command::output;
use waitword_testkit::{limit, watch_for};

/// An ordinary user: `nobody`.
const NOBODY: u32 = 65534;

/// How a program is compiled and run.
#[derive(Clone, Copy, Debug)]
struct Way {
    frame_pointers: &'static str,
    as_nobody: bool,
}

const WAYS: [Way; 2] = [
    Way { frame_pointers: "-fno-omit-frame-pointer", as_nobody: false },
    Way { frame_pointers: "-fomit-frame-pointer", as_nobody: true },
];

/// A program that hangs: its answers that name a thread that waits and the one that it waits for,
/// the function that waits, and what the first line says.
struct Hanging {
    source: &'static str,
    waits_for: &'static [(&'static str, &'static str)],
    function: &'static str,
    says: &'static str,
}

const HANGING: [Hanging; 3] = [
    Hanging {
        source: "deadlock-abba.c",
        waits_for: &[
            ("holds_a_wants_b", "holds_b_wants_c"),
            ("holds_b_wants_c", "holds_c_wants_a"),
            ("holds_c_wants_a", "holds_a_wants_b"),
        ],
        function: "wants_the_next_lock (",
        says: "deadlock: 3 of 101 threads wait for each other",
    },
    Hanging {
        source: "deadlock-self.c",
        waits_for: &[("holds_and_wants", "holds_and_wants")],
        function: "locks_what_it_holds (",
        says: "waits for a lock that it holds itself",
    },
    Hanging {
        source: "holder-ended.c",
        waits_for: &[("waiter", "ended_holder")],
        function: "waiter_of_ended_holder (",
        says: "forgotten unlock: ",
    },
];

fn is_root() -> bool {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The command, or a program, with the user of this way.
fn with_user(way: Way, program: &Path) -> Command {
    let mut command = Command::new(program);
    if way.as_nobody && is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// A place that every user may use, with a program.
struct Place {
    way: Way,
    directory: TempDir,
}

impl Place {
    fn new(way: Way) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open).unwrap();
        Self { way, directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn compile(&self, source: &Path) -> PathBuf {
        let program = self.path("program");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g", "-pthread", self.way.frame_pointers, "-o"]);
        let compiled = output(compiler.arg(&program).arg(source));
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    }

    fn truth(&self, source: &str) -> PathBuf {
        self.compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../truth").join(source))
    }

    fn waitword(&self) -> Command {
        let built = Path::new(env!("CARGO_BIN_EXE_waitword"));
        if !(self.way.as_nobody && is_root()) {
            return Command::new(built);
        }
        // An ordinary user may not come to where it was built.
        let copy = self.path("waitword");
        if !copy.exists() {
            std::fs::copy(built, &copy).unwrap();
        }
        let mut command = with_user(self.way, &copy);
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    /// The answer of `waitword deadlock`, and the exit status.
    fn deadlock(&self, pid: u32, arguments: &[&str]) -> (String, ExitStatus) {
        let mut command = self.waitword();
        command.arg("deadlock").arg("--pid").arg(pid.to_string()).args(arguments);
        let ended = output(&mut command);
        let [stdout, stderr] =
            [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        (stdout + &stderr, ended.status)
    }
}

/// A program that runs; killed at the end.
struct Running {
    child: Child,
    stdout: PathBuf,
}

impl Running {
    fn start(place: &Place, mut command: Command) -> Self {
        let stdout = place.path("stdout");
        let file = std::fs::File::create(&stdout).unwrap();
        let child = command.stdin(Stdio::null()).stdout(file).process_group(0).spawn().unwrap();
        Self { child, stdout }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.stdout).unwrap()
    }

    fn wait_until_ready(&mut self) {
        while !self.said().ends_with("ready\n") {
            assert_eq!(self.child.try_wait().unwrap(), None, "{}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The value of `answer KEY VALUE`.
    fn answer(&self, key: &str) -> u32 {
        let before = format!("answer {key} ");
        let said = self.said();
        let value = said.lines().find_map(|line| line.strip_prefix(&before)?.parse().ok());
        value.unwrap_or_else(|| panic!("{key}: {said}"))
    }

    /// The process of a thread: the child, or one that the child has started.
    fn process_of(thread: u32) -> u32 {
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
        let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
        process.unwrap().trim().parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the group of a child that has not been waited for.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// Whether the threads of the program are named, with what each waits for, and their stacks.
fn check_answer(hanging: &Hanging, program: &Running, shown: &str) {
    let first = shown.lines().next().unwrap_or_default();
    assert!(first.contains(hanging.says), "{}: {shown}", hanging.source);
    for (waiter, holder) in hanging.waits_for {
        let (waiter, holder) = (program.answer(waiter), program.answer(holder));
        let start = format!("thread {waiter} (");
        let line = shown.lines().find(|line| line.starts_with(&start)).expect(shown);
        let held = if holder == waiter {
            ", held by itself".to_owned()
        } else {
            format!(", held by thread {holder} (")
        };
        assert!(line.contains(" waits for the ") && line.contains(&held), "{line}");
        let from = shown.find(line).unwrap();
        let stack = shown[from..].lines().skip(1).take_while(|line| line.starts_with("    #"));
        let stack: Vec<&str> = stack.collect();
        assert!(stack.iter().any(|it| it.contains(hanging.function)), "{shown}");
        // To the function that the C library starts a thread with.
        assert!(stack.len() >= 3, "{shown}");
        assert!(stack.iter().any(|it| it.contains(".c:")), "{shown}");
    }
}

#[test]
fn what_hangs_is_found_and_named_in_any_program_on_glibc() {
    let _watchdog = watch_for(limit(180));
    for way in WAYS {
        for hanging in &HANGING {
            let place = Place::new(way);
            let program = place.truth(hanging.source);
            let mut program = Running::start(&place, with_user(way, &program));
            program.wait_until_ready();
            let pid = program.child.id();
            // On a busy machine the command may have no CPU for long.
            let took = (0..5).map(|_| {
                let began = Instant::now();
                let (shown, status) = place.deadlock(pid, &[]);
                assert_eq!(status.code(), Some(1), "{shown}");
                check_answer(hanging, &program, &shown);
                assert!(shown.contains("(by glibc's object)"), "{shown}");
                began.elapsed()
            });
            assert!(took.min() < Some(Duration::from_secs(1)), "{}", hanging.source);
            let (json, _) = place.deadlock(pid, &["--json"]);
            let json: serde_json::Value = serde_json::from_str(&json).expect(&json);
            let found = json["findings"][0]["threads"].as_array().unwrap();
            assert_eq!(found.len(), hanging.waits_for.len(), "{json}");
            assert_eq!(program.child.try_wait().unwrap(), None, "it goes on");
        }
    }
}

#[test]
fn what_hangs_is_found_in_a_program_that_records() {
    let _watchdog = watch_for(limit(180));
    for way in WAYS {
        for hanging in &HANGING {
            let place = Place::new(way);
            let program = place.truth(hanging.source);
            let mut command = place.waitword();
            command.args(["profile", "--"]).arg(program).stderr(Stdio::null());
            let mut program = Running::start(&place, command);
            program.wait_until_ready();
            let pid = Running::process_of(program.answer(hanging.waits_for[0].0));
            let (shown, status) = place.deadlock(pid, &[]);
            assert_eq!(status.code(), Some(1), "{shown}");
            check_answer(hanging, &program, &shown);
            assert!(shown.contains("(by the recording)"), "{shown}");
        }
    }
}

#[test]
fn what_hangs_is_printed_while_the_program_runs() {
    let _watchdog = watch_for(limit(180));
    for way in WAYS {
        for hanging in &HANGING {
            let place = Place::new(way);
            let program = place.truth(hanging.source);
            let mut command = place.waitword();
            let stderr = place.path("stderr");
            command.args(["profile", "--watch", "1", "--"]).arg(program);
            command.stderr(std::fs::File::create(&stderr).unwrap());
            let mut program = Running::start(&place, command);
            program.wait_until_ready();
            let said = || std::fs::read_to_string(&stderr).unwrap();
            let pid = Running::process_of(program.answer(hanging.waits_for[0].0));
            let start = format!("waitword: process {pid}: ");
            while !said().contains(&start) {
                assert_eq!(program.child.try_wait().unwrap(), None, "{}", said());
                std::thread::sleep(Duration::from_millis(20));
            }
            // It is not printed again. (A look comes every second.)
            std::thread::sleep(Duration::from_millis(2500));
            // SAFETY: plain numbers; the program is one that this test has started.
            assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGTERM) }, 0);
            let status = program.child.wait().unwrap();
            // The exit status is the program's, though its first thread was looked at.
            assert_eq!(status.code(), Some(128 + libc::SIGTERM), "{}", said());
            let said = said();
            assert_eq!(said.matches(&start).count(), 1, "{said}");
            let from = said.find(&start).unwrap() + start.len();
            check_answer(hanging, &program, &said[from..]);
        }
    }
}

#[test]
fn a_writer_that_readers_starve_is_found() {
    let _watchdog = watch_for(limit(180));
    let place = Place::new(WAYS[0]);
    let program = place.truth("starved-writer.c");
    // For twenty seconds.
    let mut command = with_user(place.way, &program);
    command.arg("10");
    let mut program = Running::start(&place, command);
    // The writer comes when the readers are there.
    let shown = loop {
        assert_eq!(program.child.try_wait().unwrap(), None, "it was not found");
        let (shown, status) = place.deadlock(program.child.id(), &[]);
        if status.code() != Some(0) {
            break shown;
        }
    };
    let start = "starved writer: thread ";
    assert!(shown.starts_with(start) && shown.contains("starved_writer ("), "{shown}");
}

#[test]
fn nothing_is_found_where_nothing_hangs() {
    let _watchdog = watch_for(limit(180));
    for source in ["idle-workers.c", "convoy.c", "holder-sleeps.c", "herd.c"] {
        for records in [false, true] {
            let place = Place::new(WAYS[0]);
            let program = place.truth(source);
            let mut command = if records { place.waitword() } else { Command::new(&program) };
            if records {
                command.args(["profile", "--"]).arg(&program).stderr(Stdio::null());
            }
            let mut program = Running::start(&place, command);
            // Until it has ended: it is looked at in all its states.
            let mut looks = 0;
            while program.child.try_wait().unwrap().is_none() {
                let children = format!("/proc/{0}/task/{0}/children", program.child.id());
                let children = std::fs::read_to_string(children).unwrap_or_default();
                let child = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
                // The program is a child of the command that records.
                let pid = if records { child } else { Some(program.child.id()) };
                let Some(pid) = pid else {
                    continue;
                };
                let (shown, status) = place.deadlock(pid, &[]);
                if status.code() != Some(2) {
                    assert_eq!(status.code(), Some(0), "{source}: {shown}");
                    assert!(shown.starts_with("no deadlock found"), "{source}: {shown}");
                    looks += 1;
                }
            }
            assert!(looks > 0, "{source}");
        }
    }
}

/// Two threads that want each other's mutex, and give up in the end.
const TIMED: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;
static void *locker(void *first) {
    int own = first != NULL;
    struct timespec limit;
    pthread_mutex_lock(&mutexes[own]);
    pthread_barrier_wait(&both);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 300;
    if (own) puts("ready"), fflush(stdout);
    pthread_mutex_timedlock(&mutexes[!own], &limit);
    return NULL;
}
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, locker, &both);
    locker(NULL);
    pthread_join(thread, NULL);
}
"#;

#[test]
fn threads_that_give_up_in_the_end_are_no_deadlock() {
    let _watchdog = watch_for(limit(180));
    for records in [false, true] {
        let place = Place::new(WAYS[0]);
        let source = place.path("timed.c");
        std::fs::write(&source, format!("#define _GNU_SOURCE\n{TIMED}")).unwrap();
        let program = place.compile(&source);
        let mut command = Command::new(program);
        if records {
            let library = output(place.waitword().arg("preload"));
            let library = String::from_utf8(library.stdout).unwrap();
            command.env("LD_PRELOAD", library.trim()).env("WAITWORD_RECORD", place.path(""));
        }
        let mut program = Running::start(&place, command);
        program.wait_until_ready();
        // Until both are seen to wait.
        loop {
            let (shown, status) = place.deadlock(program.child.id(), &["--all"]);
            assert_eq!(status.code(), Some(0), "{shown}");
            if shown.contains(": 2 of 2 threads wait for locks") {
                assert!(!records || shown.contains("(by the recording)"), "{shown}");
                break;
            }
        }
    }
}

/// A thread that waits for an event in a call that a stop would end with EINTR, one in such a call
/// with a timeout, and one that hangs.
const EVENTS: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *poller(void *unused) {
    struct epoll_event event;
    if (epoll_wait(epoll_create1(0), &event, 1, -1) < 0) _exit(40);
    return unused;
}
static void *taker(void *unused) {
    struct sembuf take = {0, -1, 0};
    int set = semget(IPC_PRIVATE, 1, 0600);
    struct timespec limit = {300, 0};
    int result = semtimedop(set, &take, 1, &limit);
    _exit(result < 0 && errno == EINTR ? 41 : 42);
    return unused;
}
static void *locker(void *unused) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
    return unused;
}
int main(void) {
    pthread_t thread;
    alarm(120);
    pthread_create(&thread, NULL, poller, NULL);
    pthread_create(&thread, NULL, taker, NULL);
    pthread_create(&thread, NULL, locker, NULL);
    puts("ready");
    fflush(stdout);
    pthread_join(thread, NULL);
}
"#;

#[test]
fn a_thread_that_waits_for_an_event_does_not_notice() {
    let _watchdog = watch_for(limit(180));
    let place = Place::new(WAYS[0]);
    let source = place.path("events.c");
    std::fs::write(&source, format!("#define _GNU_SOURCE\n#include <time.h>\n{EVENTS}")).unwrap();
    let program = place.compile(&source);
    let mut program = Running::start(&place, Command::new(program));
    program.wait_until_ready();
    let pid = program.child.id();
    while place.deadlock(pid, &[]).1.code() != Some(1) {}
    for _ in 0..5 {
        let (shown, status) = place.deadlock(pid, &["--all"]);
        assert_eq!(status.code(), Some(1), "{shown}");
    }
    let profiled =
        output(place.waitword().args(["profile", "--seconds", "1", "--pid"]).arg(pid.to_string()));
    assert!(profiled.status.success());
    let calls: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("syscall")).unwrap())
        .collect();
    for call in [libc::SYS_epoll_wait, libc::SYS_semtimedop, libc::SYS_futex] {
        assert!(calls.iter().any(|it| it.starts_with(&format!("{call} "))), "{call} {calls:?}");
    }
    assert_eq!(program.child.try_wait().unwrap(), None);
}

#[test]
fn a_program_that_does_not_record_is_profiled_from_outside() {
    let _watchdog = watch_for(limit(180));
    for way in WAYS {
        let place = Place::new(way);
        let mut command = with_user(way, &place.truth("holder-sleeps.c"));
        command.arg("5");
        let program = Running::start(&place, command);
        let mut profile = place.waitword();
        profile.args(["profile", "--seconds", "2", "--pid"]).arg(program.child.id().to_string());
        let ended = output(&mut profile);
        let shown = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.success(), "{shown}");
        assert!(shown.contains(", sampled ("), "{shown}");
        let mut lines = shown.lines().skip_while(|line| !line.contains("waiter_of_lock"));
        assert!(lines.next().expect(&shown).contains("for Mutex: "), "{shown}");
        let holder = lines.next().expect(&shown);
        // It sleeps for nearly all of its time; on a busy machine it also waits for a CPU.
        assert!(holder.contains("asleep in clock_nanosleep"), "{shown}");
        assert!(holder.contains("holder_sleeps_in_its_section"), "{shown}");
        let command = shown.lines().last().unwrap();
        assert!(
            command.starts_with("  waitword profile -- ") && command.ends_with(" 5"),
            "{shown}"
        );
    }
}

/// Under the drop-in without a recording: where the threads wait is shown, and that more is not
/// known.
#[test]
fn without_a_recording_the_drop_in_s_locks_have_no_known_holder() {
    let _watchdog = watch_for(limit(180));
    let place = Place::new(WAYS[0]);
    let program = place.truth("deadlock-self.c");
    let mut command = place.waitword();
    command.args(["run", "--"]).arg(&program);
    let mut program = Running::start(&place, command);
    program.wait_until_ready();
    let (shown, status) = place.deadlock(program.child.id(), &[]);
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("a deadlock among them is not ruled out"), "{shown}");
    assert!(shown.contains("locks_what_it_holds ("), "{shown}");
    assert!(shown.contains("waitword profile --watch 5 -- "), "{shown}");
}

#[test]
fn what_cannot_be_looked_at_is_an_error_that_says_why() {
    let _watchdog = watch_for(limit(180));
    let place = Place::new(WAYS[1]);
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id();
    ended.wait().unwrap();
    let (shown, status) = place.deadlock(pid, &[]);
    assert_eq!(status.code(), Some(2), "{shown}");
    assert!(shown.contains("there is no process"), "{shown}");
    if !is_root() {
        return;
    }
    // This test's own process belongs to root.
    let (shown, status) = place.deadlock(std::process::id(), &[]);
    assert_eq!(status.code(), Some(2), "{shown}");
    assert!(shown.contains("belongs to user 0"), "{shown}");
    let mut profile = place.waitword();
    profile.args(["profile", "--pid"]).arg(std::process::id().to_string());
    let ended = output(&mut profile);
    let shown = String::from_utf8_lossy(&ended.stderr);
    assert!(shown.contains("belongs to user 0"), "{shown}");
}
