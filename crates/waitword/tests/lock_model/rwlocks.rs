//! Reader/writer locks of both preferences and scopes, with upgrades, downgrades and fair unlocks.
//!
//! Promised, and so in the model: nobody beside a writer, one who holds it upgradably; under reader preference a reader waits in vain
//! only while somebody writes; under writer preference not while no writer waits; a lock that is free is not waited for. Not in which
//! order: alarms send who waits to another place in the queue.

use super::family::{Caller, Family, Model, expect, limits};
use super::mutexes::scopes;
use super::program::{HAND, Limit, THREADS};
use super::run::may_wait;
use crate::support::Answer;
use libc::{EBUSY, EDEADLK, EPERM, ETIMEDOUT};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use waitword::lock_api::{
    RawRwLock as _, RawRwLockFair as _, RawRwLockUpgrade as _, RawRwLockUpgradeFair as _,
};
use waitword::{Deadline, Preference, RawRwLock, RwLockError, Scope};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RwLocks;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) preference: Preference,
    pub(crate) scope: Scope,
    /// Whether its readers are to hold it by slots, if they can be brought to it.
    pub(crate) fast: bool,
}

/// What a thread can have, or want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Read,
    /// The same, by who may read already.
    ReadAgain,
    Write,
    /// Upgradably.
    Claim,
    /// To write, by who has the claim.
    Upgrade,
}
use Hold::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Take(Hold, Limit),
    Try(Hold),
    Leave(Hold),
    LeaveFairly(Hold),
    /// `pthread_rwlock_unlock`: whatever it has.
    Unlock,
    WriteToRead,
    WriteToClaim,
    ClaimToRead,
}
use Call::*;

impl Family for RwLocks {
    type Made = Sort;
    type Call = Call;
    type Object = RawRwLock;
    type Model = Modelled;

    const NAME: &'static str = "RwLocks";

    /// Alarms come at longer and longer intervals.
    const QUIET: Duration = Duration::from_millis(300);

    fn made() -> BoxedStrategy<Sort> {
        let preference = prop_oneof![Just(Preference::Reader), Just(Preference::Writer)];
        (
            preference,
            scopes(),
            prop_oneof![4 => Just(false), 1 => Just(true)],
        )
            .prop_map(|(preference, scope, fast)| Sort {
                preference,
                scope,
                fast,
            })
            .boxed()
    }

    fn calls() -> BoxedStrategy<Call> {
        let wanted = || {
            prop_oneof![
                4 => Just(Read),
                1 => Just(ReadAgain),
                4 => Just(Write),
                2 => Just(Claim),
                2 => Just(Upgrade),
            ]
        };
        let held = || prop_oneof![2 => Just(Read), 2 => Just(Write), 1 => Just(Claim)];
        prop_oneof![
            10 => (wanted(), limits()).prop_map(|(hold, limit)| Take(hold, limit)),
            4 => wanted().prop_map(Try),
            8 => held().prop_map(Leave),
            3 => held().prop_map(LeaveFairly),
            2 => Just(Unlock),
            1 => Just(WriteToRead),
            1 => Just(WriteToClaim),
            1 => Just(ClaimToRead),
        ]
        .boxed()
    }

    fn make(made: &Sort) -> RawRwLock {
        let lock = RawRwLock::with(made.preference, made.scope);
        if made.fast && made.scope == Scope::Private {
            make_fast(&lock);
        }
        lock
    }

    fn call(lock: &RawRwLock, caller: &Caller, call: &Call) -> Answer {
        let me = caller.thread as u32 + 1;
        // SAFETY, of all below: the model allows a call only to who has what it gives up.
        let done = match *call {
            Take(hold, limit) => take(lock, me, hold, limit.deadline().as_ref()),
            Try(hold) => match hold {
                Read => lock.try_read(),
                ReadAgain => {
                    use waitword::lock_api::RawRwLockRecursive as _;
                    let taken = lock.try_lock_shared_recursive();
                    taken.then_some(()).ok_or(RwLockError::Busy)
                }
                Write => lock.try_write(me),
                Claim => lock.try_read_upgradably(),
                // SAFETY: see above.
                Upgrade => unsafe { lock.try_upgrade_checked(me) },
            },
            Leave(hold) => {
                // SAFETY: see above.
                unsafe {
                    match hold {
                        Read | ReadAgain => lock.unlock_shared(),
                        Write | Upgrade => lock.unlock_exclusive(),
                        Claim => lock.unlock_upgradable(),
                    }
                }
                Ok(())
            }
            LeaveFairly(hold) => {
                // SAFETY: see above.
                unsafe {
                    match hold {
                        Read | ReadAgain => lock.unlock_shared_fair(),
                        Write | Upgrade => lock.unlock_exclusive_fair(),
                        Claim => lock.unlock_upgradable_fair(),
                    }
                }
                Ok(())
            }
            // SAFETY: see above.
            Unlock => unsafe { lock.unlock() },
            // SAFETY: see above.
            WriteToRead => unsafe { lock.downgrade_checked() },
            // SAFETY: see above.
            WriteToClaim => unsafe { lock.downgrade_to_upgradable_checked() },
            // SAFETY: see above.
            ClaimToRead => unsafe { lock.downgrade_upgradable_checked() },
        };
        done.map(|()| 0).map_err(RwLockError::raw_os_error)
    }
}

/// Readers who overlap. If two CPUs are free for them, the next ones are in slots.
fn make_fast(lock: &RawRwLock) {
    let began = Instant::now();
    let read = || {
        while began.elapsed() < Duration::from_millis(3) && !format!("{lock:?}").contains("FAST") {
            for _ in 0..100 {
                lock.lock_shared();
                // SAFETY: taken just now.
                unsafe { lock.unlock_shared() };
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(read);
        read();
    });
}

fn take(
    lock: &RawRwLock,
    me: u32,
    hold: Hold,
    deadline: Option<&Deadline>,
) -> Result<(), RwLockError> {
    match hold {
        Read => lock.read(me, deadline),
        ReadAgain => lock.read_recursive(me, deadline),
        Write => lock.write(me, deadline),
        Claim => lock.read_upgradably(deadline),
        // SAFETY: allowed only to who has the claim.
        Upgrade => unsafe { lock.upgrade_checked(me, deadline) },
    }
}

/// What a thread is about that has not come back.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Answers(Answer),
    Takes {
        hold: Hold,
        /// If it does not wait for ever: what it is told if it gets nothing.
        fails: Option<i32>,
        /// Whether it must get it, or must not; else either is right.
        gets: Option<bool>,
    },
}

/// See the module above.
pub(crate) struct Modelled {
    sort: Sort,
    readers: [u32; THREADS + 1],
    writer: Option<usize>,
    claim: Option<usize>,
    doing: BTreeMap<usize, Doing>,
    /// Those who wait for as long as it takes.
    line: Vec<(usize, Hold)>,
}

impl Modelled {
    fn has(&self, thread: usize, hold: Hold) -> bool {
        match hold {
            Read | ReadAgain => self.readers[thread] > 0,
            Write | Upgrade => self.writer == Some(thread),
            Claim => self.claim == Some(thread),
        }
    }

    fn has_anything(&self, thread: usize) -> bool {
        [Read, Write, Claim]
            .into_iter()
            .any(|hold| self.has(thread, hold))
    }

    fn is_read(&self) -> bool {
        self.readers.iter().any(|&times| times > 0)
    }

    fn is_free(&self) -> bool {
        self.writer.is_none() && self.claim.is_none() && !self.is_read()
    }

    /// Whether a hold goes together with those of others.
    fn fits(&self, hold: Hold) -> bool {
        match hold {
            Read | ReadAgain => self.writer.is_none(),
            Write => self.is_free(),
            Claim => self.writer.is_none() && self.claim.is_none(),
            Upgrade => !self.is_read(),
        }
    }

    fn waits(&self, holds: &[Hold]) -> bool {
        self.line.iter().any(|(_, hold)| holds.contains(hold))
    }

    /// Whether somebody who wants this gets it now.
    fn gets(&self, thread: usize, hold: Hold) -> Option<bool> {
        if !self.fits(hold) {
            return Some(false);
        }
        let shut = self.sort.preference == Preference::Writer && self.waits(&[Write]);
        match hold {
            // Who reads by a slot is known to do so, and reads again.
            Read if shut && self.has(thread, Read) => None,
            Read if shut => Some(false),
            // Those who wait to write may have their turn.
            Read | Claim if self.waits(&[Write, Claim, Upgrade]) => None,
            // Who was the last of a process-shared one's to be woken does not know that.
            Read | Claim if self.sort.scope == Scope::Shared && !self.is_free() => None,
            _ => Some(true),
        }
    }

    /// Whether one who waits for this must get it, however long that takes.
    fn is_due(&self, hold: Hold) -> bool {
        let prefers_readers = self.sort.preference == Preference::Reader;
        let writers_wait = self.waits(&[Write, Upgrade]);
        // Who wants to hold it upgradably is to write some time.
        let may_be_shut = writers_wait || self.waits(&[Claim]);
        self.fits(hold)
            && match hold {
                Read => prefers_readers || !may_be_shut,
                Claim => !writers_wait,
                _ => true,
            }
    }

    fn grant(&mut self, thread: usize, hold: Hold) {
        match hold {
            Read | ReadAgain => self.readers[thread] += 1,
            Write => self.writer = Some(thread),
            Claim => self.claim = Some(thread),
            Upgrade => {
                self.claim = None;
                self.writer = Some(thread);
            }
        }
    }

    fn leave(&mut self, thread: usize, hold: Hold) {
        match hold {
            Read | ReadAgain => self.readers[thread] -= 1,
            Write | Upgrade => self.writer = None,
            Claim => self.claim = None,
        }
    }

    fn take(&mut self, thread: usize, hold: Hold, limit: Option<Limit>) -> Doing {
        let writes = self.writer == Some(thread);
        if writes && limit.is_some() && matches!(hold, Read | ReadAgain | Write) {
            return Doing::Answers(Err(EDEADLK));
        }
        if hold == Upgrade && self.claim.is_none() {
            return Doing::Answers(Err(EPERM));
        }
        let fails = match limit {
            None => Some(EBUSY),
            Some(limit) => limit.passes().then_some(ETIMEDOUT),
        };
        let gets = self.gets(thread, hold);
        if fails.is_none() && gets != Some(true) {
            self.line.push((thread, hold));
        }
        Doing::Takes { hold, fails, gets }
    }
}

impl Model<RwLocks> for Modelled {
    fn new(sort: &Sort) -> Self {
        Self {
            sort: *sort,
            readers: [0; THREADS + 1],
            writer: None,
            claim: None,
            doing: BTreeMap::new(),
            line: Vec::new(),
        }
    }

    fn allows(&self, thread: usize, call: &Call) -> bool {
        match *call {
            // Refused, if nobody has what is to be upgraded, nor may have it any moment.
            Take(Upgrade, _) | Try(Upgrade) if self.claim != Some(thread) => {
                self.claim.is_none() && !self.waits(&[Claim, Write]) && may_wait(thread)
            }
            Take(Upgrade, limit) => may_wait(thread) && (limit.passes() || !self.has(thread, Read)),
            Take(hold, limit) => {
                // Who has something waits only where nobody can wait for it meanwhile.
                let reads = self.has(thread, Read) && self.claim != Some(thread);
                let reads_on = match hold {
                    Read => reads && self.sort.preference == Preference::Reader,
                    ReadAgain => reads,
                    _ => false,
                };
                let refused = self.writer == Some(thread) && hold != Claim;
                let alone = !self.has_anything(thread) || reads_on || refused;
                may_wait(thread) && (alone || limit.passes())
            }
            Try(_) => true,
            Leave(hold) | LeaveFairly(hold) => self.has(thread, hold),
            Unlock => {
                let has_one = self.has(thread, Read) || self.has(thread, Write);
                has_one && self.claim.is_none()
            }
            WriteToRead | WriteToClaim => self.has(thread, Write),
            ClaimToRead => self.has(thread, Claim),
        }
    }

    fn is_misuse(&self, thread: usize, call: &Call) -> bool {
        match call {
            Take(Upgrade, _) | Try(Upgrade) => self.claim != Some(thread),
            Take(..) => self.has_anything(thread),
            _ => false,
        }
    }

    fn begins(&mut self, thread: usize, call: &Call) {
        let doing = match *call {
            Take(hold, limit) => self.take(thread, hold, Some(limit)),
            Try(hold) => self.take(thread, hold, None),
            Leave(hold) | LeaveFairly(hold) => {
                self.leave(thread, hold);
                Doing::Answers(Ok(0))
            }
            Unlock => {
                let hold = if self.has(thread, Write) { Write } else { Read };
                self.leave(thread, hold);
                Doing::Answers(Ok(0))
            }
            WriteToRead | WriteToClaim | ClaimToRead => {
                let (from, to) = match *call {
                    WriteToRead => (Write, Read),
                    WriteToClaim => (Write, Claim),
                    _ => (Claim, Read),
                };
                self.leave(thread, from);
                self.grant(thread, to);
                Doing::Answers(Ok(0))
            }
        };
        self.doing.insert(thread, doing);
    }

    fn returns(&mut self, thread: usize, answer: Answer) -> Result<(), String> {
        match self.doing.remove(&thread).expect("it was away") {
            Doing::Answers(right) => expect(thread, answer, right),
            Doing::Takes { hold, fails, gets } => {
                let waited = self.line.iter().any(|&(other, _)| other == thread);
                if answer == Ok(0) {
                    if !self.fits(hold) || gets == Some(false) && !waited {
                        return Err(format!("thread {thread} gets what it cannot have"));
                    }
                    self.line.retain(|&(other, _)| other != thread);
                    self.grant(thread, hold);
                    return Ok(());
                }
                match fails {
                    Some(error) if gets != Some(true) => expect(thread, answer, Err(error)),
                    _ => expect(thread, answer, Ok(0)),
                }
            }
        }
    }

    fn rests(&mut self, lock: &RawRwLock) -> Result<(), String> {
        let at_once = |doing: &Doing| match doing {
            Doing::Answers(_) => true,
            Doing::Takes { fails, gets, .. } => fails.is_some() || *gets == Some(true),
        };
        if let Some((thread, doing)) = self.doing.iter().find(|(_, doing)| at_once(doing)) {
            return Err(format!(
                "thread {thread} does not come back: {doing:?}; {lock:?}"
            ));
        }
        let mut line = self.line.iter();
        if let Some((thread, hold)) = line.find(|(_, hold)| self.is_due(*hold)) {
            // Of those who want to write only one can.
            return Err(format!(
                "thread {thread} is not let in to {hold:?}; {lock:?}"
            ));
        }
        Ok(())
    }

    fn agrees(&self, lock: &RawRwLock) -> Result<(), String> {
        let held = (lock.is_locked(), lock.is_locked_exclusive());
        if held != (!self.is_free(), self.writer.is_some()) {
            return Err(format!("held, written: not {held:?}"));
        }
        let is_idle = self.is_free() && self.line.is_empty();
        // A process-shared one remembers who gave up, until it is unlocked again.
        let remembers = self.sort.scope == Scope::Shared && is_idle;
        if lock.is_idle() != is_idle && !remembers {
            return Err(format!("idle: not {}", lock.is_idle()));
        }
        Ok(())
    }

    fn is_signalled(&mut self, _thread: usize) -> bool {
        true
    }

    fn is_interrupted(&mut self, _thread: usize) {}

    fn ends(&self) -> Option<(usize, Call)> {
        // All who have it: what a reader has written into its slot would be taken for one of a later lock at the same place.
        let idle = |thread: &usize| !self.doing.contains_key(thread);
        let held = (0..=HAND).filter(idle).find_map(|thread| {
            let holds = [Write, Claim, Read].into_iter();
            holds
                .map(|hold| (thread, hold))
                .find(|&(thread, hold)| self.has(thread, hold))
        });
        held.map(|(thread, hold)| (thread, Leave(hold)))
    }
}
