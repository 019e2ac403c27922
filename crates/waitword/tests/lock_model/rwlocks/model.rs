//! The model of a reader/writer lock: which threads hold it in which way, and which are let in.

use super::*;

/// What a thread that has not returned is doing.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Answers(Answer),
    Takes {
        hold: Hold,
        /// If it does not wait forever: its error if it gets nothing.
        fails: Option<i32>,
        /// Whether it must get the lock, or must not; otherwise either is right.
        gets: Option<bool>,
    },
}

/// See the module documentation.
pub(crate) struct Modelled {
    sort: Sort,
    readers: [u32; THREADS + 1],
    writer: Option<usize>,
    claim: Option<usize>,
    doing: BTreeMap<usize, Doing>,
    /// The threads that wait for as long as it takes.
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
        [Read, Write, Claim].into_iter().any(|hold| self.has(thread, hold))
    }

    fn is_read(&self) -> bool {
        self.readers.iter().any(|&times| times > 0)
    }

    fn is_free(&self) -> bool {
        self.writer.is_none() && self.claim.is_none() && !self.is_read()
    }

    /// Whether a hold is compatible with those of other threads.
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

    /// Whether a thread that requests this gets it now.
    fn gets(&self, thread: usize, hold: Hold) -> Option<bool> {
        if !self.fits(hold) {
            return Some(false);
        }
        let shut = self.sort.preference == Preference::Writer && self.waits(&[Write]);
        match hold {
            // A visible reader is known to read, by its slot, and may read again.
            Read if shut && self.has(thread, Read) => None,
            // A waiter cannot be distinguished from one that was killed, until it sets its bit
            // again.
            Read if shut && self.sort.scope == Scope::Shared => None,
            Read if shut => Some(false),
            // The threads that wait to write may have their turn.
            Read | Claim if self.waits(&[Write, Claim, Upgrade]) => None,
            // The last thread of a process-shared lock that was woken does not know that it was the
            // last.
            Read | Claim if self.sort.scope == Scope::Shared && !self.is_free() => None,
            _ => Some(true),
        }
    }

    /// Whether a waiter for this must get it, however long that takes.
    fn is_due(&self, hold: Hold) -> bool {
        let prefers_readers = self.sort.preference == Preference::Reader;
        let writers_wait = self.waits(&[Write, Upgrade]);
        // A thread that wants the upgradable lock will want to write at some time.
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
            // Refused if no thread holds the upgradable lock, nor may get it at any moment.
            Take(Upgrade, _) | Try(Upgrade) if self.claim != Some(thread) => {
                self.claim.is_none() && !self.waits(&[Claim, Write]) && may_wait(thread)
            }
            Take(Upgrade, limit) => may_wait(thread) && (limit.passes() || !self.has(thread, Read)),
            Take(hold, limit) => {
                // A thread that holds something may wait only where no thread can meanwhile wait
                // for it.
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
            return Err(format!("thread {thread} does not come back: {doing:?}; {lock:?}"));
        }
        let mut line = self.line.iter();
        if let Some((thread, hold)) = line.find(|(_, hold)| self.is_due(*hold)) {
            // Of the threads that want to write, only one can.
            return Err(format!("thread {thread} is not let in to {hold:?}; {lock:?}"));
        }
        Ok(())
    }

    fn agrees(&self, lock: &RawRwLock) -> Result<(), String> {
        let held = (lock.is_locked(), lock.is_locked_exclusive());
        if held != (!self.is_free(), self.writer.is_some()) {
            return Err(format!("held, written: not {held:?}"));
        }
        let is_idle = self.is_free() && self.line.is_empty();
        // A process-shared lock remembers waiters that gave up, until its next unlock.
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
        // All holders: what a reader has written into its slot would be taken for a hold of a later
        // lock at the same address.
        let idle = |thread: &usize| !self.doing.contains_key(thread);
        let held = (0..=HAND).filter(idle).find_map(|thread| {
            let holds = [Write, Claim, Read].into_iter();
            holds.map(|hold| (thread, hold)).find(|&(thread, hold)| self.has(thread, hold))
        });
        held.map(|(thread, hold)| (thread, Leave(hold)))
    }
}
