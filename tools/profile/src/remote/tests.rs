//! On a small program of known functions.

use super::*;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// One thread waits for a mutex that the first thread holds, one for an event, one sleeps. A wait
/// for an event that ends by a signal ends the program.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#define NAMED __attribute__((noipa))
NAMED void wants_the_mutex(int depth) {
    if (depth > 0) wants_the_mutex(depth - 1);
    else pthread_mutex_lock(&mutex);
    __asm__ volatile("");
}
NAMED void *locker(void *unused) {
    pthread_setname_np(pthread_self(), "locker");
    wants_the_mutex(3);
    return unused;
}
NAMED void *poller(void *unused) {
    struct epoll_event event;
    pthread_setname_np(pthread_self(), "poller");
    if (epoll_wait(epoll_create1(0), &event, 1, -1) < 0) _exit(errno == EINTR ? 40 : 41);
    return unused;
}
NAMED void *sleeper(void *unused) {
    struct timespec long_time = {1000, 0};
    pthread_setname_np(pthread_self(), "sleeper");
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL) != 0) _exit(42);
    return unused;
}
int main(void) {
    pthread_t thread;
    alarm(120);
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, locker, NULL);
    pthread_create(&thread, NULL, poller, NULL);
    pthread_create(&thread, NULL, sleeper, NULL);
    puts("started");
    fflush(stdout);
    for (;;) pause();
}
"#;

struct Running(Child, #[expect(dead_code, reason = "removed when dropped")] tempfile::TempDir);

impl Running {
    fn start(option: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (source, program) = (place.path().join("a.c"), place.path().join("a"));
        std::fs::write(&source, PROGRAM).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-g", "-pthread", option, "-o"]).arg(&program).arg(&source);
        assert!(compiler.status().unwrap().success());
        let mut child = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        Self(child, place)
    }

    /// The thread, once it sleeps in this call.
    fn thread(&self, remote: &Remote, name: &str, call: &str) -> Thread {
        loop {
            let all = remote.threads().unwrap();
            let thread = all.into_iter().find(|it| it.name == name && it.call_name() == Some(call));
            if let Some(thread) = thread {
                return thread;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_stack_of_a_waiting_thread_is_the_program_s() {
    let _watchdog = waitword_testkit::watch();
    for option in ["-fno-omit-frame-pointer", "-fomit-frame-pointer"] {
        let program = Running::start(option);
        let remote = Remote::open(program.0.id()).unwrap();
        assert_eq!(remote.denied(), None);
        let locker = program.thread(&remote, "locker", "futex");
        let stack = remote.whole_stack(&locker);
        let mut symbols = remote.symbols();
        let functions: Vec<String> = stack
            .frames
            .iter()
            .flat_map(|&address| symbols.frames(address).to_vec())
            .map(|frame| frame.function)
            .filter(|function| function == "wants_the_mutex" || function == "locker")
            .collect();
        let wanted = [&["wants_the_mutex"; 4][..], &["locker"]].concat();
        assert_eq!(functions, wanted, "{option} {stack:x?}");
        assert!(stack.is_complete, "{option} {stack:x?}");
        // The caller of the lock's function is known without a stop, too.
        let stack = remote.stack(&locker);
        let named = |address: &u64| symbols.frames(*address)[0].function == "wants_the_mutex";
        assert!(stack.frames.iter().any(named), "{option} {stack:x?}");
    }
}

#[test]
fn a_thread_that_is_looked_at_does_not_notice() {
    let _watchdog = waitword_testkit::watch();
    let mut program = Running::start("-O2");
    let remote = Remote::open(program.0.id()).unwrap();
    let [poller, sleeper, locker] =
        [("poller", "epoll_wait"), ("sleeper", "clock_nanosleep"), ("locker", "futex")]
            .map(|(name, call)| program.thread(&remote, name, call));
    assert!(!registers::may_stop(&poller) && registers::may_stop(&sleeper));
    for _ in 0..50 {
        remote.whole_stack(&poller);
        // As if it had begun to wait for the event just before it was stopped.
        assert!(registers::read(remote.pid(), &poller).is_some());
        assert!(registers::read(remote.pid(), &sleeper).is_some());
        assert!(registers::read(remote.pid(), &locker).is_some());
    }
    for before in [&poller, &locker] {
        let after = program.thread(&remote, &before.name, before.call_name().unwrap());
        assert_eq!(after.call, before.call);
    }
    // The kernel's name for a call with a timeout that has begun again.
    program.thread(&remote, "sleeper", "restart_syscall");
    assert_eq!(program.0.try_wait().unwrap(), None);
}

#[test]
fn memory_that_is_not_there_is_none() {
    let program = Running::start("-O2");
    let remote = Remote::open(program.0.id()).unwrap();
    assert_eq!(remote.word(0x10), None);
    assert_eq!(remote.word(u64::MAX - 1), None);
    let library = remote.mappings.iter().find(|(mapping, _)| mapping.offset == 0).unwrap();
    assert_eq!(remote.read(library.0.start), Some(*b"\x7fELF"));
    assert!(remote.command_line()[0].to_string_lossy().ends_with("/a"));
    assert_eq!(remote.variable("PATH"), std::env::var_os("PATH"));
    assert_eq!(remote.variable("NO_SUCH_VARIABLE"), None);
    let error = Remote::open(u32::MAX).unwrap_err().to_string();
    assert!(error.contains("there is no process"), "{error}");
}

/// Looks at the first thread of a child, while another thread waits for the child's end.
#[test]
fn a_look_is_not_taken_for_the_end_of_a_child() {
    let _watchdog = waitword_testkit::watch();
    let mut program = Running::start("-O2");
    let pid = program.0.id();
    let remote = Remote::open(pid).unwrap();
    let name = remote.threads().unwrap()[0].name.clone();
    let first = program.thread(&remote, &name, "pause");
    assert_eq!(first.tid, pid);
    let (told, ended) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            wait_for_end(pid);
            told.send(()).unwrap();
        });
        for _ in 0..50 {
            assert!(registers::read(pid, &first).is_some());
            assert!(ended.try_recv().is_err(), "it has not ended");
        }
        program.0.kill().unwrap();
        ended.recv().unwrap();
        // Its status is still there.
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(program.0.wait().unwrap().signal(), Some(libc::SIGKILL));
    });
    wait_for_end(pid);
}
