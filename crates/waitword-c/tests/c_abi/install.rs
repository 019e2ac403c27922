//! `install.sh`: the files that it installs, where, and uninstallation.

use crate::installed::{install_script, is_installed, package, prefix};
use crate::watchdog::{self, run_either_way};
use crate::{pkg_config, scratch};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
pub(crate) const MAJOR: &str = env!("CARGO_PKG_VERSION_MAJOR");

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

/// What is installed below the prefix, with the libraries in its folder `libdir`.
fn expected_files(libdir: &str) -> BTreeSet<String> {
    let parts = std::fs::read_dir(package().join("include/waitword"))
        .expect("the parts of the C++ header")
        .map(|part| part.expect("readable").file_name())
        .map(|part| format!("include/waitword/{}", part.to_string_lossy()));
    let mut files = BTreeSet::from([
        "include/waitword.h".to_owned(),
        "include/waitword.hpp".to_owned(),
        format!("{libdir}/libwaitword.a"),
        format!("{libdir}/libwaitword.so"),
        format!("{libdir}/libwaitword.so.{MAJOR}"),
        format!("{libdir}/libwaitword.so.{VERSION}"),
        format!("{libdir}/pkgconfig/waitword.pc"),
        format!("{libdir}/cmake/waitword/waitword-config.cmake"),
        format!("{libdir}/cmake/waitword/waitword-config-version.cmake"),
        format!("{libdir}/libwaitword.so.{VERSION}-gdb.py"),
        "share/waitword/gdb/waitword-gdb.py".to_owned(),
    ]);
    files.extend(parts);
    let printers = std::fs::read_dir(package().join("../../tools/gdb/waitword_gdb"))
        .expect("the parts of what gdb loads")
        .map(|part| part.expect("readable").file_name().into_string().expect("text"))
        .filter(|part| part.ends_with(".py"))
        .map(|part| format!("share/waitword/gdb/waitword_gdb/{part}"));
    files.extend(printers);
    if is_installed("python3", "the manual pages") {
        let mut list = Command::new(package().join("../../scripts/man-pages"));
        let pages = watchdog::run(list.arg("--list"), watchdog::PROGRAM);
        assert!(pages.contains("man3/ww_futex_wait.3\n"), "{pages}");
        files.extend(pages.lines().map(|page| format!("share/man/{page}")));
    }
    files
}

#[test]
fn everything_is_installed_and_nothing_else() {
    assert_eq!(files_below(prefix()), expected_files("lib"));
    assert_eq!(pkg_config::ask(&["--modversion"]), [VERSION]);
}

/// The lines of the installed `waitword.pc` that name directories.
fn directories(pc: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(pc).expect("installed");
    text.lines().filter(|line| line.contains("dir=")).map(str::to_owned).collect()
}

#[test]
fn into_a_package_and_out_again() {
    let destdir = scratch::folder().join("package root");
    let arguments = ["--prefix=/opt/ww", "--destdir"];
    watchdog::run(install_script().args(arguments).arg(&destdir), watchdog::BUILD);
    assert_eq!(files_below(&destdir.join("opt/ww")), expected_files("lib"));
    let pc = destdir.join("opt/ww/lib/pkgconfig/waitword.pc");
    assert_eq!(directories(&pc), ["libdir=${prefix}/lib", "includedir=${prefix}/include"]);
    let pc = std::fs::read_to_string(pc).expect("installed");
    assert!(pc.starts_with("prefix=/opt/ww\n"), "{pc}");

    let mut uninstall = install_script();
    uninstall.args(arguments).arg(&destdir).arg("--uninstall");
    watchdog::run(&mut uninstall, watchdog::PROGRAM);
    assert_eq!(files_below(&destdir), BTreeSet::new());
    assert!(!destdir.join("opt/ww/include/waitword").exists());
}

/// As for a Debian package, and with the directories from the environment.
#[test]
fn the_libraries_go_where_libdir_says() {
    let destdir = scratch::folder().join("multiarch");
    let script = |arguments: &[&str]| {
        let mut script = install_script();
        script.env("DESTDIR", &destdir).env("PREFIX", "/usr").args(arguments);
        script
    };
    let libdir = ["--libdir", "/usr/lib/x86_64-linux-gnu"];
    watchdog::run(&mut script(&libdir), watchdog::BUILD);
    let mut expected = expected_files("lib/x86_64-linux-gnu");
    // In /usr, gdb has a directory of its own, which it trusts.
    let beside = format!("lib/x86_64-linux-gnu/libwaitword.so.{VERSION}-gdb.py");
    assert!(expected.remove(&beside));
    expected.insert(format!("share/gdb/auto-load/usr/{beside}"));
    assert_eq!(files_below(&destdir.join("usr")), expected);
    let pc = destdir.join("usr/lib/x86_64-linux-gnu/pkgconfig/waitword.pc");
    assert_eq!(
        directories(&pc),
        ["libdir=${prefix}/lib/x86_64-linux-gnu", "includedir=${prefix}/include"]
    );

    // An option has precedence over the environment. A directory outside the prefix stays as it is.
    let elsewhere = ["--prefix=/opt", "--libdir=/lib64"];
    watchdog::run(&mut script(&elsewhere), watchdog::BUILD);
    assert_eq!(
        directories(&destdir.join("lib64/pkgconfig/waitword.pc")),
        ["libdir=/lib64", "includedir=${prefix}/include"]
    );

    for arguments in [libdir, elsewhere] {
        watchdog::run(script(&arguments).arg("--uninstall"), watchdog::PROGRAM);
    }
    assert_eq!(files_below(&destdir), BTreeSet::new());
}

/// Its neighbours have similar names. The library of an earlier version goes too.
#[test]
fn uninstallation_removes_nothing_of_others() {
    let destdir = scratch::folder().join("shared");
    let mut install = install_script();
    watchdog::run(install.arg("--prefix=/usr").arg("--destdir").arg(&destdir), watchdog::BUILD);
    let others = [
        "usr/lib/libwaitword.so.backup",
        "usr/lib/libwaitword_pthread.so",
        "usr/include/waitword/own.hpp",
        "usr/lib/pkgconfig/waitword-more.pc",
        "usr/lib/cmake/waitword/own.cmake",
        "usr/share/man/man3/ww_own.3",
        "usr/share/waitword/gdb/waitword_gdb/own.py",
    ];
    for file in others.into_iter().chain(["usr/lib/libwaitword.so.0.0.9"]) {
        std::fs::write(destdir.join(file), "").expect("writable");
    }
    let mut uninstall = install_script();
    uninstall.args(["--uninstall", "--prefix=/usr", "--destdir"]).arg(&destdir);
    watchdog::run(&mut uninstall, watchdog::PROGRAM);
    assert_eq!(files_below(&destdir), others.map(str::to_owned).into());
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_built() {
    for (arguments, complaint) in [
        (&["--prefix"][..], "--prefix needs a directory"),
        (&["--prefix", "here"], "--prefix must be an absolute path, not 'here'"),
        (&["--libdir=lib"], "--libdir must be an absolute path, not 'lib'"),
        (&["--perfix=/tmp"], "unknown argument: --perfix=/tmp"),
        (&["--prefix=/proc/version/x"], "/proc/version is not a directory"),
    ] {
        let (success, output) = run_either_way(install_script().args(arguments), watchdog::PROGRAM);
        assert!(!success && output.contains(complaint), "{arguments:?}: {output}");
        assert!(!output.contains("Compiling"), "{output}");
    }
}
