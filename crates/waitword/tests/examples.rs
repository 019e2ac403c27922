//! Runs the programs in `examples` to their ends: each checks what it shows.
//!
//! `cargo test` builds them. If only this test is requested, it does not; build them first with
//! `cargo build --examples`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use waitword_testkit::command::{output, texts};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Runs an example from the folder beside this test program's.
#[track_caller]
fn run(name: &str) {
    let this = std::env::current_exe().unwrap();
    let program = this.ancestors().nth(2).unwrap().join("examples").join(name);
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let source = changed(&sources().join(name).with_extension("rs"));
    assert!(
        source.is_some() && changed(&program) >= source,
        "{} is missing or older than its source: `cargo build --examples`",
        program.display()
    );
    texts(output(&mut Command::new(program)));
}

/// A test for each example, and one that checks that the folder holds no other examples.
macro_rules! examples {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*

        #[test]
        fn every_example_is_run() {
            let run: BTreeSet<_> = [$(stringify!($name).to_owned()),*].into();
            let there: BTreeSet<_> = fs::read_dir(sources())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            // `recorded` needs a feature: tools/cli/tests/linked.rs runs it.
            let there: BTreeSet<_> = there.into_iter().filter(|name| name != "recorded").collect();
            assert_eq!(run, there);
        }
    };
}

examples! {
    from_parking_lot
    park_threads
    ring_between_processes
    time_slices
    wait_on_many
    wasm_wait_notify
    work_queue
}
