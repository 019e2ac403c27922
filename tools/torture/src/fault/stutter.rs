//! Stutter: all threads pause where they are, with whatever locks they hold, and go on at the same
//! moment.
//!
//! A pausing thread sleeps in the kernel on a word of the board, without the library.

use super::choice::{noted_choices, pause};
use super::flag::Flag;
use super::kind::Fault;
use crate::board::Board;
use crate::context::Context;
use crate::count::Count;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// No pause is longer, even if the process that would end it is killed.
static LONGEST: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 200_000_000 };

pub(super) fn run(context: &'static Context, over: &Flag) {
    let word = &context.board.pause;
    for number in 0.. {
        let mut dice = noted_choices(context, Fault::Stutter, number);
        if !over.sleep(pause(&mut dice, 40)) {
            break;
        }
        word.store(1, SeqCst);
        std::thread::sleep(Duration::from_micros(dice.u64(100..8_000)));
        word.store(0, SeqCst);
        wake_all(word);
        context.board.count(Count::Stutters, 1);
    }
}

/// Pauses if all threads pause. Called at each step of each thread; costs one load if there is no
/// pause.
pub(crate) fn pause_with_all(board: &Board) {
    if board.pause.load(SeqCst) != 0 {
        let word = &raw const board.pause;
        // SAFETY: a word that lives as long as the process, and a whole timespec.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, 1, &raw const LONGEST) };
    }
}

fn wake_all(word: &AtomicU32) {
    let word = std::ptr::from_ref(word);
    // SAFETY: passes an address and numbers. All processes of a scenario share the word.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
}
