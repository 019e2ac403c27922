//! How many critical sections are preempted, with time slice extensions and without?
//!
//! More threads than CPUs run short critical sections. The kernel's restartable sequences tell
//! each of them whether it was preempted inside one: it writes the address of a sequence into its
//! rseq area, and if the kernel schedules another thread, it clears that word. Two kinds of
//! sections are counted: about a microsecond of work under `time_slice::extend`, and calls that
//! move waiters between two futexes, most of which is spent with two locks of the waiter table
//! held.
//!
//! ```sh
//! cargo run --release --example time_slices -- 3      # seconds for each measurement
//! ```
//!
//! Each measurement has a process of its own. "Without" is the same program with
//! `WAITWORD_TIME_SLICE=0`. Where there are no extensions, it says so and measures nothing.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use waitword::{Futex, time_slice};

/// The waiters that a call moves.
const WAITERS: usize = 32;
const ROUNDS: usize = 3;

/// The thread's word in which it names a restartable sequence.
struct Mark(&'static AtomicU64);

/// `struct rseq_cs`. This one has no instructions, so nothing is ever restarted.
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: u64,
    length: u64,
    abort: u64,
}

impl Mark {
    /// The calling thread's; the C library must have registered its rseq area.
    fn of_this_thread() -> Self {
        const SEQUENCE: usize = 8;
        // SAFETY: glibc has registered the area of this thread, as `main` has checked, at this
        // offset from the thread pointer, which is the result of `thread_pointer`. No other code
        // of this program uses restartable sequences. The reference stays in this thread.
        Self(unsafe {
            let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
            let area = thread_pointer().wrapping_byte_offset(*offset);
            &*area.wrapping_byte_add(SEQUENCE).cast::<AtomicU64>()
        })
    }

    /// Runs a section. True if the thread was preempted in it.
    fn preempted(&self, sequence: &Sequence, section: impl FnOnce()) -> bool {
        self.0.store(std::ptr::from_ref(sequence).addr() as u64, Relaxed);
        section();
        self.0.swap(0, Relaxed) == 0
    }
}

fn thread_pointer() -> *const u8 {
    let pointer;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the ABI has the thread pointer itself stored in the word that it points to.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register that every program may read.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem));
    }
    pointer
}

/// What precedes the instruction at which a sequence is aborted (glibc's RSEQ_SIG).
static SIGNATURE: [u32; 2] =
    [if cfg!(target_arch = "x86_64") { 0x5305_3053 } else { 0xd428_bc00 }; 2];

fn sequence() -> Sequence {
    let abort = std::ptr::from_ref(&SIGNATURE[1]).addr() as u64;
    Sequence { version: 0, flags: 0, start: 0, length: 0, abort }
}

fn work(steps: u64) {
    for step in 0..steps {
        black_box(step);
    }
}

/// How many steps take a microsecond: the shortest of some attempts.
fn steps_in_a_microsecond() -> u64 {
    const STEPS: u64 = 20_000;
    let attempt = |_| {
        let start = Instant::now();
        work(STEPS);
        start.elapsed()
    };
    let took = (0..50).map(attempt).min().unwrap_or_default();
    (STEPS * 1000 / took.as_nanos().max(1) as u64).max(1)
}

/// Runs sections in `threads` threads for a while. Returns how many there were, and how many of
/// them were preempted.
fn count(
    threads: usize,
    duration: Duration,
    body: impl Fn(usize, &mut dyn FnMut(&mut dyn FnMut())) + Sync,
) -> [u64; 2] {
    let (over, sections, preempted) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..threads {
            let (over, sections, preempted, body) = (&over, &sections, &preempted, &body);
            scope.spawn(move || {
                let (mark, sequence) = (Mark::of_this_thread(), sequence());
                let mut counted = [0u64; 2];
                let mut section = |run: &mut dyn FnMut()| {
                    counted[0] += 1;
                    counted[1] += u64::from(mark.preempted(&sequence, run));
                };
                while !over.load(Relaxed) {
                    body(thread, &mut section);
                }
                sections.fetch_add(counted[0], Relaxed);
                preempted.fetch_add(counted[1], Relaxed);
            });
        }
        thread::sleep(duration);
        over.store(true, Relaxed);
    });
    [sections.into_inner(), preempted.into_inner()]
}

/// About a microsecond of work in each section, and as much between two.
fn own_sections(threads: usize, duration: Duration) -> [u64; 2] {
    let steps = steps_in_a_microsecond();
    count(threads, duration, |_, section| {
        // The mark is read before the extension ends: its end may yield the CPU.
        let extension = time_slice::extend();
        section(&mut || work(steps));
        drop(extension);
        work(steps);
    })
}

/// Each thread moves its own waiters back and forth.
fn table_sections(threads: usize, duration: Duration) -> [u64; 2] {
    let words: Vec<[AtomicU32; 2]> = (0..threads).map(|_| Default::default()).collect();
    let asleep = AtomicU32::new(0);
    thread::scope(|scope| {
        for [word, _] in &words {
            for _ in 0..WAITERS {
                let asleep = &asleep;
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn_scoped(scope, move || {
                        asleep.fetch_add(1, Relaxed);
                        // Nothing changes the word, so only the wake at the end ends this.
                        Futex::private(word).wait(0).expect("no signals here");
                    })
                    .expect("a thread");
            }
        }
        while waitword::table::snapshot(&mut []).counted < threads * WAITERS {
            thread::sleep(Duration::from_millis(1));
        }
        let result = count(threads, duration, |thread, section| {
            let [first, second] = &words[thread];
            for [from, to] in [[first, second], [second, first]] {
                section(&mut || {
                    let moved = Futex::private(from).requeue(Futex::private(to), 0, WAITERS);
                    assert_eq!(moved, Ok(WAITERS));
                });
            }
        });
        for word in words.iter().flatten() {
            Futex::private(word).wake(WAITERS).expect("a wake");
        }
        result
    })
}

/// What it runs for a while, in so many threads.
type Sections = fn(usize, Duration) -> [u64; 2];

const KINDS: [(&str, Sections); 2] =
    [("work under `extend`", own_sections), ("requeues in the table", table_sections)];

/// Runs this program again for one measurement.
fn measure(kind: &str, seconds: f64, with: bool) -> [u64; 2] {
    let output = Command::new(std::env::current_exe().expect("its own path"))
        .args([kind, &seconds.to_string()])
        .env("WAITWORD_TIME_SLICE", if with { "1" } else { "0" })
        .output()
        .expect("it can be run again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(|number| number.parse().expect("a number"));
    [(); 2].map(|()| numbers.next().expect("two numbers"))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = 4 * thread::available_parallelism().map_or(1, |cpus| cpus.get());
    if let [kind, seconds] = &arguments[..] {
        let (_, run) = KINDS.iter().find(|(name, _)| name == kind).expect("a kind");
        let [sections, preempted] =
            run(threads, Duration::from_secs_f64(seconds.parse().expect("seconds")));
        println!("{sections} {preempted}");
        return ExitCode::SUCCESS;
    }
    let seconds = match &arguments[..] {
        [] => Some(0.2),
        [seconds] => seconds.parse().ok().filter(|seconds| (0.0..3600.0).contains(seconds)),
        _ => None,
    };
    let Some(seconds) = seconds else {
        eprintln!("usage: time_slices [SECONDS]");
        return ExitCode::FAILURE;
    };
    if !time_slice::is_available() {
        println!("time slice extensions: not available here; `waitword doctor` shows why");
        return ExitCode::SUCCESS;
    }
    println!("{threads} threads; preempted sections of a million, the middle of {ROUNDS} rounds:");
    for (kind, _) in KINDS {
        let rate = |with| {
            let [sections, preempted] = measure(kind, seconds, with);
            preempted as f64 * 1e6 / sections.max(1) as f64
        };
        // By turns, so that a slow change of the machine meets both.
        let mut rates: Vec<[f64; 2]> = (0..ROUNDS).map(|_| [false, true].map(rate)).collect();
        let [without, with] = [0, 1].map(|side| {
            rates.sort_by(|one, other| one[side].total_cmp(&other[side]));
            rates[ROUNDS / 2][side]
        });
        println!("{kind:22} {without:9.1} without, {with:9.1} with");
    }
    ExitCode::SUCCESS
}
