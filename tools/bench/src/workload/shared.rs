//! `shared`: two threads wait for each other on a word that several processes could map.
//!
//! **Work.** The game of `ping-pong`, on a word in shared memory, with futexes that reach waiters
//! in every process. Our waiters sleep in the kernel there, at every width: for 64 bits on both
//! halves of the word, for 8 and 16 bits on the enclosing 32-bit word.
//!
//! **Reproduces** nothing: no kernel has these widths. The baseline is the kernel's 32-bit shared
//! futex.
//!
//! **Figures.** Nanoseconds per hand-off, spin off. The cost of a call that has nothing to do is in
//! `calls`; [`Called`](crate::ops::Called) explains *futex(2), inlined*.

use crate::crew::Crew;
use crate::harness::{Case, Metric, Workload};
use crate::ops::{Futexes, Inlined, Kernel};
use crate::settings::Settings;
use crate::workload::futexes::kernel_and_all_widths;
use crate::workload::ping_pong::{Placement, Spin, contender};
use std::rc::Rc;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "shared",
    about: "two threads wait for and wake each other on a process-shared word",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 42,
    cases,
};

const METRICS: &[Metric] = &[Metric::less("", "ns")];
const SHARED: bool = false;

fn cases(_: &Settings) -> Vec<Case> {
    let case = |placement: Placement| {
        Case::new(placement.name(), METRICS, 6, move |context| {
            let crew = Rc::new(Crew::new(2, context)?);
            fn one<F: Futexes>(
                futex: F,
                crew: &Rc<Crew>,
                placement: Placement,
            ) -> crate::harness::Contender {
                contender(futex, "", crew, placement, Spin::Off, SHARED)
            }
            let mut all = kernel_and_all_widths!(SHARED, |futex| one(futex, &crew, placement));
            all.push(one(Inlined(Kernel::<SHARED>), &crew, placement));
            Ok(all)
        })
    };
    Placement::all().map(case).collect()
}
