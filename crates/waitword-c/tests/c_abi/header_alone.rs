//! `waitword.h` needs no other header before it, in every C since 1999 and C++ since 2011. Nor does
//! `waitword.hpp`, or any part of it, in every C++ since 2017. And they compile without warnings
//! under options that programs commonly use.

use crate::installed::{Language, package};
use crate::{scratch, watchdog};
use std::process::Command;

/// Every constant is visible to the preprocessor, and every function to the linker.
const USE: &str = "\
#include <waitword.h>
#include <waitword.h>
#if !defined WW_SIZE_U64 || !defined WW_PRIVATE || !defined WW_NUMA || !defined WW_OP_XOR
#error a constant is not a macro
#endif
#if WW_VERSION < 1000 || WW_MASK_U64 != 0xffffffffffffffff
#error not for #if
#endif
#if WW_MUTEX_RECURSIVE + WW_PROCESS_SHARED != 0x101 || !defined WW_RWLOCK_PREFER_WRITER
#error not for #if
#endif
int flag = (int)(enum ww_mutex_flag)WW_MUTEX_ERRORCHECK;
ww_mutex_t mutex = WW_MUTEX_INITIALIZER_WITH(WW_MUTEX_ERRORCHECK | WW_PROCESS_SHARED);
ww_rwlock_t rwlock = WW_WRITER_RWLOCK_INITIALIZER;
ww_cond_t cond = WW_COND_INITIALIZER;
ww_sem_t sem = WW_SEM_INITIALIZER(3);
ww_barrier_t barrier = WW_BARRIER_INITIALIZER(4);
ww_latch_t latch = WW_LATCH_INITIALIZER(5);
ww_event_t event = WW_EVENT_INITIALIZER;
ww_auto_event_t auto_event = WW_AUTO_EVENT_INITIALIZER;
ww_once_t once = WW_ONCE_INIT;
ww_robust_mutex_t robust = WW_ROBUST_MUTEX_INITIALIZER;
long wait_forever(void *word);
long wait_forever(void *word)
{
    return ww_futex_wait(word, 0, WW_MASK_U64, WW_SIZE_U64 | WW_PRIVATE, 0, 0);
}
";

fn check(language: Language, standard: &str, text: &str, options: &[&str]) -> Command {
    let extension = if language == Language::C { "c" } else { "cpp" };
    let source = scratch::new_file(extension);
    std::fs::write(&source, text).expect("the scratch folder is writable");
    let mut command = Command::new(language.compiler());
    command
        .arg(format!("-std={standard}"))
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"])
        .args(options)
        .arg("-I")
        .arg(package().join("include"))
        .arg(&source);
    command
}

fn compiles(language: Language, standard: &str, text: &str, options: &[&str]) {
    if language.is_here() {
        let mut command = check(language, standard, text, options);
        watchdog::run(&mut command, watchdog::BUILD);
    }
}

#[test]
fn in_c() {
    for standard in ["c99", "c11", "gnu17"] {
        compiles(Language::C, standard, USE, &[]);
    }
}

#[test]
fn in_cpp() {
    for standard in ["c++11", "c++17", "gnu++20"] {
        compiles(Language::Cpp, standard, USE, &[]);
    }
}

/// Uses something from each part.
const USE_CPP: &str = "\
#include <waitword.hpp>
#include <waitword.hpp>
void use(waitword::basic_timed_mutex<WW_MUTEX_RECURSIVE | WW_MUTEX_THROUGHPUT> &mutex,
         waitword::basic_shared_timed_mutex<WW_RWLOCK_PREFER_WRITER> &shared, \
         std::atomic<char> &atomic);
void use(waitword::basic_timed_mutex<WW_MUTEX_RECURSIVE | WW_MUTEX_THROUGHPUT> &mutex,
         waitword::basic_shared_timed_mutex<WW_RWLOCK_PREFER_WRITER> &shared, \
         std::atomic<char> &atomic)
{
    using namespace std::chrono;
    waitword::unique_lock lock(mutex, seconds(1));
    waitword::condition_variable condition;
    condition.wait_until(lock, system_clock::now());
    waitword::condition_variable_any any;
    any.wait_for(lock, duration<float>(1));
    if (shared.try_lock_for(hours(1)) || shared.try_lock_shared_until(steady_clock::now()))
        shared.unlock();
    waitword::counting_semaphore<> semaphore(1);
    waitword::latch latch(1);
    waitword::barrier barrier(1);
    waitword::once_flag flag;
    semaphore.release();
    if (semaphore.try_acquire_for(minutes(1)) && latch.try_wait())
        barrier.arrive_and_wait();
    waitword::call_once(flag, [] {});
    waitword::atomic_wait(&atomic, 'a');
    waitword::atomic_notify_all(&atomic);
}
";

#[test]
fn the_cpp_header() {
    const STRICT: [&str; 8] = [
        "-Wold-style-cast",
        "-Wconversion",
        "-Wsign-conversion",
        "-Wcast-qual",
        "-Wcast-align",
        "-Wnon-virtual-dtor",
        "-Woverloaded-virtual",
        "-Wdouble-promotion",
    ];
    for standard in ["c++17", "c++20", "gnu++20"] {
        compiles(Language::Cpp, standard, USE_CPP, &STRICT);
    }
    let without = ["-fno-exceptions", "-fno-rtti"];
    compiles(Language::Cpp, "c++17", USE_CPP, &without);
}

#[test]
fn each_part_of_the_cpp_header() {
    let parts = std::fs::read_dir(package().join("include/waitword")).expect("the parts");
    for part in parts {
        let part = part.expect("readable").file_name();
        let text = format!("#include <waitword/{}>\n", part.to_string_lossy());
        compiles(Language::Cpp, "c++17", &text, &[]);
    }
}

#[test]
fn the_cpp_header_says_what_it_needs() {
    if Language::Cpp.is_here() {
        let mut command = check(Language::Cpp, "c++14", "#include <waitword.hpp>\n", &[]);
        let (success, output) = watchdog::run_either_way(&mut command, watchdog::BUILD);
        assert!(!success && output.contains("waitword.hpp needs C++17"), "{output}");
    }
}
