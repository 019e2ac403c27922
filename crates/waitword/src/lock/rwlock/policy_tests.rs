//! The decisions, on simulated time and under a scripted load.

use super::policy::*;
use super::rank::{READ, READ_UPGRADABLY, UPGRADE, WRITE};
use super::word::{
    PREFER_WRITER, READER, READERS_TURN, READERS_WAIT, Release, SHARED, State, TURN, UPGRADABLE,
    UPGRADE_WAITS, WOKEN, WRITER, WRITERS_WAIT,
};
use core::cell::Cell;
use core::time::Duration;

const ALL_READERS: Next = Next::Readers { and_upgradable: true };

/// A machine that does what the test says.
#[derive(Default)]
struct Script {
    now: Cell<Duration>,
    others_compete: bool,
    cpus_are_idle: bool,
}

impl Surroundings for Script {
    fn now(&self) -> Duration {
        self.now.get()
    }

    fn others_compete(&self) -> bool {
        self.others_compete
    }

    fn cpus_are_idle(&self) -> bool {
        self.cpus_are_idle
    }
}

impl Script {
    fn load(others_compete: bool, cpus_are_idle: bool) -> Self {
        let now = Cell::new(Duration::from_secs(1000));
        Self { now, others_compete, cpus_are_idle }
    }

    fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }
}

#[test]
fn the_next_waiter_by_preference() {
    let both = READERS_WAIT | WRITERS_WAIT;
    for (word, first, next) in [
        (both, WRITE, ALL_READERS),
        (both | PREFER_WRITER, READ, Next::AWriter),
        (READERS_WAIT | PREFER_WRITER, READ, ALL_READERS),
        (WRITERS_WAIT, WRITE, Next::AWriter),
        // One of them is awake.
        (WRITERS_WAIT | WOKEN, WRITE, Next::None),
        // A reader still holds it.
        (WRITERS_WAIT | READER, WRITE, Next::AnUpgradable),
        (WRITERS_WAIT | UPGRADABLE, WRITE, Next::None),
        (both | WRITER, READ, Next::None),
        // The `UPGRADABLE` holder comes first.
        (both | UPGRADABLE | UPGRADE_WAITS, READ, Next::Upgrader),
    ] {
        let state = State(word);
        assert_eq!(Policy::next(state, first, false), next, "{state:?}");
    }
}

#[test]
fn the_first_waiter_is_next_in_a_turn() {
    for preference in [0, PREFER_WRITER] {
        let state = State(READERS_WAIT | WRITERS_WAIT | preference).with_turn(FIRST_TURN);
        assert_eq!(Policy::next(state, WRITE, false), Next::First);
        assert_eq!(Policy::next(state, READ, false), ALL_READERS);
        // A reader still holds the lock.
        let read = state.with_readers(1);
        assert_eq!(Policy::next(read, WRITE, false), Next::None);
    }
}

#[test]
fn a_look_takes_the_waiters_that_are_next() {
    let kinds = [READ, WRITE, READ_UPGRADABLY, UPGRADE];
    let serves = |next, is_real_time, prefers_writers| {
        kinds.map(|kind| Policy::serves(next, kind, is_real_time, prefers_writers))
    };
    use Serve::{Pass, Stop, Take};
    let readers_only = Next::Readers { and_upgradable: false };
    for (next, taken) in [
        (Next::None, [Stop; 4]),
        (ALL_READERS, [Take, Pass, Take, Pass]),
        (readers_only, [Take, Pass, Pass, Pass]),
        (Next::First, [Take; 4]),
        (Next::AWriter, [Pass, Take, Take, Pass]),
        (Next::AnUpgradable, [Pass, Pass, Take, Pass]),
        (Next::Upgrader, [Pass, Pass, Pass, Take]),
    ] {
        assert_eq!(serves(next, false, false), taken, "{next:?}");
    }
    // Readers behind a real-time writer wait for it.
    assert_eq!(serves(ALL_READERS, true, false), [Take, Stop, Take, Pass]);
    // A writer that came earlier.
    let upgradable = serves(Next::AnUpgradable, false, true);
    assert_eq!(upgradable, [Pass, Stop, Take, Pass]);
}

#[test]
fn competing_processes_make_a_release_wake_a_herd_under_reader_preference_only() {
    let [quiet, busy] = [false, true].map(|busy| Script::load(busy, false));
    assert_eq!(Policy::most_others(Next::AWriter, false, &busy), HERD);
    assert_eq!(Policy::most_others(Next::AWriter, false, &quiet), 1);
    assert_eq!(Policy::most_others(Next::AWriter, true, &busy), 1);
    // All others serve a single waiter.
    for next in [Next::First, Next::AnUpgradable, Next::Upgrader, ALL_READERS] {
        assert_eq!(Policy::most_others(next, false, &busy), 1);
    }
}

#[test]
fn a_release_in_the_kernel_wakes_the_next_and_clears_their_bit() {
    let both = READERS_WAIT | WRITERS_WAIT;
    let readers_only = Next::Readers { and_upgradable: false };
    for (word, release, next, cleared) in [
        (both, Release::Writer, readers_only, READERS_WAIT),
        (both | PREFER_WRITER, Release::Writer, Next::AWriter, WRITERS_WAIT),
        (WRITERS_WAIT, Release::Reader, Next::AWriter, WRITERS_WAIT),
        (WRITERS_WAIT | READER, Release::Reader, Next::None, 0),
        // Writers keep sleeping, and stay announced.
        (WRITERS_WAIT | READER, Release::Upgradable, Next::AnUpgradable, 0),
        (both | UPGRADABLE | UPGRADE_WAITS, Release::Reader, Next::Upgrader, UPGRADE_WAITS),
        (
            both | READERS_TURN | PREFER_WRITER,
            Release::Writer,
            readers_only,
            READERS_WAIT | READERS_TURN,
        ),
        // The turn of a thread that is gone.
        (2 << TURN.trailing_zeros(), Release::Writer, Next::None, TURN),
    ] {
        let after = State(word | SHARED);
        let (new, woken) = Policy::next_in_kernel(after, release);
        assert_eq!(woken, next, "{after:?}");
        let bits = both | UPGRADE_WAITS | READERS_TURN | TURN;
        assert_eq!(new.0 & bits, after.0 & bits & !cleared, "{after:?}");
        let counts = next != Next::None;
        assert_eq!(new.low_half() & !(bits as u32) != after.low_half() & !(bits as u32), counts);
    }
}

#[test]
fn a_free_lock_is_kept_for_a_turn_of_writers() {
    let turn = State(WRITERS_WAIT | SHARED).with_turn(FIRST_TURN);
    assert!(Policy::is_kept(turn));
    for other in [
        turn.without(TURN),
        turn.without(WRITERS_WAIT),
        turn.with(READERS_TURN),
        turn.with(WRITER),
        turn.with_readers(1),
    ] {
        assert!(!Policy::is_kept(other), "{other:?}");
        assert!(!Policy::was_kept_since(turn, other));
    }
    assert!(Policy::was_kept_since(turn, turn.with(READERS_WAIT)));
    assert!(!Policy::was_kept_since(turn, turn.with_turn(FIRST_TURN + 1)));
    assert!(!Policy::was_kept_since(turn, turn.waking(WRITERS_WAIT).with(WRITERS_WAIT)));
}

#[test]
fn the_first_re_check_by_preference_and_by_what_keeps_the_cpus_busy() {
    let (readers_first, writers_first) = (State(0), State(PREFER_WRITER));
    for (state, others_compete, cpus_are_idle, due) in [
        (readers_first, false, false, FIRST_ALARM_IF_BUSY),
        (readers_first, false, true, FIRST_ALARM_IF_IDLE),
        // CPUs that another process keeps busy look idle.
        (readers_first, true, true, FIRST_ALARM),
        (readers_first, true, false, FIRST_ALARM),
        (writers_first, false, true, FIRST_ALARM),
        (writers_first, false, false, FIRST_ALARM),
    ] {
        let on = Script::load(others_compete, cpus_are_idle);
        let mut recheck = Recheck::new();
        recheck.begin(state, &on);
        let first = recheck.next() - on.now();
        assert_eq!(first, due, "{state:?}, {others_compete}, {cpus_are_idle}");
    }
}

#[test]
fn a_turn_is_never_longer_than_its_owner_has_waited() {
    let loads = [
        (State(PREFER_WRITER), Script::load(false, false), 1_000),
        (State(0), Script::load(false, true), 100),
        (State(0), Script::load(false, false), 10_000),
    ];
    for (state, on, first) in loads {
        let first = Duration::from_micros(first);
        let began = on.now();
        let mut recheck = Recheck::new();
        recheck.begin(state, &on);
        let mut longest = Duration::ZERO;
        for firing in 0..60 {
            let step = (first * (1 << firing.min(20))).min(Duration::from_secs(1));
            on.pass(step);
            assert_eq!(recheck.next(), on.now(), "after {firing}");
            recheck.fire();
            let waited = on.now() - began;
            let length = Policy::length_of_turn(State(0).with_turn(recheck.turn()));
            assert!(length <= waited, "{length:?} after {waited:?}");
            // Nor does it fall behind: the bound that writers are promised depends on that.
            let due = match waited.as_millis() {
                0 => Duration::from_micros(100),
                _ => (waited / 4).min(Duration::from_secs(8)),
            };
            assert!(length >= due, "{length:?} after {waited:?}");
            longest = length;
        }
        assert_eq!(longest, Duration::from_millis(1 << 13));
    }
}

#[test]
fn patience_ends_once_however_often_the_sleep_is_disturbed() {
    let on = Script::load(false, false);
    let turn = State(0).with_turn(FIRST_TURN + 3);
    let mut patience = Patience::new();
    let end = patience.end(turn, &on);
    assert_eq!(end - on.now(), Duration::from_millis(8));
    on.pass(Duration::from_millis(5));
    assert_eq!(patience.end(turn.with_turn(FIRST_TURN + 5), &on), end);
}

#[test]
fn a_bias_needs_many_collisions_and_pauses_after_a_revocation() {
    assert!(!Policy::collide_enough(REPORTS - 1) && Policy::collide_enough(REPORTS));
    let on = Script::load(false, false);
    // 1 µs costs a pause of 4. A revocation that takes a second counts as 4 µs.
    for (takes, pauses) in [(1_000, 4_000), (1_000_000_000, 16_000)] {
        let began = nanoseconds(&on);
        on.pass(Duration::from_nanos(takes));
        let next = Policy::next_bias(began, &on);
        assert_eq!(next - nanoseconds(&on), pauses);
        on.pass(Duration::from_nanos(pauses - 1));
        assert!(!Policy::may_be_biased(next, &on));
        on.pass(Duration::from_nanos(1));
        assert!(Policy::may_be_biased(next, &on));
    }
}
