//! Compiles blocks in C and C++ against the installed library, with all warnings as errors.
//!
//! A block that defines `main` is a program: it is linked, and runs unless it says `no_run`. Any
//! other block is a part of one and is compiled only; the headers that it needs are included for
//! it. With the attribute `body` it is the inside of a function.

use crate::blocks::Block;
use crate::shell;
use std::path::Path;
use std::process::Command;

const C_HEADERS: &str = "#define _GNU_SOURCE\n\
    #include <errno.h>\n#include <pthread.h>\n#include <sched.h>\n#include <semaphore.h>\n\
    #include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #include <string.h>\n#include <time.h>\n#include <unistd.h>\n#include <sys/mman.h>\n\
    #include <sys/wait.h>\n#include <linux/futex.h>\n#include <sys/syscall.h>\n\
    #include <waitword.h>\n";
const CPP_HEADERS: &str = "#include <atomic>\n#include <chrono>\n#include <condition_variable>\n\
    #include <cstdint>\n#include <mutex>\n#include <semaphore>\n#include <shared_mutex>\n\
    #include <stop_token>\n#include <thread>\n#include <vector>\n#include <waitword.hpp>\n";

/// What a block became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Compiled,
    Ran,
}

/// Compiles a block in this directory, and runs it if it is a program.
pub(crate) fn compile(block: &Block, number: usize, place: &Path) -> Result<Done, String> {
    let is_cpp = block.language == "cpp";
    let is_program = block.text.contains("int main(");
    let source = if is_program {
        block.text.clone()
    } else {
        let headers = if is_cpp { CPP_HEADERS } else { C_HEADERS };
        let text = &block.text;
        if block.has("body") {
            format!("{headers}void part(void);\nvoid part(void)\n{{\n{text}}}\n")
        } else {
            format!("{headers}{text}")
        }
    };
    let ending = if is_cpp { "cpp" } else { "c" };
    let file = place.join(format!("block-{number}.{ending}"));
    std::fs::write(&file, source).map_err(|error| format!("{}: {error}", file.display()))?;
    let program = file.with_extension("");
    let mut compiler = if is_cpp { Command::new("g++") } else { Command::new("gcc") };
    compiler.current_dir(place).arg(if is_cpp { "-std=c++20" } else { "-std=gnu11" });
    compiler.args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread"]).arg(&file);
    let libraries = shell::output("pkg-config --cflags --libs waitword", place)?;
    let libraries = libraries.split_whitespace();
    if is_program {
        compiler.args(libraries).arg("-o").arg(&program);
    } else {
        compiler.args(libraries.filter(|word| word.starts_with("-I")));
        // What a part declares is used elsewhere.
        compiler.args(["-Wno-unused", "-c", "-o"]);
        compiler.arg(file.with_extension("o"));
    }
    let output = compiler.output().map_err(|error| format!("the compiler: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} does not compile:\n{errors}", block.place()));
    }
    if !is_program || block.has("no_run") {
        return Ok(Done::Compiled);
    }
    let (status, text) = shell::run(&program.display().to_string(), place)?;
    if status == 0 {
        Ok(Done::Ran)
    } else {
        Err(format!("{} ends with status {status}:\n{text}", block.place()))
    }
}
