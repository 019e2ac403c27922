//! The installed shared library as the dynamic loader sees it: its symbols and their versions, what
//! it needs, and what it costs.

use crate::install::MAJOR;
use crate::installed::{package, prefix, target_directory};
use crate::watchdog;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The output of a binutils tool for the shared library.
fn ask(tool: &str, options: &[&str]) -> String {
    ask_about(&prefix().join("lib/libwaitword.so"), tool, options)
}

fn ask_about(library: &Path, tool: &str, options: &[&str]) -> String {
    let mut command = Command::new(tool);
    command.args(options).arg(library);
    watchdog::run(&mut command, watchdog::PROGRAM)
}

/// The functions that `waitword.h` declares.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(package().join("include/waitword.h")).expect("a header");
    let declared: BTreeSet<String> = header
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .map(str::to_owned)
        .collect();
    assert!(declared.contains("ww_futex_wait"), "{declared:?}");
    declared
}

/// The names in `waitword.map` in the form `ww_name@@NODE`, as nm prints them.
fn mapped() -> BTreeSet<String> {
    let map = std::fs::read_to_string(package().join("waitword.map")).expect("a map");
    let mut node = "";
    let mut names = BTreeSet::new();
    for line in map.lines() {
        if let Some(name) = line.strip_suffix(" {").filter(|name| name.starts_with("WAITWORD_")) {
            node = name;
        } else if let Some(name) = line.trim().strip_suffix(';').filter(|n| n.starts_with("ww_")) {
            assert!(names.insert(format!("{name}@@{node}")), "{name} is there twice");
        }
    }
    names
}

#[test]
fn the_library_has_a_soname_and_stays_loaded() {
    let dynamic = ask("readelf", &["--dynamic", "--wide"]);
    assert!(dynamic.contains(&format!("[libwaitword.so.{MAJOR}]")), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
}

/// Every public function has its version, and nothing else is exported: not a single symbol of
/// Rust's standard library, which the archive contains.
#[test]
fn the_library_exports_what_the_header_declares() {
    let mapped = mapped();
    let exported: BTreeSet<String> = ask("nm", &["--dynamic", "--defined-only", "--format=posix"])
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        // The versions themselves.
        .filter(|name| !name.starts_with("WAITWORD_"))
        .collect();
    assert_eq!(exported, mapped);
    let unversioned: BTreeSet<String> = exported
        .iter()
        .map(|name| name.split_once("@@").expect("a default version").0.to_owned())
        .collect();
    assert_eq!(unversioned, declared());
}

/// Not even once: a symbol lookup waits for the lock that `dlopen` holds while it runs
/// constructors.
#[test]
fn the_library_asks_the_dynamic_loader_for_nothing_while_it_runs() {
    let imports = ask("nm", &["--dynamic", "--undefined-only", "--format=posix"]);
    assert!(imports.contains("getauxval@GLIBC"), "{imports}");
    for look_up in ["dlsym", "dlvsym", "dlopen"] {
        assert!(!imports.contains(&format!("{look_up}@")), "{imports}");
    }
}

#[test]
fn the_library_needs_the_c_library_and_the_unwinder() {
    let dynamic = ask("readelf", &["--dynamic", "--wide"]);
    let mut needed: Vec<&str> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| line.split(['[', ']']).nth(1))
        // For `__tls_get_addr`.
        .filter(|name| !name.starts_with("ld-linux"))
        .collect();
    needed.sort_unstable();
    assert_eq!(needed, ["libc.so.6", "libgcc_s.so.1"]);
    // Its pages are shared between processes, and nothing in it is writable and executable.
    assert!(!dynamic.contains("TEXTREL"), "{dynamic}");
    let segments = ask("readelf", &["--segments", "--wide"]);
    assert!(segments.contains("GNU_RELRO") && !segments.contains("RWE"), "{segments}");
}

/// The code and data that a process maps, without debugging information.
fn mapped_bytes(library: &Path) -> u64 {
    let size = ask_about(library, "size", &["--format=berkeley"]);
    let numbers = size.lines().nth(1).expect("a line below the heading");
    numbers.split_whitespace().take(2).map(|n| n.parse::<u64>().expect("a number")).sum()
}

/// `install.sh` links the library itself. It drops as much as rustc would.
#[test]
fn the_library_is_no_larger_than_the_one_that_cargo_links() {
    let installed = mapped_bytes(&prefix().join("lib/libwaitword.so"));
    let cargo_s = mapped_bytes(&target_directory().join("release/libwaitword.so"));
    assert!(installed <= cargo_s + cargo_s / 50, "{installed} bytes, and cargo's has {cargo_s}");
}
