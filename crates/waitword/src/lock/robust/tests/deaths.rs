//! Death at each step: by SIGKILL in another process, by the end of the thread in this one.

use super::*;

/// Lock and unlock without contention reach these steps.
const ALONE: [Step; 11] = [
    Step::LockBegun,
    Step::Taken,
    Step::HalfLinked,
    Step::Linked,
    Step::Locked,
    Step::UnlockBegun,
    Step::HalfUnlinked,
    Step::Unlinked,
    Step::Released,
    Step::Unlocked,
    // A lock that finds a dead holder also reaches this one.
    Step::Noted,
];

/// With priority inheritance, the kernel records waiters, wakes them and hands off the mutex.
fn is_come_to(step: Step, protocol: RobustProtocol) -> bool {
    use Step::{Announced, Marked, WokeOne, Woken};
    protocol == RobustProtocol::None || ![Announced, Woken, Marked, WokeOne].contains(&step)
}

#[test]
fn alone_at_each_step() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        for step in ALONE {
            let shared = Shared::new(RobustKind::Normal, protocol);
            if step == Step::Noted {
                let dies_first = fork(|| {
                    die_at(shared, Step::Locked, 0);
                    shared.turn()
                });
                assert_eq!(dies_first.ended(), KILLED);
                // This death will not be reported: the next thread to take the mutex dies too.
                shared.deaths.store(0, SeqCst);
            }
            let dies = fork(|| {
                die_at(shared, step, 0);
                shared.turn()
            });
            assert_eq!(dies.ended(), KILLED, "{step:?}, {protocol:?}");
            let held = ![Step::LockBegun, Step::Released, Step::Unlocked].contains(&step);
            assert_eq!(shared.deaths.load(SeqCst), u32::from(held), "{step:?}");
            shared.finish();
            shared.finish();
        }
    }
}

/// One process dies at the step, after so many visits, while three other processes lock and unlock.
#[test]
fn in_company_at_each_step() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        for step in Step::ALL {
            // Only a lock that finds a dead holder reaches `Noted`; see the test above.
            if step == Step::Noted || !is_come_to(step, protocol) {
                continue;
            }
            for times in [0, 3] {
                one_dies_in_company(protocol, step, times);
            }
        }
    }
}

fn one_dies_in_company(protocol: RobustProtocol, step: Step, times: u32) {
    let shared = Shared::new(RobustKind::ErrorChecking, protocol);
    let others = [(); 3].map(|()| {
        fork(|| {
            while shared.stop.load(SeqCst) == 0 {
                if !shared.turn() {
                    return false;
                }
            }
            true
        })
    });
    let dies = fork(|| {
        die_at(shared, step, times);
        while shared.turn() {}
        false
    });
    assert_eq!(dies.ended(), KILLED, "{step:?}, {protocol:?}");
    // The other processes continue.
    let before = shared.turns.load(SeqCst);
    until(|| shared.turns.load(SeqCst) > before + 100);
    shared.stop.store(1, SeqCst);
    for other in others {
        assert_eq!(other.ended(), FINE, "{step:?}, {protocol:?}");
    }
    shared.finish();
}

/// The holder dies somewhere in its unlock while all other processes are asleep.
#[test]
fn a_dying_unlock_leaves_no_sleeper_behind() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        for step in [
            Step::Locked,
            Step::UnlockBegun,
            Step::HalfUnlinked,
            Step::Unlinked,
            Step::Released,
            Step::WokeOne,
            Step::Unlocked,
        ] {
            if !is_come_to(step, protocol) {
                continue;
            }
            let shared = Shared::new(RobustKind::Normal, protocol);
            let dies = fork(|| {
                play_on(shared);
                let locked = shared.lock() == Ok(RobustLocked::Clean);
                shared.say(0, 1);
                shared.hear(1);
                if step == Step::Locked {
                    note_and_die();
                }
                step::at(step, 0, note_and_die);
                locked && unlock(&shared.mutex).is_ok()
            });
            shared.hear(0);
            let sleepers = [(); 2].map(|()| fork(|| shared.turn()));
            sleepers.iter().for_each(Child::until_asleep);
            shared.say(1, 1);
            assert_eq!(dies.ended(), KILLED, "{step:?}, {protocol:?}");
            for sleeper in sleepers {
                assert_eq!(sleeper.ended(), FINE, "{step:?}");
            }
            shared.finish();
        }
    }
}

/// One process is woken and dies, at each step until it holds the mutex, while another is asleep.
#[test]
fn a_dying_waker_to_be_hands_the_wake_up_on() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        for step in [
            Step::Announced,
            Step::Woken,
            Step::Taken,
            Step::HalfLinked,
            Step::Linked,
            Step::Locked,
        ] {
            if !is_come_to(step, protocol) {
                continue;
            }
            let shared = Shared::new(RobustKind::Normal, protocol);
            assert_eq!(shared.lock(), Ok(RobustLocked::Clean));
            let dies = fork(|| {
                die_at(shared, step, 0);
                shared.turn()
            });
            let assert_died = |child: Child| {
                assert_eq!(child.ended(), KILLED, "{step:?}, {protocol:?}");
            };
            let asleep = match step {
                Step::Announced => {
                    // It dies before it sleeps, while the mutex is held: later there is nothing to
                    // announce.
                    assert_died(dies);
                    None
                }
                _ => {
                    dies.until_asleep();
                    Some(dies)
                }
            };
            let sleeper = fork(|| shared.turn());
            sleeper.until_asleep();
            unlock(&shared.mutex).unwrap();
            asleep.into_iter().for_each(assert_died);
            let ended = sleeper.ended();
            assert_eq!(ended, FINE, "{step:?}, {protocol:?}");
            shared.finish();
        }
    }
}

/// The woken process dies after another thread has barged in and taken the mutex, and there is a
/// second sleeper. (Where the word forgets its sleepers at each unlock, no thread ever wakes that
/// sleeper.)
#[test]
fn a_woken_one_dies_behind_a_passer_by() {
    let _watchdog = watch();
    let shared = Shared::new(RobustKind::Normal, RobustProtocol::None);
    assert_eq!(shared.lock(), Ok(RobustLocked::Clean));
    let dies = fork(|| {
        play_on(shared);
        step::at(Step::Woken, 0, || {
            here().say(0, 1);
            here().hear(1);
            note_and_die();
        });
        shared.turn()
    });
    dies.until_asleep();
    let sleeper = fork(|| shared.turn());
    sleeper.until_asleep();
    unlock(&shared.mutex).unwrap();
    shared.hear(0);
    // The barging thread.
    assert_eq!(shared.lock(), Ok(RobustLocked::Clean));
    shared.say(1, 1);
    assert_eq!(dies.ended(), KILLED);
    unlock(&shared.mutex).unwrap();
    assert_eq!(sleeper.ended(), FINE);
    shared.finish();
}

/// A sleeper is killed while it sleeps, just before or after it is woken.
#[test]
fn a_killed_sleeper_takes_no_wake_up_along() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        for turn in 0..40 {
            let shared = Shared::new(RobustKind::Normal, protocol);
            assert_eq!(shared.lock(), Ok(RobustLocked::Clean));
            let killed = fork(|| shared.turn());
            killed.until_asleep();
            let sleeper = fork(|| shared.turn());
            sleeper.until_asleep();
            if turn % 2 == 0 {
                killed.signal(libc::SIGKILL);
                unlock(&shared.mutex).unwrap();
            } else {
                unlock(&shared.mutex).unwrap();
                killed.signal(libc::SIGKILL);
            }
            // It may have finished its turn, or have died inside.
            let _ = killed.ended();
            assert_eq!(sleeper.ended(), FINE);
            assert!(shared.turn());
            assert!(shared.reports.load(SeqCst) <= 1);
        }
    }
}

/// Ends only the calling thread, at once.
fn end_thread() {
    note_death();
    // SAFETY: the thread was created by `dying_thread`, has nothing on its stack that must be
    // dropped, and is joined by the C library, which the kernel notifies.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Runs `body` in a thread of this process that dies before it finishes.
fn dying_thread(body: fn()) {
    extern "C" fn run(body: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: passed below.
        let body: fn() = unsafe { std::mem::transmute(body) };
        body();
        std::ptr::null_mut()
    }
    // SAFETY: `run` is a thread's function, and the thread is joined once.
    unsafe {
        let mut thread: libc::pthread_t = std::mem::zeroed();
        let body = body as *mut libc::c_void;
        let made = libc::pthread_create(&raw mut thread, std::ptr::null(), run, body);
        assert_eq!(made, 0);
        libc::pthread_join(thread, std::ptr::null_mut());
    }
}

/// As [`alone_at_each_step`], but only a thread ends and the process continues. Runs in a child, so
/// that no other test uses the memory of the hooks.
#[test]
fn a_thread_ends_at_each_step() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let tester = fork(|| {
            ALONE.iter().filter(|&&step| step != Step::Noted).all(|&step| {
                let shared = Shared::new(RobustKind::Normal, protocol);
                play_on(shared);
                shared.say(3, step as u32 + 1);
                dying_thread(|| {
                    let wanted = here().hear(3) - 1;
                    let step = Step::ALL.into_iter().find(|&step| step as u32 == wanted);
                    step::at(step.unwrap(), 0, end_thread);
                    here().turn();
                    // Not reached.
                    std::process::abort();
                });
                shared.turn()
                    && shared.mutex.holder() == 0
                    && shared.reports.load(SeqCst) == shared.deaths.load(SeqCst)
                    && shared.turn()
            })
        });
        assert_eq!(tester.ended(), FINE, "{protocol:?}");
    }
}

/// Each of several deaths is reported, to one thread only.
#[test]
fn each_death_is_reported_once() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let shared = Shared::new(RobustKind::Normal, protocol);
        for deaths in 1..=5 {
            let dies = fork(|| {
                play_on(shared);
                if shared.lock() == Ok(RobustLocked::OwnerDied) {
                    shared.reports.fetch_add(1, SeqCst);
                    // Half of them die before they have repaired the data.
                    if deaths % 2 == 0 {
                        let _ = shared.mutex.mark_consistent();
                    }
                }
                note_and_die();
                false
            });
            assert_eq!(dies.ended(), KILLED);
            assert_eq!(shared.deaths.load(SeqCst), deaths);
        }
        shared.finish();
        assert_eq!(shared.reports.load(SeqCst), 5);
    }
}

/// All mutexes of a process that dies are reported, including one that it holds several times.
#[test]
fn all_that_the_dead_held_is_reported() {
    let _watchdog = watch();
    let mutexes: [_; 6] =
        std::array::from_fn(|index| Shared::new(RobustKind::Recursive, PROTOCOLS[index % 2]));
    let dies = fork(|| {
        for shared in mutexes {
            assert_eq!(shared.lock(), Ok(RobustLocked::Clean));
            assert_eq!(shared.lock(), Ok(RobustLocked::Clean));
        }
        // Not in lock order, and only one level.
        unlock(&mutexes[2].mutex).unwrap();
        unlock(&mutexes[3].mutex).unwrap();
        unlock(&mutexes[3].mutex).unwrap();
        die();
        false
    });
    assert_eq!(dies.ended(), KILLED);
    for (index, shared) in mutexes.iter().enumerate() {
        let expected = if index == 3 { RobustLocked::Clean } else { RobustLocked::OwnerDied };
        assert_eq!(shared.lock(), Ok(expected), "{index}");
        // One unlock is enough: the dead holder's depth is forgotten.
        let _ = shared.mutex.mark_consistent();
        unlock(&shared.mutex).unwrap();
        assert_eq!(shared.mutex.holder(), 0);
    }
}
