//! What `waitword.pc` says: asked of pkg-config, or read by hand where there is none, since a machine that
//! has only Rust and a C compiler is to pass the tests too.

use crate::installed::{is_installed, prefix};
use crate::watchdog;
use std::collections::HashMap;
use std::process::Command;

/// pkg-config's answer to these options, as shell words.
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

/// These fields of the file, with `${name}` replaced by what the lines `name=value` say.
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
