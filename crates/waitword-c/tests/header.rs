//! `include/waitword.h` is generated from `src/`, and must be up to date.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

const RENEW: &str = "WW_UPDATE_HEADER=1 cargo test -p waitword-c --test header";

/// The version macros. cargo knows the version; cbindgen cannot see it.
fn version_macros() -> String {
    let [major, minor, patch] = [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    ];
    format!(
        "\n\
         /* The version of this header (ww_version() returns the library's). \
         Compare it in #if as\n \
         * WW_VERSION >= major * 1000000 + minor * 1000 + patch. */\n\
         #define WW_VERSION_MAJOR {major}\n\
         #define WW_VERSION_MINOR {minor}\n\
         #define WW_VERSION_PATCH {patch}\n\
         #define WW_VERSION \
         (WW_VERSION_MAJOR * 1000000 + WW_VERSION_MINOR * 1000 + WW_VERSION_PATCH)\n\
         #define WW_VERSION_STRING \"{major}.{minor}.{patch}\""
    )
}

/// For each prefix of lock flags, the enumeration with the same names and values: debuggers know
/// enumerations, the preprocessor knows macros. (cbindgen writes the macros. The enumeration must
/// come first, because its names are macros after that.)
const ENUMS: [(&str, &str); 4] = [
    ("ww_scope_flag", "WW_PROCESS_"),
    ("ww_mutex_flag", "WW_MUTEX_"),
    ("ww_rwlock_flag", "WW_RWLOCK_"),
    ("ww_event_flag", "WW_EVENT_"),
];

fn enumerations(header: &str) -> String {
    let flags: Vec<(&str, &str)> = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '))
        .filter(|(_, value)| value.parse::<u32>().is_ok())
        .collect();
    let mut text =
        String::from("/* The lock flags as enumerations, for debuggers. Also macros, below. */");
    for (name, prefix) in ENUMS {
        let members: Vec<String> = flags
            .iter()
            .filter(|(flag, _)| flag.starts_with(prefix))
            .map(|(flag, value)| format!("    {flag} = {value}"))
            .collect();
        assert!(!members.is_empty(), "no flag begins with {prefix}");
        text += &format!("\nenum {name} {{\n{}\n}};", members.join(",\n"));
    }
    text
}

fn generate(package: &Path) -> String {
    let mut config = cbindgen::Config::from_file(package.join("cbindgen.toml"))
        .expect("cbindgen.toml can be read");
    let rest = config.after_includes.take().unwrap_or_default();
    config.after_includes = Some(format!("{}\n\n{}", version_macros(), rest.trim_start()));
    let bindings = cbindgen::Builder::new()
        .with_crate(package)
        .with_config(config)
        .generate()
        .expect("cbindgen reads src/");
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).expect("a header is text");
    text.replace("@ENUMS@", &enumerations(&text))
}

/// [`generate`] with a time limit: it runs cargo for the names of the sources, and cargo may
/// wait for another cargo.
fn generate_in_time(package: &'static Path) -> String {
    let (result, results) = mpsc::channel();
    std::thread::spawn(move || result.send(generate(package)));
    match results.recv_timeout(Duration::from_secs(300)) {
        Ok(header) => header,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("cbindgen hangs: nothing after 5 minutes"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("cbindgen failed: see above"),
    }
}

#[test]
fn header_is_current() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = package.join("include/waitword.h");
    let generated = generate_in_time(package);
    if std::env::var_os("WW_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &generated).expect("the header can be written");
        return;
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    if present == generated {
        return;
    }
    let line = present.lines().zip(generated.lines()).take_while(|(a, b)| a == b).count();
    panic!(
        "include/waitword.h is not current: line {} is\n    {}\nand should be\n    {}\n\
         Renew it with: {RENEW}",
        line + 1,
        present.lines().nth(line).unwrap_or("(missing)"),
        generated.lines().nth(line).unwrap_or("(missing)"),
    );
}
