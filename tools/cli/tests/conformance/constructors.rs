//! Threads that a library starts and waits for while the dynamic loader holds its lock.

use crate::programs::{LinkedWithDropIn, Program, Under, drop_in};
use crate::report::Report;
use object::Object as _;
use std::collections::BTreeSet;

pub(crate) fn program() -> Program {
    Program::new("constructors.c")
        .with_library("constructors_early.c")
        .with_plugin("constructors_plugin.c")
}

/// Tries every way for the drop-in to get into the process, before and after its constructors have
/// run, and also with the drop-in switched off. (`conformance.rs` tries the most common way.)
#[test]
fn every_function_may_be_the_first_in_such_a_thread() {
    for (way, linked, variables) in [
        ("preloaded", LinkedWithDropIn::Nothing, &[][..]),
        ("linked", LinkedWithDropIn::Program, &[]),
        ("loaded", LinkedWithDropIn::Plugin, &[("CONFORMANCE_DEEPBIND", "1")]),
    ] {
        let program = program()
            .linked_with_drop_in(linked)
            .with_variables(&[("CONFORMANCE_SERVED_BY", "waitword_pthread")])
            .with_variables(variables);
        let built = program.build();
        let under = match linked {
            LinkedWithDropIn::Nothing => Under::DropIn,
            LinkedWithDropIn::Program | LinkedWithDropIn::Plugin => Under::Glibc,
        };
        for early in [&[][..], &[("CONFORMANCE_EARLY", "1")]] {
            for waitword in ["on", "off"] {
                let variables = [early, &[("WAITWORD", waitword)]].concat();
                let report = Report::of(&program, &built.run_with(under, &variables));
                let wrong = report.wrong(&format!("{way}, {variables:?}"));
                assert!(wrong.is_empty(), "{}", wrong.join("\n"));
            }
        }
    }
}

#[test]
fn every_exported_function_has_a_case() {
    let library = std::fs::read(drop_in()).unwrap();
    let library = object::File::parse(&*library).unwrap();
    let exports = library.exports().unwrap();
    let exported: BTreeSet<_> =
        exports.iter().map(|export| String::from_utf8_lossy(export.name()).into_owned()).collect();
    let tried: BTreeSet<_> = program()
        .build()
        .cases()
        .iter()
        .filter_map(|case| Some(case.rsplit_once('_')?.0.to_owned()))
        .collect();
    assert_eq!(exported, tried);
}
