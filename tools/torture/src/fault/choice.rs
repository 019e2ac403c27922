//! Which faults a slice has, and what each does: functions of the seed.

use super::kind::Fault;
use crate::context::Context;
use crate::seed::{mix, mix_with};
use std::time::Duration;

/// Which faults may be injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// In each slice, those that the seed chooses.
    BySeed,
    /// In each slice, these.
    These(Vec<Fault>),
}

/// The faults of one slice of a scenario: a function of its arguments alone.
pub(crate) fn chosen(
    wanted: &Wanted,
    clock: bool,
    seed: u64,
    name: &str,
    slice: u64,
) -> Vec<Fault> {
    let by_name = mix_with(seed, name);
    let mut dice = fastrand::Rng::with_seed(mix(by_name ^ slice.rotate_left(17)));
    let mut faults: Vec<Fault> = match wanted {
        // Some slices have no fault. That also finds what goes wrong only on an undisturbed
        // machine.
        Wanted::BySeed => (Fault::all().iter().copied()).filter(|_| dice.u32(0..3) == 0).collect(),
        Wanted::These(these) => these.clone(),
    };
    faults.retain(|&fault| fault != Fault::Clock || clock);
    faults
}

/// The choices of the `number`-th fault of a kind, in a scenario's own process.
pub(super) fn noted_choices(context: &Context, fault: Fault, number: u64) -> fastrand::Rng {
    let dice = choices(context.seed, fault, number);
    let first = dice.clone().u64(..);
    (context.choices).note(format_args!("fault {} {number}: {first}", fault.name()));
    dice
}

/// The choices of the `number`-th fault of a kind, independent of those before.
pub(crate) fn choices(seed: u64, fault: Fault, number: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(mix(mix(seed ^ ((fault as u64 + 1) << 48)) ^ number))
}

/// A pause until the next fault: from 200 µs to `most` milliseconds.
pub(super) fn pause(dice: &mut fastrand::Rng, most: u64) -> Duration {
    Duration::from_micros(dice.u64(200..most * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_a_function_of_the_seed() {
        let of = |seed, name, slice| chosen(&Wanted::BySeed, true, seed, name, slice);
        let some: Vec<_> = (0..64).map(|slice| of(7, "ring", slice)).collect();
        let again: Vec<_> = (0..64).map(|slice| of(7, "ring", slice)).collect();
        assert_eq!(some, again);
        assert!(Fault::all().iter().all(|fault| some.iter().any(|set| set.contains(fault))));
        assert!(some.iter().any(Vec::is_empty));
        let others: Vec<_> = (0..64).map(|slice| of(8, "ring", slice)).collect();
        assert_ne!(some, others);
        let no_clock = chosen(&Wanted::These(Fault::all().to_vec()), false, 7, "ring", 0);
        assert!(!no_clock.contains(&Fault::Clock) && no_clock.len() == Fault::all().len() - 1);
    }

    #[test]
    fn each_fault_has_its_own_choices() {
        let draw = |seed, fault, number| choices(seed, fault, number).u64(..);
        assert_eq!(draw(1, Fault::Stop, 5), draw(1, Fault::Stop, 5));
        assert_ne!(draw(1, Fault::Stop, 5), draw(1, Fault::Stutter, 5));
        assert_ne!(draw(1, Fault::Stop, 5), draw(1, Fault::Stop, 6));
    }
}
