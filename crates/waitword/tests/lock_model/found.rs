//! Regression tests: programs that the fuzzer found. Each differed once.

use super::Bench;
use super::family::Family;
use super::program::{Limit::*, Program, Step, Step::*};
use super::rwlocks::{self, Call::*, Hold::*, RwLocks};
use waitword::{Preference, Scope};

fn as_modelled<F: Family>(made: F::Made, steps: Vec<Step<F::Call>>) {
    let program = Program::<F> { made, steps };
    if let Err(difference) = Bench::new().run(&program, None) {
        panic!("{difference}");
    }
}

/// What earlier waiters have left does not keep a reader out of a free lock.
#[test]
fn a_trylock_of_a_free_lock() {
    as_modelled::<RwLocks>(
        rwlocks::Sort { preference: Preference::Writer, scope: Scope::Shared, fast: false },
        vec![
            By(1, Take(Write, Forever)),
            By(0, Take(Write, Forever)),
            By(1, Leave(Write)),
            By(2, Take(Read, Soon)),
            By(0, Leave(Write)),
            By(2, Try(Read)),
        ],
    );
}
