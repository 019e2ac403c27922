//! The model of a mutex and its condition variable: which thread holds it, which wait where, what
//! each gets.

use super::*;

/// What a thread that has not returned is doing.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Returns this, whatever other threads do.
    Answers(Answer),
    /// Returns this as soon as it has the mutex.
    Locks(Answer),
    /// Waits for a signal; `keeps`: it holds a recursive mutex meanwhile.
    Waits { keeps: bool },
}

/// See the module documentation.
pub(crate) struct Modelled {
    sort: Sort,
    /// The thread, and how many levels it holds.
    holder: Option<(usize, u32)>,
    doing: BTreeMap<usize, Doing>,
    /// The threads that wait for the mutex, in order of arrival.
    line: Vec<usize>,
    /// Whether that order is known for all of them. It is not for threads that were signalled, nor
    /// after a signal handler.
    line_is_known: bool,
    /// The threads that wait for a signal.
    queue: Vec<usize>,
    /// The thread that must have the mutex next.
    next: Option<usize>,
    interrupted: [bool; THREADS + 1],
    /// Whether a thread waited for a signal while another was signalled.
    saw_a_signal: [bool; THREADS + 1],
}

impl Modelled {
    fn inherits(&self) -> bool {
        self.sort.flavour == PosixFlavour::PriorityInheriting
    }

    fn has_owner(&self) -> bool {
        self.inherits() || self.sort.kind != Kind::Normal
    }

    fn has(&self, thread: usize) -> bool {
        self.holder.is_some_and(|(holder, _)| holder == thread)
    }

    fn levels(&self) -> u32 {
        self.holder.map_or(0, |(_, levels)| levels)
    }

    /// The holder takes one more level, or releases one.
    fn change_level(&mut self, by: i32) {
        let (holder, levels) = self.holder.expect("held");
        self.holder = Some((holder, levels.wrapping_add_signed(by)));
    }

    fn stand_in_line(&mut self, thread: usize, answer: Answer, since_now: bool) {
        self.line_is_known = since_now && (self.line_is_known || self.line.is_empty());
        self.line.push(thread);
        self.doing.insert(thread, Doing::Locks(answer));
    }

    fn signal(&mut self, thread: usize, answer: Answer) {
        if let Some(Doing::Waits { keeps: true }) = self.doing.get(&thread) {
            self.change_level(1);
            self.doing.insert(thread, Doing::Answers(answer));
        } else {
            self.stand_in_line(thread, answer, false);
        }
    }

    fn lock(&mut self, thread: usize, limit: Option<Limit>) -> Option<Answer> {
        if self.has(thread) {
            if self.sort.kind == Kind::Recursive {
                self.change_level(1);
                return Some(Ok(0));
            }
            return Some(Err(match limit {
                None => EBUSY,
                Some(_) if self.has_owner() => EDEADLK,
                Some(_) => ETIMEDOUT,
            }));
        }
        if self.holder.is_none() {
            self.holder = Some((thread, 1));
            return Some(Ok(0));
        }
        match limit {
            None => Some(Err(EBUSY)),
            Some(limit) if limit.passes() => Some(Err(ETIMEDOUT)),
            Some(_) => {
                self.stand_in_line(thread, Ok(0), true);
                None
            }
        }
    }

    fn unlock(&mut self, thread: usize, fairly: bool) -> Answer {
        if self.has_owner() && !self.has(thread) {
            return Err(EPERM);
        }
        if self.levels() > 1 {
            self.change_level(-1);
        } else {
            self.holder = None;
            let in_order = fairly && self.sort.scope == Scope::Private || self.inherits();
            self.next = self.line.first().copied();
            self.next = self.next.filter(|_| in_order && self.line_is_known);
        }
        Ok(0)
    }

    fn wait(&mut self, thread: usize, limit: Limit) -> Option<Answer> {
        if self.has_owner() && !self.has(thread) {
            return Some(Err(EPERM));
        }
        let keeps = self.levels() > 1;
        let ends = if limit.passes() {
            Some(Err(ETIMEDOUT))
        } else if self.interrupted[thread] && self.sort.signals == Scope::Private {
            self.interrupted[thread] = false;
            Some(Err(EINTR))
        } else {
            None
        };
        if keeps && ends.is_some() {
            return ends;
        }
        match keeps {
            true => self.change_level(-1),
            false => self.holder = None,
        }
        match ends {
            Some(answer) => self.stand_in_line(thread, answer, false),
            None => {
                self.queue.push(thread);
                self.saw_a_signal[thread] = false;
                self.doing.insert(thread, Doing::Waits { keeps });
            }
        }
        None
    }

    fn notify(&mut self, count: usize) -> Answer {
        let count = count.min(self.queue.len());
        let signalled: Vec<usize> = self.queue.drain(..count).collect();
        for &thread in &self.queue {
            self.saw_a_signal[thread] |= !signalled.is_empty();
        }
        for thread in signalled {
            self.signal(thread, Ok(0));
        }
        Ok(count)
    }
}

impl Model<Mutexes> for Modelled {
    fn new(sort: &Sort) -> Self {
        Self {
            sort: *sort,
            holder: None,
            doing: BTreeMap::new(),
            line: Vec::new(),
            line_is_known: true,
            queue: Vec::new(),
            next: None,
            interrupted: [false; THREADS + 1],
            saw_a_signal: [false; THREADS + 1],
        }
    }

    fn allows(&self, thread: usize, call: &Call) -> bool {
        let owns = self.has_owner() || self.has(thread);
        match call {
            Lock(limit) => {
                let waits_for_itself = self.has(thread) && !self.has_owner();
                may_wait(thread) && (!waits_for_itself || limit.passes())
            }
            TryLock | NotifyOne | NotifyAll => true,
            // A mutex without an owner may be unlocked by any thread that knows that it is locked.
            Unlock | UnlockFair => self.has_owner() || self.holder.is_some(),
            Bump => may_wait(thread) && self.has(thread) && self.levels() == 1,
            Wait(limit) => {
                let interrupted = self.interrupted[thread];
                let ends_once = !(interrupted && limit.passes());
                // If another thread takes the mutex meanwhile, the call would not be back before
                // the next step.
                let is_back = *limit != Limit::Soon || self.line.is_empty();
                may_wait(thread) && owns && ends_once && is_back
            }
        }
    }

    fn is_misuse(&self, thread: usize, call: &Call) -> bool {
        matches!(call, Unlock | UnlockFair | Wait(_)) && !self.has(thread)
    }

    fn begins(&mut self, thread: usize, call: &Call) {
        let answer = match *call {
            Lock(limit) => self.lock(thread, Some(limit)),
            TryLock => self.lock(thread, None),
            Unlock => Some(self.unlock(thread, false)),
            UnlockFair => Some(self.unlock(thread, true)),
            Bump if self.inherits() || self.line.is_empty() => Some(Ok(0)),
            Bump => {
                let _ = self.unlock(thread, true);
                self.stand_in_line(thread, Ok(0), true);
                None
            }
            Wait(limit) => self.wait(thread, limit),
            NotifyOne => Some(self.notify(1)),
            NotifyAll => Some(self.notify(usize::MAX)),
        };
        if let Some(answer) = answer {
            self.doing.insert(thread, Doing::Answers(answer));
        }
    }

    fn returns(&mut self, thread: usize, answer: Answer) -> Result<(), String> {
        if answer == Err(EINTR) {
            // It has also cleared a request that came meanwhile.
            self.interrupted[thread] = false;
        }
        match self.doing.remove(&thread).expect("it was away") {
            Doing::Answers(right) => expect(thread, answer, right),
            Doing::Waits { .. } => Err(format!("thread {thread} was not signalled")),
            Doing::Locks(right) => {
                expect(thread, answer, right)?;
                if let Some((holder, _)) = self.holder {
                    return Err(format!("{holder} has the mutex, and {thread} too"));
                }
                if let Some(next) = self.next.take_if(|next| *next != thread) {
                    return Err(format!("{next} was to have the mutex, not {thread}"));
                }
                self.next = None;
                self.holder = Some((thread, 1));
                self.line.retain(|&other| other != thread);
                Ok(())
            }
        }
    }

    fn rests(&mut self, _pair: &Pair) -> Result<(), String> {
        let answers = |doing: &Doing| matches!(doing, Doing::Answers(_));
        if let Some((thread, doing)) = self.doing.iter().find(|(_, doing)| answers(doing)) {
            return Err(format!("thread {thread} does not come back: {doing:?}"));
        }
        if self.holder.is_none() && !self.line.is_empty() {
            return Err(format!("no thread is let in of {:?}", self.line));
        }
        Ok(())
    }

    fn agrees(&self, pair: &Pair) -> Result<(), String> {
        if pair.mutex.is_locked() != self.holder.is_some() {
            return Err(format!("the mutex is not held by {:?}", self.holder));
        }
        Ok(())
    }

    fn is_signalled(&mut self, thread: usize) -> bool {
        // In the kernel, a condvar's wait may end spuriously, or begins again behind the others.
        let in_kernel = self.inherits() || self.sort.signals == Scope::Shared;
        let may_return = self.queue.contains(&thread) && in_kernel;
        if self.inherits() {
            // A thread that waits in the kernel begins its wait again.
            self.line_is_known = false;
        }
        !may_return
    }

    fn is_interrupted(&mut self, thread: usize) {
        self.interrupted[thread] = true;
        let place = self.queue.iter().position(|&other| other == thread);
        if let Some(place) = place.filter(|_| self.sort.signals == Scope::Private) {
            self.queue.remove(place);
            // The kernel cannot tell which waiter a signal was for. So a waiter of a
            // priority-inheriting mutex takes a signal that came since then for its own. The
            // interruption remains pending for its next wait.
            let is_taken_for_a_signal = self.inherits() && self.saw_a_signal[thread];
            self.interrupted[thread] = is_taken_for_a_signal;
            let answer = match is_taken_for_a_signal {
                true => Ok(0),
                false => Err(EINTR),
            };
            self.signal(thread, answer);
        }
    }

    fn ends(&self) -> Option<(usize, Call)> {
        if !self.queue.is_empty() {
            return Some((HAND, NotifyAll));
        }
        let holder = self.holder.filter(|_| !self.line.is_empty());
        holder.map(|(holder, _)| (holder, Unlock))
    }
}
