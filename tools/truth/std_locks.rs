//! std_locks: waits at a pthread mutex have a name and a holder; at std's Mutex, only a raw futex.
//!
//! std's own locks are no pthread locks: they call futex(2) themselves. So a report must show two
//! waiting functions: `waiter_of_pthread_mutex`, whose holder sleeps in clock_nanosleep, and
//! `waiter_of_std_mutex`, in a raw futex wait whose holder is unknown. Both holders sleep 20 ms
//! inside and 2 ms outside.
//!
//!     rustc -O -g --edition 2024 std_locks.rs

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};

const THRESHOLD: Duration = Duration::from_micros(10);

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut Words) -> c_int;
    fn pthread_mutex_unlock(mutex: *mut Words) -> c_int;
}

/// At least the size of a pthread_mutex_t on each platform.
type Words = [usize; 8];

struct PthreadMutex(UnsafeCell<Words>);

// SAFETY: only pthread functions touch the words, and they may be called from each thread.
unsafe impl Sync for PthreadMutex {}

impl PthreadMutex {
    fn lock(&self) {
        // SAFETY: the words are zero, PTHREAD_MUTEX_INITIALIZER, or what pthread made of them.
        assert_eq!(unsafe { pthread_mutex_lock(self.0.get()) }, 0, "pthread_mutex_lock");
    }

    fn unlock(&self) {
        // SAFETY: as above, and this thread locked the mutex.
        assert_eq!(unsafe { pthread_mutex_unlock(self.0.get()) }, 0, "pthread_mutex_unlock");
    }
}

static PTHREAD_MUTEX: PthreadMutex = PthreadMutex(UnsafeCell::new([0; 8]));
static STD_MUTEX: Mutex<u64> = Mutex::new(0);

#[derive(Default)]
struct Site {
    count: AtomicU64,
    nanoseconds: AtomicU64,
    delayed: AtomicU64,
    delay: AtomicU64,
}

/// How long this thread was runnable without a CPU so far.
fn run_delay() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    line.split(' ').nth(1).and_then(|delay| delay.parse().ok()).expect("three numbers")
}

impl Site {
    #[inline(always)]
    fn wait<T>(&self, lock: impl FnOnce() -> T) -> T {
        let delay = run_delay();
        let from = Instant::now();
        let result = lock();
        let waited = from.elapsed();
        if waited >= THRESHOLD {
            let delay = run_delay() - delay;
            self.count.fetch_add(1, Relaxed);
            self.nanoseconds.fetch_add(waited.as_nanos() as u64, Relaxed);
            self.delayed.fetch_add(u64::from(delay >= THRESHOLD.as_nanos() as u64), Relaxed);
            self.delay.fetch_add(delay, Relaxed);
        }
        result
    }

    fn print(&self, name: &str) {
        println!("wait {name} {} {}", self.count.load(Relaxed), self.nanoseconds.load(Relaxed));
        println!("delay {name} {} {}", self.delayed.load(Relaxed), self.delay.load(Relaxed));
    }
}

#[inline(never)]
fn holder_of_pthread_mutex(site: &Site) {
    site.wait(|| PTHREAD_MUTEX.lock());
    sleep(Duration::from_millis(20));
    PTHREAD_MUTEX.unlock();
}

#[inline(never)]
fn waiter_of_pthread_mutex(site: &Site) {
    site.wait(|| PTHREAD_MUTEX.lock());
    PTHREAD_MUTEX.unlock();
}

#[inline(never)]
fn holder_of_std_mutex(site: &Site) {
    let mut guard = site.wait(|| STD_MUTEX.lock().unwrap());
    *guard += 1;
    sleep(Duration::from_millis(20));
}

#[inline(never)]
fn waiter_of_std_mutex(site: &Site) {
    *site.wait(|| STD_MUTEX.lock().unwrap()) += 1;
}

fn main() {
    let factor = std::env::args().nth(1).map_or(1.0, |text| text.parse().expect("a factor"));
    let end = Instant::now() + Duration::from_secs(2).mul_f64(factor);
    spawn(|| {
        sleep(Duration::from_secs(60));
        eprintln!("hung in step: run");
        std::process::exit(70);
    });
    let sites: [(&str, fn(&Site), u64, Site); 4] = [
        ("std_locks::holder_of_pthread_mutex", holder_of_pthread_mutex, 2, Site::default()),
        ("std_locks::waiter_of_pthread_mutex", waiter_of_pthread_mutex, 1, Site::default()),
        ("std_locks::holder_of_std_mutex", holder_of_std_mutex, 2, Site::default()),
        ("std_locks::waiter_of_std_mutex", waiter_of_std_mutex, 1, Site::default()),
    ];
    scope(|threads| {
        for (_, turn, outside, site) in &sites {
            threads.spawn(move || {
                // A profiler may set something up at a thread's first lock. That is no wait.
                let own = PthreadMutex(UnsafeCell::new([0; 8]));
                own.lock();
                own.unlock();
                while Instant::now() < end {
                    turn(site);
                    sleep(Duration::from_millis(*outside));
                }
            });
        }
    });
    for (name, _, _, site) in &sites {
        site.print(name);
    }
}
