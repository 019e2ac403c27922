//! `waitword.h` needs no other header before it, in every C and C++ since 1999 and 2011.

use crate::installed::{Language, package};
use crate::{scratch, watchdog};
use std::process::Command;

/// Every constant is there for the preprocessor, and every function for the linker.
const USE: &str = "\
#include <waitword.h>
#include <waitword.h>
#if !defined WW_SIZE_U64 || !defined WW_PRIVATE || !defined WW_NUMA || !defined WW_OP_XOR
#error a constant is not a macro
#endif
#if WW_VERSION < 1000 || WW_MASK_U64 != 0xffffffffffffffff
#error not for #if
#endif
long wait_forever(void *word);
long wait_forever(void *word)
{
    return ww_futex_wait(word, 0, WW_MASK_U64, WW_SIZE_U64 | WW_PRIVATE, 0, 0);
}
";

fn compiles(language: Language, standard: &str) {
    if !language.is_here() {
        return;
    }
    let extension = if language == Language::C { "c" } else { "cpp" };
    let source = scratch::new_file(extension);
    std::fs::write(&source, USE).expect("the scratch folder is writable");
    let mut command = Command::new(language.compiler());
    command
        .arg(format!("-std={standard}"))
        .args([
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            "-I",
        ])
        .arg(package().join("include"))
        .arg(&source);
    watchdog::run(&mut command, watchdog::PROGRAM);
}

#[test]
fn in_c() {
    for standard in ["c99", "c11", "gnu17"] {
        compiles(Language::C, standard);
    }
}

#[test]
fn in_cpp() {
    for standard in ["c++11", "c++17", "gnu++20"] {
        compiles(Language::Cpp, standard);
    }
}
