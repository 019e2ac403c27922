//! The private barrier: no thread passes before all have arrived, one thread leads, and a wrong
//! number of arrivals heals.

use super::*;
use crate::Barrier;
use crate::lock::key_of;

/// A barrier for two threads, the number of arrivals, and the number of leaders.
struct Meeting {
    barrier: Barrier,
    came: AtomicU32,
    led: AtomicU32,
}

impl Meeting {
    fn of_two() -> Arc<Self> {
        Arc::new(Self { barrier: Barrier::new(2), came: AtomicU32::new(0), led: AtomicU32::new(0) })
    }

    /// Waits `rounds` times; both threads come to each round, and one leads in each.
    fn attend(&self, rounds: u32) {
        for round in 1..=rounds {
            self.came.fetch_add(1, Ordering::Relaxed);
            let result = self.barrier.wait();
            self.passed(result.is_leader(), round);
        }
    }

    fn passed(&self, is_leader: bool, round: u32) {
        assert!(self.came.load(Ordering::Relaxed) >= 2 * round, "alone");
        self.led.fetch_add(is_leader.into(), Ordering::Relaxed);
    }

    fn other(meeting: &Arc<Self>, rounds: u32) -> thread::JoinHandle<()> {
        spawn(meeting, move |meeting| meeting.attend(rounds))
    }

    fn over(&self, rounds: u32) {
        assert_eq!(self.led.load(Ordering::Relaxed), rounds);
        assert!(self.barrier.destroy());
    }
}

#[test]
fn two_rounds_of_two() {
    check(1, || {
        let meeting = Meeting::of_two();
        let other = Meeting::other(&meeting, 2);
        meeting.attend(2);
        join([other]);
        meeting.over(2);
    });
}

#[test]
fn three_at_a_barrier_for_three() {
    check(0, || {
        let barrier = Arc::new((Barrier::new(3), AtomicU32::new(0)));
        let attend = |(barrier, came): &(Barrier, AtomicU32)| {
            came.fetch_add(1, Ordering::Relaxed);
            let leads = barrier.wait().is_leader();
            assert_eq!(came.load(Ordering::Relaxed), 3);
            u32::from(leads)
        };
        let others = [(); 2].map(|()| spawn(&barrier, attend));
        let led = attend(&barrier) + join(others).iter().sum::<u32>();
        assert_eq!(led, 1);
    });
}

/// A thread that gives up has not arrived; if it comes again, it arrives again.
#[test]
fn a_timeout_takes_the_arrival_back() {
    check(2, || {
        let meeting = Meeting::of_two();
        let other = Meeting::other(&meeting, 1);
        meeting.came.fetch_add(1, Ordering::Relaxed);
        let result = meeting.barrier.wait_until(passed()).unwrap_or_else(|| meeting.barrier.wait());
        meeting.passed(result.is_leader(), 1);
        join([other]);
        meeting.over(1);
    });
}

/// In a forked child the threads that had arrived are gone, but their count is still there.
#[test]
fn stale_arrivals_do_not_count() {
    check(3, || {
        let meeting = Meeting::of_two();
        meeting.barrier.pretend_arrivals(1);
        // The threads that had arrived had created a table.
        let key = key_of(&meeting.came);
        let never = crate::futex::private::wait(
            crate::private::waiter_table(),
            key,
            crate::private::Awaited::Barrier,
            || false,
            u64::MAX,
            None,
        );
        assert_eq!(never, Err(Error::Mismatch));
        let other = Meeting::other(&meeting, 1);
        meeting.attend(1);
        join([other]);
        meeting.over(1);
    });
}

/// A late wake-up for an earlier user of the memory removes a waiter from the queue; the waiter
/// queues again.
#[test]
fn a_spurious_wake_up_lets_no_thread_pass() {
    check(1, || {
        let meeting = Meeting::of_two();
        let other = Meeting::other(&meeting, 1);
        let stranger = spawn(&meeting, |meeting| {
            let key = key_of(meeting.barrier.word());
            crate::futex::private::wake(crate::private::waiter_table(), key, 1, u64::MAX);
        });
        meeting.attend(1);
        join([other, stranger]);
        meeting.over(1);
    });
}
