//! Forked processes of a scenario. Each dies with the scenario, however that ends.

use crate::context::Context;
use crate::count::Count;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
pub(crate) use waitword_testkit::{BareThread, Ended, child::die_with_parent};

/// The exit status of a scenario that could not go on because the machine refused it something.
pub(crate) const CANNOT: i32 = 72;

/// The kernel's ID of the calling thread.
pub(crate) fn thread_number() -> u32 {
    waitword_testkit::thread_number() as u32
}

/// Forks with libc's fork. The child runs `work`, and ends with the status that it returns.
pub(crate) fn fork(context: &Context, work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `work`, which uses only what libc's fork has made usable, and ends
    // with _exit.
    let child = unsafe { libc::fork() };
    go_on(context, child, "fork", work)
}

/// Forks with the bare system call. None of libc's handlers run, and in the child libc's own locks
/// may stay locked forever. `work` must not allocate, and may use nothing of libc but system
/// calls.
pub(crate) fn raw_clone(context: &Context, work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: like fork. The child runs `work`, which keeps to the rules above, and ends with a
    // system call.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    go_on(context, child, "clone", work)
}

/// Continues after a fork that returned `child`, on both sides.
fn go_on(context: &Context, child: i32, what: &str, work: impl FnOnce() -> i32) -> i32 {
    if child == 0 {
        die_with_parent();
        let status = work();
        // SAFETY: ends the process without the parent's exit handlers.
        unsafe { libc::_exit(status) };
    }
    if child < 0 {
        cannot(context, what);
    }
    let free = context
        .children
        .iter()
        .find(|place| place.compare_exchange(0, child, SeqCst, SeqCst).is_ok());
    assert!(free.is_some(), "more children than places for them");
    child
}

/// Kills one child, which must still be waited for.
pub(crate) fn kill(child: i32) {
    // SAFETY: a child that has not been waited for, so the number is its own.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// Waits for a child to end. If that takes longer than the watchdog would allow, the child is
/// killed.
///
/// # Errors
/// The child hung.
pub(crate) fn reap(context: &Context, child: i32) -> Result<Ended, String> {
    let since = Instant::now();
    let mut hung = false;
    // Longer than the watchdog's patience, because its report says more.
    let longest = context.patience() + context.patience() / 2;
    while !has_ended(child) {
        if !hung && since.elapsed() > longest {
            hung = true;
            kill(child);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    for place in &context.children {
        // A failure means that the place is another child's.
        let _ = place.compare_exchange(child, 0, SeqCst, SeqCst);
    }
    // Only now may another process get its number. Until here, a thread that finds the number in
    // `children` still means this child.
    let mut status = 0;
    // SAFETY: writes the status of our own child, which has ended.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    context.board.forget(child as u32);
    if hung {
        return Err(format!("process {child} hung"));
    }
    Ok(Ended::from_status(status))
}

/// Whether a child has ended; it must still be waited for.
fn has_ended(child: i32) -> bool {
    // SAFETY: zeros are overwritten; our own child, which has not been waited for.
    unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child as u32, &raw mut about, options) != 0 || about.si_pid() != 0
    }
}

/// Kills all children, on the way out. They are not waited for, because this process ends too.
pub(crate) fn kill_all(context: &Context) {
    for place in &context.children {
        let child = place.swap(0, SeqCst);
        if child > 0 {
            kill(child);
        }
    }
}

/// Ends the process because the machine refuses it something that has nothing to do with what is
/// tortured. Reports the error of the last system call.
pub(crate) fn cannot(context: &Context, what: &str) -> ! {
    let error = std::io::Error::last_os_error();
    complain(&format!("torture: {}: cannot {what}: {error}\n", context.slice.scenario));
    kill_all(context);
    // SAFETY: ends the process at once; exit handlers could wait for threads that wait for others.
    unsafe { libc::_exit(CANNOT) }
}

/// Prints a complaint without the locks that a forked process shares with its parent.
pub(crate) fn complain(message: &str) {
    // SAFETY: `message` is that long, and is only read.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
}

/// Counts a fork on behalf of the calling thread.
pub(crate) fn count_fork() {
    if let Some(place) = crate::actor::own_place() {
        place.count(Count::Forks, 1);
    }
}
