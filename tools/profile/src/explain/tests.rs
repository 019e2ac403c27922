//! Recordings made up for each kind of finding, and such as have none.

use super::{Finding, Kind, explain_process};
use crate::read::Process;
use waitword_record::format::{Causes, Ended, Object, Priority, Tag, Turns, Wait};

const US: u64 = 1000;
const MS: u64 = 1000 * US;
const LOCK: u64 = 0x7000;
const OTHER_LOCK: u64 = 0x8000;
const CONDVAR: u64 = 0x9000;
/// Stacks: of a waiter, of a holder.
const WAITER: u32 = 1;
const HOLDER: u32 = 2;
/// The system call in which a holder slept, as it is recorded.
const NANOSLEEP: u16 = syscalls::Sysno::clock_nanosleep as u16 + 1;
const FUTEX: u16 = syscalls::Sysno::futex as u16 + 1;

/// A wait for [`LOCK`] that a thread ended which ran meanwhile.
fn wait(began: u64, took: u64) -> Wait {
    Wait {
        tag: Tag::Wait as u8,
        object: Object::Mutex as u8,
        ended: Ended::Got as u8,
        weight_shift: 0,
        stack: WAITER,
        began,
        took,
        address: LOCK,
        holder: 99,
        holder_stack: HOLDER,
        waker: 99,
        in_vain: 0,
        passed: 0,
        running: 1000,
        preempted: 0,
        asleep: 0,
        call: 0,
        next: 0,
    }
}

fn asleep(began: u64, took: u64) -> Wait {
    Wait { running: 20, asleep: 980, call: NANOSLEEP, ..wait(began, took) }
}

/// Waiting for work.
fn idle(began: u64, took: u64) -> Wait {
    Wait {
        object: Object::Condvar as u8,
        address: CONDVAR,
        holder: 0,
        holder_stack: 0,
        running: 0,
        ..wait(began, took)
    }
}

/// A process that ran for a second.
fn process(waits: impl IntoIterator<Item = (u32, Wait)>) -> Process {
    let mut process = Process {
        began: 1,
        threshold: 10_000,
        causes: Some(Causes::Switches),
        waits: waits.into_iter().collect(),
        ..Process::default()
    };
    // The end of the run.
    let end = Wait { address: 0xa000, ..idle(900 * MS, 100 * MS) };
    process.waits.push((1000, end));
    process.stacks.insert(WAITER, vec![0x10]);
    process.stacks.insert(HOLDER, vec![0x20]);
    process
}

fn findings(process: &Process) -> Vec<Finding> {
    explain_process(process).findings
}

fn text(process: Process) -> String {
    let explained = explain_process(&process);
    super::text(&[(process, explained)])
}

fn kinds(process: &Process) -> Vec<Kind> {
    findings(process).iter().map(|finding| finding.kind).collect()
}

/// The text of the only finding.
#[track_caller]
fn only(process: &Process, kind: Kind) -> (Finding, String) {
    assert_eq!(kinds(process), [kind]);
    let shown = text(process.clone());
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&kind.to_string()) && shown.contains("What to do: "), "{shown}");
    (findings(process).remove(0), shown)
}

/// Numbers from 0, times of turns that are so far apart.
fn turns(count: u64, apart: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..count).map(move |n| (n, MS + n * apart))
}

#[test]
fn a_holder_that_sleeps_is_found_with_its_call() {
    let (finding, shown) =
        only(&process(turns(40, 20 * MS).map(|(_, at)| (1, asleep(at, 10 * MS)))), Kind::Asleep);
    assert_eq!(finding.lost, 40 * 10 * MS / 1000 * 980);
    assert!(shown.contains("40 waits of 1 thread for 1 lock"), "{shown}");
    assert!(shown.contains("98 % of that time the holder slept"), "{shown}");
    assert!(shown.contains("in the system call clock_nanosleep"), "{shown}");
    assert!(shown.contains("mostly at 0x10 (?)") && shown.contains("at 0x20 (?)"), "{shown}");
    assert!(shown.contains("39 % of the run"), "{shown}");
}

#[test]
fn a_holder_that_waits_for_another_thread_gets_other_advice() {
    let waits = turns(40, 20 * MS).map(|(_, at)| (1, Wait { call: FUTEX, ..asleep(at, 10 * MS) }));
    let (_, shown) = only(&process(waits), Kind::Asleep);
    assert!(shown.contains("waits for another thread"), "{shown}");
    let waits = turns(40, 20 * MS).map(|(_, at)| (1, Wait { call: 0, ..asleep(at, 10 * MS) }));
    let (_, shown) = only(&process(waits), Kind::Asleep);
    assert!(shown.contains("in a system call that is not known"), "{shown}");
    let waits = turns(40, 20 * MS).map(|(_, at)| (1, Wait { call: 60_000, ..asleep(at, 10 * MS) }));
    let (_, shown) = only(&process(waits), Kind::Asleep);
    assert!(shown.contains("in system call 59999"), "{shown}");
}

#[test]
fn what_is_rare_short_or_sampled_is_judged_by_its_share_of_the_run() {
    // Less than 1 % of the run.
    let short = process(turns(40, 20 * MS).map(|(_, at)| (1, asleep(at, 200 * US))));
    assert_eq!(kinds(&short), []);
    // Too few waits, and not long.
    let rare = process(turns(3, 200 * MS).map(|(_, at)| (1, asleep(at, 20 * MS))));
    assert_eq!(kinds(&rare), []);
    // One long wait is enough.
    assert_eq!(kinds(&process([(1, asleep(MS, 200 * MS))])), [Kind::Asleep]);
    // Each stands for 16.
    let sampled =
        turns(40, 20 * MS).map(|(_, at)| (1, Wait { weight_shift: 4, ..asleep(at, 200 * US) }));
    let (finding, shown) = only(&process(sampled), Kind::Asleep);
    assert_eq!(finding.lost, 16 * 40 * 196 * US);
    assert!(shown.contains("640 waits"), "{shown}");
}

#[test]
fn a_holder_that_computes_is_found() {
    let (_, shown) =
        only(&process(turns(40, 20 * MS).map(|(_, at)| (1, wait(at, 10 * MS)))), Kind::Computes);
    assert!(shown.contains("100 % of that time the holder ran"), "{shown}");
    assert!(shown.contains("10.0 ms each"), "{shown}");
}

#[test]
fn preempted_holders_are_one_finding_for_all_locks() {
    let waits = turns(60, 10 * MS).map(|(n, at)| {
        let address = LOCK + 0x40 * (n % 6);
        let holder_stack = HOLDER + (n % 6) as u32;
        let wait = Wait { running: 150, preempted: 850, address, holder_stack, ..wait(at, 5 * MS) };
        (n as u32 % 5, wait)
    });
    let (finding, shown) = only(&process(waits), Kind::Preempted);
    assert_eq!(finding.lost, 60 * 5 * MS / 1000 * 850);
    assert!(shown.contains("without a CPU for 85 % of the time"), "{shown}");
    assert!(shown.contains("6 threads of the process waited"), "{shown}");
}

/// Eight threads in turn at a lock that each of them keeps for 100 µs.
fn convoy() -> impl Iterator<Item = (u32, Wait)> {
    turns(8000, 100 * US).map(|(n, at)| {
        let holder = 1 + (n + 7) as u32 % 8;
        (1 + n as u32 % 8, Wait { passed: 6, holder, waker: holder, ..wait(at, 700 * US) })
    })
}

#[test]
fn a_convoy_is_found_and_not_the_short_sections() {
    let (finding, shown) = only(&process(convoy()), Kind::Convoy);
    assert_eq!(finding.lost, 8000 * 700 * US);
    assert!(shown.contains("8 threads queue at lock 0x7000, 7.0 at the same time"), "{shown}");
    assert!(shown.contains("each holder keeps the lock for 100 µs: 6.0 others"), "{shown}");
    assert!(shown.contains("as if 5.6 threads had waited"), "{shown}");
}

#[test]
fn a_queue_behind_a_holder_that_sleeps_is_no_convoy() {
    let waits =
        convoy().map(|(thread, it)| (thread, Wait { running: 0, asleep: 1000, call: FUTEX, ..it }));
    assert_eq!(kinds(&process(waits)), [Kind::Asleep]);
}

#[test]
fn a_holder_that_waits_for_another_lock_is_a_chain() {
    let waits = turns(40, 20 * MS).flat_map(|(_, at)| {
        let first = Wait { next: OTHER_LOCK, ..asleep(at, 8 * MS) };
        let second = Wait { address: OTHER_LOCK, ..asleep(at - MS / 2, 9 * MS) };
        [(1, first), (2, second)]
    });
    let process = process(waits);
    assert_eq!(kinds(&process), [Kind::Asleep, Kind::Chain]);
    let shown = text(process).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("another lock: 0x7000 -> 0x8000."), "{shown}");
    assert!(shown.contains("2. holder waits for another lock: 320 ms"), "{shown}");
}

/// Threads 1 and 2 wait for the second lock with the first one held, and threads 3 and 4 the other
/// way round; 5 waits for the first lock and 6 for the second.
fn orders(one: u32, other: u32) -> Process {
    process(turns(20, 40 * MS).flat_map(move |(_, at)| {
        let later = at + 20 * MS;
        let for_first = Wait { next: OTHER_LOCK, waker: one, ..wait(at, 3 * MS) };
        let one_waits = Wait { address: OTHER_LOCK, stack: 11, ..wait(at - MS / 2, 3 * MS) };
        let for_second =
            Wait { address: OTHER_LOCK, next: LOCK, waker: other, ..wait(later, 3 * MS) };
        let other_waits = Wait { stack: 12, ..wait(later - MS / 2, 3 * MS) };
        [(5, for_first), (one, one_waits), (6, for_second), (other, other_waits)]
    }))
}

#[test]
fn locks_in_different_orders_are_found_with_both_stacks() {
    let found = findings(&orders(1, 3));
    let order = found.iter().find(|it| it.kind == Kind::Order).expect("the cycle");
    let stacks: Vec<_> = order.said.iter().filter_map(|line| line.stack).collect();
    assert_eq!(stacks, [11, 12]);
    assert!(order.said[1].text.contains("Thread 1 had lock 0x7000 and waited for lock 0x8000"));
    assert!(order.said[2].text.contains("Thread 3 had lock 0x8000 and waited for lock 0x7000"));
    // Every order, though it costs little, and each cycle once.
    assert_eq!(found.iter().filter(|it| it.kind == Kind::Order).count(), 1);
}

#[test]
fn one_thread_cannot_deadlock_with_itself_nor_can_one_order() {
    let is_found = |process: &Process| kinds(process).contains(&Kind::Order);
    assert!(!is_found(&orders(1, 1)));
    let mut one_way = orders(1, 3);
    one_way.waits.retain(|(_, wait)| wait.next != LOCK);
    assert!(!is_found(&one_way));
    // Nothing shows that the thread that released the lock was the one that waited.
    let mut elsewhere = orders(1, 3);
    elsewhere.waits.retain(|(thread, _)| *thread != 3);
    assert!(!is_found(&elsewhere));
}

fn write(at: u64, took: u64, holder: u32) -> Wait {
    Wait { object: Object::Write as u8, holder, waker: holder, ..wait(at, took) }
}

fn read(at: u64, took: u64, holder: u32) -> Wait {
    Wait { object: Object::Read as u8, holder, waker: holder, ..wait(at, took) }
}

#[test]
fn writers_that_wait_for_writers_need_no_rwlock() {
    let waits = turns(90, 10 * MS).flat_map(|(n, at)| {
        let (one, other) = (1 + n as u32 % 3, 1 + (n + 1) as u32 % 3);
        let reader = (n % 3 == 0).then_some((7, read(at, 2 * MS, one)));
        [(one, write(at, 5 * MS, other))].into_iter().chain(reader)
    });
    let process = process(waits);
    let found = findings(&process);
    let writers = found.iter().find(|it| it.kind == Kind::Writers).expect("writers");
    assert!(writers.said[0].text.contains("90 waits to write and 30 to read"), "{writers:?}");
    assert!(writers.said[0].text.contains("3 threads write"), "{writers:?}");
    assert!(writers.said[1].text.contains("for 100 % of that another writer"), "{writers:?}");
}

#[test]
fn writers_that_wait_for_readers_do() {
    // Two writers and readers that need not wait.
    let by_readers = turns(90, 10 * MS).map(|(n, at)| (n as u32 % 2, write(at, 5 * MS, 50)));
    assert!(!kinds(&process(by_readers)).contains(&Kind::Writers));
    // Most waits are to read.
    let reading = turns(90, 10 * MS).flat_map(|(n, at)| {
        let (one, other) = (1 + n as u32 % 3, 1 + (n + 1) as u32 % 3);
        [(one, write(at, 2 * MS, other)), (7, read(at, 2 * MS, one)), (8, read(at, 2 * MS, one))]
    });
    assert!(!kinds(&process(reading)).contains(&Kind::Writers));
}

#[test]
fn a_writer_that_readers_pass_is_starved() {
    let starved = Wait { ended: Ended::TimedOut as u8, passed: 80, ..write(MS, 500 * MS, 50) };
    let starved = Wait { running: 0, ..starved };
    let process = process([(1, starved)]);
    let (_, shown) = only(&process, Kind::Starved);
    assert!(shown.contains("the longest 500 ms"), "{shown}");
    assert!(shown.contains("released the lock 80 times") && shown.contains("1 ended"), "{shown}");
}

#[test]
fn a_writer_that_waits_for_writers_or_for_one_reader_is_not_starved() {
    let is_found =
        |waits: &[(u32, Wait)]| kinds(&process(waits.iter().copied())).contains(&Kind::Starved);
    let passed = |passed, wait| Wait { passed, ..wait };
    assert!(!is_found(&[(1, passed(1, write(MS, 500 * MS, 50)))]));
    assert!(!is_found(&[
        (1, passed(80, write(MS, 500 * MS, 2))),
        (2, passed(80, write(MS, 500 * MS, 1))),
    ]));
    assert!(!is_found(&[(1, passed(80, write(MS, 5 * MS, 50)))]));
}

#[test]
fn an_unfair_lock_is_found_with_its_victim() {
    let waits = turns(20, 40 * MS)
        .map(|(_, at)| (1, Wait { passed: 300, holder: 2, waker: 2, ..wait(at, 30 * MS) }));
    let mut process = process(waits);
    process.threads.insert(1, "victim\u{1b}".to_owned());
    let found = findings(&process);
    let unfair = found.iter().find(|it| it.kind == Kind::Unfair).expect("unfair");
    assert!(unfair.said[0].text.contains("2 threads use lock"), "{unfair:?}");
    let said = &unfair.said[1].text;
    assert!(said.contains("thread 1 (victim\\u{1b}): 20 waits"), "{said}");
    assert!(said.contains("300 turns of others in each"), "{said}");
}

/// As at a lock of short sections, which stays with one CPU for a while on purpose.
/// A process in which two threads wait for the lock until the end, and take it so many times.
fn taken(often: u64, seldom: u64, since: u64) -> Process {
    let waits = turns(40, 20 * MS).flat_map(|(_, at)| [1, 2].map(|thread| (thread, wait(at, MS))));
    let mut process = process(waits);
    process.turns =
        vec![(1, Turns::new(LOCK, often, 2 * MS)), (2, Turns::new(LOCK, seldom, since))];
    process.threads.insert(1, "often".to_owned());
    process
}

#[test]
fn a_lock_that_one_thread_gets_more_often_is_unfair() {
    let found = findings(&taken(720, 80, 2 * MS));
    let unfair = found.iter().find(|it| it.kind == Kind::Unfair).expect("unfair");
    let said = &unfair.said[0].text;
    assert!(said.starts_with("Thread 1 (often) took lock"), "{said}");
    assert!(said.contains("9.0 times as often as thread 2: 720 times to 80"), "{said}");
}

#[test]
fn turns_that_cannot_be_compared_are_not_unfair() {
    let is_unfair = |process: &Process| kinds(process).contains(&Kind::Unfair);
    assert!(is_unfair(&taken(720, 80, 2 * MS)));
    assert!(!is_unfair(&taken(320, 80, 2 * MS)), "four times as often");
    assert!(!is_unfair(&taken(720, 80, 500 * MS)), "it came later");
    assert!(!is_unfair(&taken(7200, 800, 2 * MS)), "it did not wait often");
    let mut ends_soon = taken(720, 80, 2 * MS);
    ends_soon.waits.retain(|(thread, wait)| *thread != 2 || wait.began < 400 * MS);
    assert!(!is_unfair(&ends_soon));
}

#[test]
fn a_holder_of_lower_priority_without_a_cpu_is_an_inversion() {
    let preempted = |at| Wait { running: 20, preempted: 980, ..wait(at, 10 * MS) };
    let mut inverted = process(turns(40, 20 * MS).map(|(_, at)| (1, preempted(at))));
    inverted.priorities =
        [(1, Priority::real_time(5)), (99, Priority::nice(0))].into_iter().collect();
    let found = findings(&inverted);
    let finding = found.iter().find(|it| it.kind == Kind::Inversion).expect("inversion");
    assert_eq!(finding.lost, 40 * 10 * MS / 1000 * 980);
    assert!(finding.said[1].text.contains("Thread 1, of real-time priority 5, waited at"));
    assert!(finding.said[2].text.contains("Thread 99, of niceness 0, released it at"));
    let is_one = |process: &Process| kinds(process).contains(&Kind::Inversion);
    inverted.priorities.insert(99, Priority::real_time(6));
    assert!(!is_one(&inverted), "the holder is more urgent");
    inverted.priorities.remove(&99);
    assert!(!is_one(&inverted), "its priority is unknown");
    inverted.priorities.insert(99, Priority::IDLE);
    assert!(is_one(&inverted));
    inverted.waits.iter_mut().for_each(|(_, wait)| wait.preempted = 300);
    assert!(!is_one(&inverted), "it had a CPU");
}

#[test]
fn short_waits_are_not_unfair() {
    let waits = |took| {
        turns(400, 2 * MS)
            .map(move |(_, at)| (1, Wait { passed: 300, holder: 2, ..wait(at, took) }))
    };
    assert_eq!(kinds(&process(waits(900 * US))), []);
    assert!(kinds(&process(waits(MS))).contains(&Kind::Unfair));
}

#[test]
fn a_queue_and_a_lottery_are_not_unfair() {
    assert!(!kinds(&process(convoy())).contains(&Kind::Unfair));
    // Geometric with a mean of eight, as for nine threads by lot.
    let waits = turns(5000, 200 * US).map(|(n, at)| {
        let drawn = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1_u64 << 53) as f64;
        let passed = (-8.0 * (1.0 - drawn).ln()) as u16;
        let took = 100 * US * u64::from(passed + 1);
        (n as u32 % 9, Wait { passed, holder: (n + 1) as u32 % 9, ..wait(at, took) })
    });
    assert!(!kinds(&process(waits)).contains(&Kind::Unfair));
}

/// So many times, twenty threads are woken by this thread, so far apart, and then want a lock.
fn herd(times: u64, waker: u32, apart: u64, gap: u64) -> Process {
    process(turns(times, 80 * MS).flat_map(move |(_, at)| {
        (0..20_u64).flat_map(move |thread| {
            let woken = at + thread * apart;
            let idle = Wait { waker, ..idle(at - MS, woken - (at - MS)) };
            let queued = Wait { running: 0, ..wait(woken + gap, (thread + 1) * 100 * US) };
            [(thread as u32, idle), (thread as u32, queued)]
        })
    }))
}

#[test]
fn threads_that_are_woken_together_and_queue_are_a_herd() {
    let (_, shown) = only(&herd(10, 50, 0, 0), Kind::Herd);
    assert!(shown.contains("20 threads were woken together, 10 times, 20 at a time"), "{shown}");
    assert!(shown.contains("200 waits for lock 0x7000"), "{shown}");
    assert!(shown.contains("condition variable 0x9000"), "{shown}");
    only(&herd(10, 0, 10 * US, 5 * US), Kind::Herd);
}

/// More than are kept at a time.
const LONG_RUN: u64 = 10_000;

#[test]
fn herds_of_a_long_run_are_counted_to_the_end() {
    // Ten seconds; a thread waits twice in each turn.
    let process = process(turns(LONG_RUN, MS).flat_map(|(_, at)| {
        (0..5_u64).flat_map(move |thread| {
            let idle = Wait { waker: 50, ..idle(at - 100 * US, 100 * US) };
            let queued = Wait { running: 0, ..wait(at, (thread + 1) * 100 * US) };
            [(thread as u32, idle), (thread as u32, queued)]
        })
    }));
    let found = findings(&process);
    let herd = found.iter().find(|it| it.kind == Kind::Herd).unwrap();
    assert_eq!(herd.lost, LONG_RUN * (1 + 2 + 3 + 4 + 5) * 100 * US);
}

#[test]
fn broadcasts_of_a_long_run_are_counted_to_the_end() {
    // In each turn one of ten threads goes on for half a millisecond.
    let process = process(turns(LONG_RUN, MS).flat_map(|(n, at)| {
        (0..10_u64).map(move |thread| {
            let began = at + if (thread + n) % 10 == 0 { 500 * US } else { 5 * US };
            (thread as u32, Wait { waker: 50, ..idle(began, at + MS - began) })
        })
    }));
    let (finding, _) = only(&process, Kind::InVain);
    // The first turn is not after a broadcast.
    assert_eq!(finding.lost, (LONG_RUN - 1) * 9 * 10 * US);
}

#[test]
fn a_fair_queue_of_more_threads_than_are_counted_is_not_unfair() {
    let waits =
        turns(1000, 500 * US).map(|(n, at)| (n as u32, Wait { passed: 999, ..wait(at, 400 * MS) }));
    assert!(!kinds(&process(waits)).contains(&Kind::Unfair));
}

#[test]
fn threads_that_are_woken_one_by_one_or_do_something_first_are_none() {
    assert_eq!(kinds(&herd(10, 50, 10 * US, 0)), []);
    assert_eq!(kinds(&herd(10, 50, 0, 100 * US)), []);
    assert_eq!(kinds(&herd(10, 0, 4 * MS, 5 * US)), []);
    // The start of a program.
    assert_eq!(kinds(&herd(2, 50, 0, 0)), []);
}

#[test]
fn wake_ups_in_vain_are_found() {
    let waits = turns(100, 8 * MS).map(|(_, at)| (1, Wait { in_vain: 30, ..idle(at, 7 * MS) }));
    let (finding, shown) = only(&process(waits), Kind::InVain);
    assert_eq!(finding.lost, 100 * 30 * 10 * US);
    assert!(shown.contains("slept again 3000 times"), "{shown}");
    assert!(shown.contains("(100 ended)"), "{shown}");
}

/// Ten threads are signalled together, so often that it matters. After one of `of` broadcasts,
/// `busy` of them work for a while. The others wait again at once.
fn broadcasts(busy: u64, of: u64) -> Process {
    process((0..10_u64).flat_map(move |thread| {
        turns(200, 4 * MS).flat_map(move |(n, at)| {
            let works = (thread + n) % 10 < busy && n % of == 0;
            let began = at + if works { 500 * US } else { 5 * US };
            let signalled = at + 4 * MS;
            let waits = Wait { waker: 50, ..idle(began, signalled - began) };
            [(thread as u32, waits)]
        })
    }))
}

#[test]
fn a_broadcast_where_one_thread_can_go_on_is_found() {
    let (_, shown) = only(&broadcasts(1, 1), Kind::InVain);
    assert!(shown.contains("times a thread was woken together with others, one"), "{shown}");
    assert!(shown.contains("10 threads wait at condition variable 0x9000"), "{shown}");
}

#[test]
fn a_broadcast_that_all_need_or_after_which_all_are_quick_is_not() {
    assert_eq!(kinds(&broadcasts(10, 1)), []);
    assert_eq!(kinds(&broadcasts(0, 1)), []);
    assert_eq!(kinds(&broadcasts(7, 1)), []);
    // Now and then one loses its CPU.
    assert_eq!(kinds(&broadcasts(1, 2)), []);
}

#[test]
fn a_few_wake_ups_in_vain_are_not() {
    let some =
        turns(100, 8 * MS).map(|(n, at)| (1, Wait { in_vain: (n % 2) as u16, ..idle(at, 7 * MS) }));
    assert_eq!(kinds(&process(some)), []);
    let cheap = turns(5, 8 * MS).map(|(_, at)| (1, Wait { in_vain: 4, ..idle(at, 7 * MS) }));
    assert_eq!(kinds(&process(cheap)), []);
}

/// Workers take jobs from a queue, and seldom meet at its lock.
#[test]
fn a_queue_that_works_well_has_no_finding() {
    let waits = turns(800, MS).flat_map(|(n, at)| {
        let worker = n as u32 % 8;
        let meets = (n % 50 == 0).then_some((worker, wait(at + 500 * US, 15 * US)));
        [(worker, Wait { waker: 50, ..idle(at - MS / 2, MS) })].into_iter().chain(meets)
    });
    let process = process(waits);
    assert_eq!(kinds(&process), []);
    let shown = text(process);
    assert!(shown.starts_with("Nothing was found. Looked for: I/O or sleep under a lock, "));
    assert!(!shown.contains("kernel"), "{shown}");
}

#[test]
fn idle_threads_and_no_waits_have_no_finding() {
    let semaphores = turns(800, MS)
        .map(|(n, at)| (n as u32 % 8, Wait { object: Object::Semaphore as u8, ..idle(at, MS) }));
    assert_eq!(kinds(&process(semaphores)), []);
    assert_eq!(findings(&Process::default()), []);
    assert!(super::text(&[]).starts_with("Nothing was found."));
}

#[test]
fn what_the_kernel_does_not_show_is_said() {
    let unknown = turns(40, 20 * MS).map(|(_, at)| (1, Wait { running: 0, ..wait(at, 10 * MS) }));
    let mut process = process(unknown);
    process.causes = None;
    process.lost = 3;
    let shown = text(process.clone());
    assert!(shown.contains("perf_event_paranoid") && shown.contains("not looked"), "{shown}");
    assert!(shown.contains("3 records were lost"), "{shown}");
    process.causes = Some(Causes::Sums);
    assert!(text(process).contains("coarser"));
}

#[test]
fn sums_may_be_of_a_longer_time_so_they_need_greater_shares() {
    let asleep = |asleep| {
        let waits = turns(40, 20 * MS)
            .map(move |(_, at)| (1, Wait { running: 1000 - asleep, asleep, ..wait(at, 10 * MS) }));
        let mut process = process(waits);
        process.causes = Some(Causes::Sums);
        kinds(&process)
    };
    assert_eq!(asleep(900), [Kind::Asleep]);
    // A holder that ran all the time after it had slept outside for twice as long.
    assert_eq!(asleep(667), []);
    assert_eq!(asleep(50), [Kind::Computes]);
}

/// Whatever numbers a file contains, they are judged.
#[test]
fn hostile_numbers_are_no_overflow() {
    let mut random = 1_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        match random % 5 {
            0 => u64::MAX - random % 3,
            1 => random % 4,
            _ => random,
        }
    };
    let waits: Vec<(u32, Wait)> = (0..20_000)
        .map(|_| {
            let wait = Wait {
                tag: Tag::Wait as u8,
                object: (next() % 12) as u8,
                ended: next() as u8,
                weight_shift: next() as u8,
                stack: next() as u32,
                began: next(),
                took: next(),
                address: next() % 50,
                holder: next() as u32,
                holder_stack: next() as u32 % 9,
                waker: next() as u32 % 9,
                in_vain: next() as u16,
                passed: next() as u16,
                running: next() as u16,
                preempted: next() as u16,
                asleep: next() as u16,
                call: next() as u16,
                next: next() % 50,
            };
            (next() as u32 % 9, wait)
        })
        .collect();
    assert!(!text(Process { waits, began: u64::MAX, ..Process::default() }).is_empty());
}
