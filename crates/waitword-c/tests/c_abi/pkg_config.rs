//! The contents of `waitword.pc`, from pkg-config, or read directly if there is no pkg-config: the
//! tests must also pass on a machine that has only Rust and a C compiler.

use crate::installed::{is_installed, prefix};
use crate::watchdog;
use std::collections::HashMap;
use std::process::Command;

/// The output of pkg-config for these options, as shell words.
pub(crate) fn ask(options: &[&str]) -> Vec<String> {
    let answer = if is_installed("pkg-config", "pkg-config itself") {
        let mut command = Command::new("pkg-config");
        command
            .args(options)
            .arg("waitword")
            .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
        watchdog::run(&mut command, watchdog::PROGRAM)
    } else {
        let fields: &[&str] = match options {
            ["--modversion"] => &["Version"],
            ["--cflags"] => &["Cflags"],
            ["--libs"] => &["Libs"],
            ["--static", "--libs"] => &["Libs", "Libs.private"],
            _ => panic!("not known by hand: {options:?}"),
        };
        by_hand(fields)
    };
    shlex::split(&answer).expect("shell words")
}

/// These fields of the file, with each `${name}` replaced by the value in its line `name=value`.
fn by_hand(fields: &[&str]) -> String {
    let text = std::fs::read_to_string(prefix().join("lib/pkgconfig/waitword.pc"))
        .expect("waitword.pc is installed");
    let mut variables: HashMap<&str, String> = HashMap::new();
    let expand = |value: &str, variables: &HashMap<&str, String>| {
        let mut value = value.to_owned();
        for (name, known) in variables {
            value = value.replace(&format!("${{{name}}}"), known);
        }
        value
    };
    let mut answer = String::new();
    for line in text.lines() {
        if let Some((field, value)) = line.split_once(": ") {
            if fields.contains(&field) {
                answer += &expand(value, &variables);
                answer.push(' ');
            }
        } else if let Some((name, value)) = line.split_once('=') {
            let value = expand(value, &variables);
            variables.insert(name, value);
        }
    }
    answer
}
