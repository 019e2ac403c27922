//! Another process writes whatever it likes over the process-shared pthread objects that a program on the drop-in uses (SECURITY.md).
//!
//! Such objects are the C library's, and whose an object is, is written in it: so a hostile process can turn one into what the drop-in takes for
//! its own private one, and back, at any moment. It must not make the program crash, wait beyond its deadlines, or lose anything of its
//! private locks.
//!
//! Left out is what the C library itself does not survive, with the drop-in or without: kinds of mutexes that are robust, priority-protected or
//! process-shared with priority inheritance (it follows links, sets priorities, aborts), condition variables of its own that were written over
//! (it waits for groups that never end), flags that it passes on to the kernel.

#[allow(dead_code, reason = "it needs a part of it")]
#[path = "raw_futex/support.rs"]
mod support;

use fastrand::Rng;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::{C, compile, run, texts};

const PAGE: usize = 4096;
/// Words of an object's place.
const SLOT: usize = 16;
/// Places: four mutexes, two reader/writer locks, a semaphore, two condition variables.
const SLOTS: usize = 9;

/// What `__kind` of a mutex can say: ours, plain, and the C library's; made by static initialisers; made by us, with priority inheritance and
/// without; destroyed; none.
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
/// What a reader/writer lock says that is ours, or ours and counted.
const OURS: [u32; 2] = [u32::from_be_bytes(*b"wwRW"), u32::from_be_bytes(*b"wwRC")];

/// One number, at one place.
fn scribble(words: &[AtomicU32], victim: u32, random: &mut Rng) {
    let slot = random.usize(0..SLOTS);
    // Where it says whose it is, more often than elsewhere.
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
            // The numbers of the victim's threads, with and without the kernel's bits.
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

/// A file in memory that both map.
fn shared_file() -> (String, &'static [AtomicU32]) {
    // SAFETY: a new file, and a new mapping of it that stays.
    unsafe {
        let file = libc::memfd_create(c"hostile".as_ptr(), libc::MFD_CLOEXEC);
        assert_eq!(libc::ftruncate(file, 2 * PAGE as i64), 0);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(
            std::ptr::null_mut(),
            2 * PAGE,
            access,
            libc::MAP_SHARED,
            file,
            0,
        );
        assert_ne!(memory, libc::MAP_FAILED);
        let words = std::slice::from_raw_parts(memory.cast(), 2 * PAGE / 4);
        (format!("/proc/{}/fd/{file}", std::process::id()), words)
    }
}

/// Writes over what a victim shares until that ends; what it says then.
fn be_hostile_to(mut victim: Command) -> String {
    let (path, words) = shared_file();
    let ready = &words[PAGE / 4];
    let mut child = victim
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // Another one each time: what comes of it depends on the moment anyway.
    let mut random = Rng::with_seed(std::process::id().into());
    let mut written = 0;
    while child.try_wait().unwrap().is_none() {
        if ready.load(Relaxed) == 1 {
            let burst = 1 + random.usize(0..64);
            (0..burst).for_each(|_| scribble(words, child.id(), &mut random));
            written += burst;
        }
        // In between the victim may get somewhere.
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
