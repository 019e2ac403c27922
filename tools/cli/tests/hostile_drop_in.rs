//! A hostile process overwrites the process-shared pthread objects that a program on the drop-in
//! uses (SECURITY.md).
//!
//! The C library serves such objects. But the object itself records whether it is the C library's
//! or ours. So a hostile process can, at any moment, turn an object into what the drop-in takes for
//! its own private one, and back. This must not make the program crash, wait beyond its deadlines,
//! or damage its private locks.
//!
//! Left out is what the C library itself does not survive, with the drop-in or without:
//!
//! - mutexes that are robust, priority-protected, or process-shared with priority inheritance (the
//!   C library follows links, sets priorities, aborts);
//! - overwritten condition variables of the C library (it waits for groups that never end);
//! - flags that the C library passes to the kernel.

#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "raw_futex/support.rs"]
mod support;

use fastrand::Rng;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::{C, compile, run, texts};

const PAGE: usize = 4096;
/// The number of words in an object's slot.
const SLOT: usize = 16;
/// The slots: four mutexes, two reader/writer locks, a semaphore, two condition variables.
const SLOTS: usize = 9;

/// Values of a mutex's `__kind`: our plain kind and the C library's; kinds made by static
/// initialisers; kinds made by us, with and without priority inheritance; destroyed; invalid.
const KINDS: [u32; 15] = [
    0,
    128,
    0,
    128,
    1,
    2,
    3,
    129,
    130,
    131,
    1 << 16 | 1,
    1 << 16 | 2,
    1 << 16 | 32,
    1 << 16 | 32 | 2,
    u32::MAX,
];
/// The marks of a reader/writer lock that is ours, and of one that is ours and counted.
const OURS: [u32; 2] = [u32::from_be_bytes(*b"wwRW"), u32::from_be_bytes(*b"wwRC")];

/// Overwrites one word with one number.
fn scribble(words: &[AtomicU32], victim: u32, random: &mut Rng) {
    let slot = random.usize(0..SLOTS);
    // The word that records whose object it is gets more than its share.
    let at = match (slot, random.usize(0..4)) {
        (0..4, 0) => 4,
        (4..6, 0) => 2,
        (6, 0) => 2,
        (7.., 0) => 9,
        _ => random.usize(0..SLOT),
    };
    let target = &words[slot * SLOT + at];
    let seen = target.load(Relaxed);
    let value = match (slot, at) {
        (0..4, 4) => KINDS[random.usize(0..KINDS.len())],
        (4..6, 2) if random.usize(0..2) == 0 => OURS[random.usize(0..OURS.len())],
        (6, 2) => 128 * random.usize(0..2) as u32,
        (7.., 7 | 9) => 0,
        _ => match random.usize(0..12) {
            0..3 => 0,
            3 => u32::MAX,
            4 => i32::MIN as u32,
            5 => i32::MAX as u32,
            // The victim's thread numbers, with and without the kernel's bits.
            6 => victim + random.usize(0..9) as u32,
            7 => (victim + random.usize(0..9) as u32) | 0xc000_0000,
            8 => seen.wrapping_add(1),
            9 => seen.wrapping_sub(1),
            10 => seen ^ (1 << random.usize(0..32)),
            _ => random.u32(..),
        },
    };
    target.store(value, Relaxed);
}

/// A memory file that both processes map.
fn shared_file() -> (String, &'static [AtomicU32]) {
    // SAFETY: the file is new, and its mapping is new and never removed.
    unsafe {
        let file = libc::memfd_create(c"hostile".as_ptr(), libc::MFD_CLOEXEC);
        assert_eq!(libc::ftruncate(file, 2 * PAGE as i64), 0);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(std::ptr::null_mut(), 2 * PAGE, access, libc::MAP_SHARED, file, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        let words = std::slice::from_raw_parts(memory.cast(), 2 * PAGE / 4);
        (format!("/proc/{}/fd/{file}", std::process::id()), words)
    }
}

/// Overwrites the victim's shared objects until the victim ends. Returns the victim's output.
fn be_hostile_to(mut victim: Command) -> String {
    let (path, words) = shared_file();
    let ready = &words[PAGE / 4];
    let mut child = victim.arg(path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    // A different seed each time: the outcome depends on timing anyway.
    let mut random = Rng::with_seed(std::process::id().into());
    let mut written = 0;
    while child.try_wait().unwrap().is_none() {
        if ready.load(Relaxed) == 1 {
            let burst = 1 + random.usize(0..64);
            (0..burst).for_each(|_| scribble(words, child.id(), &mut random));
            written += burst;
        }
        // Pauses let the victim make progress.
        std::thread::sleep(Duration::from_micros(random.u64(0..200)));
        if began.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("the victim hangs");
        }
    }
    eprintln!("{written} numbers were written over its objects");
    let (said, _) = texts(child.wait_with_output().unwrap());
    said
}

#[test]
fn a_hostile_process_breaks_nothing_but_what_it_shares() {
    let program = compile(C, "../hostile_drop_in/victim.c");
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    let (drop_in, _) = texts(run(command.arg("preload")));
    let mut victim = Command::new(program.path());
    victim.env("LD_PRELOAD", drop_in.trim());
    let said = be_hostile_to(victim);
    assert!(said.ends_with(" turns\n"), "{said}");
}
