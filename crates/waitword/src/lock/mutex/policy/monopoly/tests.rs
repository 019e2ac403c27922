//! The policy of naps, on simulated samples.

use super::*;

const TOOK: u64 = SAMPLE.as_nanos() as u64;

/// Feeds samples of this many turns, one after another, and returns the resulting naps.
fn naps(monopoly: &mut Monopoly, turns: &[u32]) -> Vec<u64> {
    let nap = |&turns: &u32| {
        let (next, nap) = monopoly.with(turns, TOOK);
        assert_eq!(Monopoly::from_bits(next.to_bits(), false), next);
        *monopoly = next;
        nap
    };
    turns.iter().map(nap).collect()
}

#[test]
fn naps_become_longer_while_the_lock_is_monopolized_and_end_with_that() {
    let mut monopoly = Monopoly::default();
    let first = naps(&mut monopoly, &[4; 8]);
    assert_eq!(first[..3], [SHORTEST_NAP, 2 * SHORTEST_NAP, 4 * SHORTEST_NAP]);
    assert_eq!(first[7], ROTATE_EVERY);
    // A single sample does not decide.
    assert_eq!(naps(&mut monopoly, &[3]), [ROTATE_EVERY]);
    assert_eq!(naps(&mut monopoly, &[1, 2]), [0, 0]);
    assert!(!monopoly.is_one() && monopoly.are_short());
    assert_eq!(naps(&mut monopoly, &[15]), [SHORTEST_NAP]);
}

#[test]
fn a_sample_without_turns_is_inconclusive_and_four_end_a_monopoly() {
    let mut monopoly = Monopoly::default();
    naps(&mut monopoly, &[4; 8]);
    assert_eq!(naps(&mut monopoly, &[0, 0, 0]), [0; 3]);
    assert!(monopoly.is_one() && !monopoly.are_short());
    assert_eq!(naps(&mut monopoly, &[4]), [ROTATE_EVERY]);
    assert!(monopoly.are_short());
    naps(&mut monopoly, &[0; 4]);
    assert!(!monopoly.is_one() && !monopoly.are_short());
}

#[test]
fn where_cpu_time_is_scarce_a_lock_is_monopolized_sooner() {
    let usual = Monopoly::default();
    let scarce = Monopoly::from_bits(usual.to_bits(), true);
    let naps = |monopoly: Monopoly| {
        let (counted, by_turns) = monopoly.with(2, TOOK);
        assert_eq!(Monopoly::from_bits(counted.to_bits(), monopoly.cpu_is_scarce), counted);
        let (used, by_use) = monopoly.with_use(held_for(40));
        assert_eq!(used.is_saturated(), by_use != 0);
        [by_turns, by_use]
    };
    assert_eq!(naps(usual), [0, 0]);
    assert_eq!(naps(scarce), [SHORTEST_NAP, SHORTEST_NAP]);
    assert_eq!(scarce.with(1, TOOK).1, 0);
    assert_eq!(scarce.with_use(held_for(30)).1, 0);
    assert_eq!(turns_before_use(usual, 1), 8);
    assert_eq!(turns_before_use(scarce, 1), 2);
}

#[test]
fn a_sample_that_took_too_long_is_none() {
    let mut monopoly = Monopoly::default();
    naps(&mut monopoly, &[4]);
    assert_eq!(monopoly.with(15, 2 * TOOK), (monopoly, 0));
}

/// Eight turns in which the lock was held for this many hundredths of the time.
fn held_for(hundredths: u32) -> Option<Use> {
    Some(Use { looks: 100, held: hundredths, turns: ENOUGH_TURNS })
}

fn saturated() -> Monopoly {
    let (monopoly, nap) = Monopoly::default().with_use(held_for(80));
    assert_eq!(nap, SHORTEST_NAP);
    monopoly
}

#[test]
fn naps_become_longer_while_the_lock_is_saturated_and_its_use_is_sampled_now_and_then() {
    let mut monopoly = saturated();
    let mut naps = vec![];
    while monopoly.next_sample() == Sample::Nothing {
        let (next, nap) = monopoly.with_nap();
        assert_eq!(Monopoly::from_bits(next.to_bits(), false), next);
        naps.push(nap / SHORTEST_NAP);
        monopoly = next;
    }
    assert_eq!(naps, [2, 4, 8, 16]);
    assert_eq!(monopoly.next_sample(), Sample::Use);
    assert_eq!(monopoly.with_use(held_for(70)).1, ROTATE_EVERY);
    // Samples of turns by other waiters do not change it either.
    assert_eq!(monopoly.with(1, TOOK), (monopoly, 0));
}

#[test]
fn saturation_ends_with_the_mean_and_with_samples_that_say_nothing() {
    let seldom = held_for(20);
    let (monopoly, nap) = saturated().with_use(seldom);
    assert!(nap == 0 && !monopoly.is_one());
    let mut monopoly = saturated();
    for nothing in [None, Some(Use { turns: 1, ..held_for(100).unwrap() }), None] {
        let (next, nap) = monopoly.with_use(nothing);
        assert!(nap == 0 && next.is_one());
        monopoly = next;
    }
    assert!(!monopoly.with_use(None).0.is_one());
}

#[test]
fn saturation_ends_if_the_lock_was_left_alone_at_the_end_of_four_naps_in_a_row() {
    let mut monopoly = saturated();
    for is_in_use in [false, false, false, true, false, false, false] {
        monopoly = monopoly.with_nap_ended(is_in_use);
        assert!(monopoly.is_one());
    }
    // While the lock is used, its use looks the same. That does not restart the count.
    monopoly = monopoly.with_use(held_for(80)).0;
    let ended = monopoly.with_nap_ended(false);
    assert!(!ended.is_one() && !ended.is_saturated());
    assert_eq!(turns_before_use(ended, 0), 128);
}

#[test]
fn naps_at_a_lock_of_short_turns_are_on_hold_while_they_are_in_vain() {
    let mut monopoly = Monopoly::default();
    let nap_ends = |monopoly: &mut Monopoly, is_in_use| {
        assert_ne!(naps(monopoly, &[4]), [0]);
        *monopoly = monopoly.with_nap_ended(is_in_use);
    };
    for is_in_use in [false, false, false, true, false, false, false] {
        nap_ends(&mut monopoly, is_in_use);
        assert!(monopoly.is_one());
    }
    for hold in [8, 16, 32, 64, 128, 128] {
        nap_ends(&mut monopoly, false);
        assert!(!monopoly.is_one());
        assert_eq!(naps(&mut monopoly, &vec![4; hold]), vec![0; hold]);
    }
    // The lock is in use again.
    nap_ends(&mut monopoly, true);
    for _ in 0..3 {
        nap_ends(&mut monopoly, false);
    }
    assert!(monopoly.is_one());
}

/// How many samples of turns come before a sample of the use.
fn turns_before_use(mut monopoly: Monopoly, turns: u32) -> u32 {
    let mut samples = 0;
    while monopoly.next_sample() == Sample::Turns && samples < 1000 {
        monopoly = monopoly.with(turns, TOOK).0;
        samples += 1;
    }
    samples
}

#[test]
fn the_use_is_sampled_less_often_while_it_shows_nothing_and_not_at_all_if_turns_are_short() {
    let mut monopoly = Monopoly::default();
    for due in [8, 16, 32, 64, 128, 128] {
        assert_eq!(turns_before_use(monopoly, 0), due);
        monopoly = monopoly.with_use(held_for(30)).0;
    }
    let (known, _) = monopoly.with_use(held_for(60));
    assert_eq!(turns_before_use(known, 1), 128);
    let (known, _) = Monopoly::default().with_use(held_for(60));
    assert_eq!(turns_before_use(known, 1), 8);
    assert_eq!(turns_before_use(Monopoly::default(), 3), 1000);
}
