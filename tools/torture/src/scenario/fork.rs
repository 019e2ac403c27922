//! Tortured: fork while other threads wait, wake and grow the table, by libc's `fork` and by the
//! bare system call, which runs no handlers and leaves libc's locks as they were.
//!
//! Checked: the child's table is empty and none of its buckets is locked; its futexes work, between
//! its own threads and between it and its signal handlers; it ends by itself. In the parent, tokens
//! and counts add up.

use super::traffic::Traffic;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::fault::kind::Fault;
use crate::parts::storm;
use crate::process::{self, BareThread, Ended};
use crate::spot::How;
use crate::tokens::Tokens;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::time::Duration;
use waitword::{Error, table};

const TOKENS: usize = 6_000;
const FORKS: usize = 12;
/// How often the child's two threads wait for each other.
const TURNS: usize = 50;

/// Exit statuses of the child.
const TABLE_NOT_EMPTY: i32 = 11;
const BUCKET_LOCKED: i32 = 12;
const WAIT_FAILED: i32 = 13;
const COUNT_WRONG: i32 = 14;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let traffic = Traffic::new(context);
    let words = &traffic.words[..];
    storm::install(libc::SIGALRM, give_in_handler, true);
    while let Some(round) = context.next_round() {
        traffic.round(context, round, TOKENS, |crew| {
            crew.spawn("forker", 0, move |actor| {
                (0..FORKS).try_for_each(|turn| fork_once(context, actor, words, turn))
            });
            crew.spawn("grower", 0, |actor| {
                let wanted = (table::buckets() * 2).clamp(256, 1 << 15);
                std::thread::sleep(Duration::from_micros(actor.dice.u64(0..5_000)));
                match table::reserve(wanted) {
                    Err(Error::OutOfMemory) if context.has(Fault::Memory) => Ok(()),
                    other => other.map(drop).map_err(|error| error.to_string()),
                }
            });
        })?;
    }
    Ok(())
}

fn fork_once(context: &Context, actor: &mut Actor, words: &[Tokens], turn: usize) -> Verdict {
    std::thread::sleep(Duration::from_micros(actor.dice.u64(0..500)));
    let (first, second) = (words[turn % words.len()], words[(turn + 1) % words.len()]);
    // Where the kernel refuses to wipe the table, a handler of libc's fork does it. The bare call
    // runs no handler.
    let by_libc = turn.is_multiple_of(2) || context.has(Fault::Memory);
    let child = match by_libc {
        true => process::fork(context, || with_threads(first, second)),
        false => process::raw_clone(context, || with_handler(first)),
    };
    process::count_fork();
    let ended = process::reap(context, child)?;
    actor.step();
    match ended {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(TABLE_NOT_EMPTY) => Err("a child's table was not empty".to_owned()),
        Ended::Exited(BUCKET_LOCKED) => Err("a child's bucket was locked".to_owned()),
        Ended::Exited(WAIT_FAILED) => Err("a child's wait failed".to_owned()),
        Ended::Exited(COUNT_WRONG) => Err("a child's wake counted wrong".to_owned()),
        other => Err(format!("a child ended with {other:?}")),
    }
}

fn inspect_table() -> Result<(), i32> {
    let snapshot = table::snapshot(&mut []);
    match (snapshot.waiters, snapshot.locked_buckets) {
        (0, 0) => Ok(()),
        (0, _) => Err(BUCKET_LOCKED),
        _ => Err(TABLE_NOT_EMPTY),
    }
}

/// In a child of libc's fork: two threads pass a token back and forth, on words of the parent.
fn with_threads(first: Tokens, second: Tokens) -> i32 {
    let turns = |own: Tokens, other: Tokens, begins: bool| {
        if begins {
            give(other);
        }
        for turn in 0..TURNS {
            take(own)?;
            if !begins || turn + 1 < TURNS {
                give(other);
            }
        }
        Ok(())
    };
    let check = || {
        inspect_table()?;
        first.reset();
        second.reset();
        let partner = BareThread::start(move || turns(second, first, false).err().unwrap_or(0));
        turns(first, second, true)?;
        match partner.join() {
            0 => {}
            complaint => return Err(complaint),
        }
        inspect_table()
    };
    check().err().unwrap_or(0)
}

/// In a child of the bare system call: nothing of libc that locks may be used, so there are no
/// threads. The other side is a signal handler.
fn with_handler(word: Tokens) -> i32 {
    let check = || {
        inspect_table()?;
        word.reset();
        // SAFETY: the word's tokens outlive the child.
        IN_CHILD.store((&raw const word).cast_mut(), SeqCst);
        for turn in 0..10 {
            set_timer(20 + turn * 40);
            take(word)?;
        }
        inspect_table()
    };
    check().err().unwrap_or(0)
}

static IN_CHILD: AtomicPtr<Tokens> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn give_in_handler(_signal: i32) {
    // SAFETY: null, or tokens in a frame that the child does not leave before it ends.
    if let Some(word) = unsafe { IN_CHILD.load(SeqCst).as_ref() } {
        give(*word);
    }
}

fn set_timer(microseconds: i64) {
    let mut times = [0i64; 4];
    times[3] = microseconds;
    // SAFETY: `struct itimerval` is four longs: interval and value, in seconds and microseconds.
    unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, times.as_ptr(), 0) };
}

fn give(tokens: Tokens) {
    if tokens.try_put(0) {
        // The scenarios that stay in one process check the count.
        let _ = tokens.spot.wake(1, u64::MAX);
    }
}

fn take(tokens: Tokens) -> Result<(), i32> {
    while !tokens.try_take(0) {
        match tokens.spot.wait(0, How::ALWAYS) {
            Ok(()) | Err(Error::Mismatch) => {}
            Err(_) => return Err(WAIT_FAILED),
        }
    }
    match tokens.spot.wake(usize::MAX, u64::MAX) {
        Ok(0) => Ok(()),
        _ => Err(COUNT_WRONG),
    }
}
