//! `install.sh`: the files that it installs, the properties of the installed library, and
//! uninstallation.

use crate::installed::{install_script, package, prefix};
use crate::watchdog::{self, run_either_way};
use crate::{pkg_config, scratch};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const MAJOR: &str = env!("CARGO_PKG_VERSION_MAJOR");

/// All files and links below `folder`, as paths relative to it.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("readable").flatten() {
            if entry.file_type().expect("readable").is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path();
                let path = path.strip_prefix(folder).expect("below it");
                files.insert(path.to_str().expect("plain").to_owned());
            }
        }
    }
    files
}

fn expected_files() -> BTreeSet<String> {
    let parts = std::fs::read_dir(package().join("include/waitword"))
        .expect("the parts of the C++ header")
        .map(|part| part.expect("readable").file_name())
        .map(|part| format!("include/waitword/{}", part.to_string_lossy()));
    let mut files = BTreeSet::from([
        "include/waitword.h".to_owned(),
        "include/waitword.hpp".to_owned(),
        "lib/libwaitword.a".to_owned(),
        "lib/libwaitword.so".to_owned(),
        format!("lib/libwaitword.so.{MAJOR}"),
        format!("lib/libwaitword.so.{VERSION}"),
        "lib/pkgconfig/waitword.pc".to_owned(),
    ]);
    files.extend(parts);
    files
}

/// The output of a binutils tool for the shared library.
fn ask(tool: &str, options: &[&str]) -> String {
    let library = prefix().join("lib/libwaitword.so");
    let mut command = Command::new(tool);
    command.args(options).arg(library);
    watchdog::run(&mut command, watchdog::PROGRAM)
}

#[test]
fn everything_is_installed_and_nothing_else() {
    assert_eq!(files_below(prefix()), expected_files());
    assert_eq!(pkg_config::ask(&["--modversion"]), [VERSION]);
}

#[test]
fn the_library_has_a_soname_and_stays_loaded() {
    let dynamic = ask("readelf", &["--dynamic", "--wide"]);
    assert!(dynamic.contains(&format!("[libwaitword.so.{MAJOR}]")), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let exported: BTreeSet<String> = ask("nm", &["--dynamic", "--defined-only", "--format=posix"])
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    let header = std::fs::read_to_string(package().join("include/waitword.h")).expect("a header");
    let declared: BTreeSet<String> = header
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .map(str::to_owned)
        .collect();
    assert!(declared.contains("ww_futex_wait"), "{declared:?}");
    assert_eq!(exported, declared);
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
fn into_a_package_and_out_again() {
    let destdir = scratch::folder().join("package root");
    let arguments = ["--prefix=/opt/ww", "--destdir"];
    watchdog::run(install_script().args(arguments).arg(&destdir), watchdog::BUILD);
    assert_eq!(files_below(&destdir.join("opt/ww")), expected_files());
    let pc = destdir.join("opt/ww/lib/pkgconfig/waitword.pc");
    let pc = std::fs::read_to_string(pc).expect("installed");
    assert!(pc.starts_with("prefix=/opt/ww\n"), "{pc}");

    let mut uninstall = install_script();
    uninstall.args(arguments).arg(&destdir).arg("--uninstall");
    watchdog::run(&mut uninstall, watchdog::PROGRAM);
    assert_eq!(files_below(&destdir), BTreeSet::new());
    assert!(!destdir.join("opt/ww/include/waitword").exists());
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_built() {
    for (arguments, complaint) in [
        (&["--prefix"][..], "--prefix needs a directory"),
        (&["--prefix", "here"], "--prefix must be an absolute path, not 'here'"),
        (&["--perfix=/tmp"], "unknown argument: --perfix=/tmp"),
        (&["--prefix=/proc/version/x"], "/proc/version is not a directory"),
    ] {
        let (success, output) = run_either_way(install_script().args(arguments), watchdog::PROGRAM);
        assert!(!success && output.contains(complaint), "{arguments:?}: {output}");
        assert!(!output.contains("Compiling"), "{output}");
    }
}
