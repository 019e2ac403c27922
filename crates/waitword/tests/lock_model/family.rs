//! What a family of locks must provide to be run against its model.

use super::program::{Limit, Program, Step};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Debug;
use std::time::Duration;
use waitword::abi_support::Interrupter;
use waitword_testkit::Answer;

/// Locks of one kind: the real ones, and the model of them.
pub(crate) trait Family: Copy + Debug + 'static {
    /// What is chosen when a lock is made.
    type Made: Clone + Debug + 'static;
    type Call: Clone + Debug + Send + 'static;
    type Object: Send + Sync + 'static;
    type Model: Model<Self>;

    /// The type's own name.
    const NAME: &'static str;

    /// If no thread has run for so long although one must come back, none will. This is longer than
    /// the sleep of a waiter that re-checks by itself, except for the one-second re-check of
    /// sleepers on shared words, which would hide a lost wake-up.
    const QUIET: Duration = Duration::from_millis(50);

    fn made() -> BoxedStrategy<Self::Made>;
    fn calls() -> BoxedStrategy<Self::Call>;

    fn make(made: &Self::Made) -> Self::Object;
    fn call(object: &Self::Object, caller: &Caller, call: &Self::Call) -> Answer;
}

/// The thread that calls.
pub(crate) struct Caller {
    pub(crate) thread: usize,
    /// Ends the thread's waits, where that is possible. The interrupted thread clears it.
    pub(crate) interrupter: &'static Interrupter,
}

/// The required results of the calls, stated as simply as possible.
///
/// Where a lock does not promise a single outcome (such as which waiter is next), the model accepts
/// what it sees, if that is one of the promised outcomes.
pub(crate) trait Model<F: Family>: Sized {
    fn new(made: &F::Made) -> Self;

    /// Whether an idle thread may make this call: the call is defined, and it can be ended.
    fn allows(&self, thread: usize, call: &F::Call) -> bool;

    /// Whether the call, which is allowed, most likely has no effect. Then another thread makes it,
    /// most of the time.
    fn is_misuse(&self, _thread: usize, _call: &F::Call) -> bool {
        false
    }

    /// A thread makes a call that is allowed.
    fn begins(&mut self, thread: usize, call: &F::Call);

    /// A call has returned.
    fn returns(&mut self, thread: usize, answer: Answer) -> Result<(), String>;

    /// All threads that have not returned are asleep. Checks that this is right: otherwise one must
    /// still return.
    fn rests(&mut self, object: &F::Object) -> Result<(), String>;

    /// Checks that the object's own state agrees with the model.
    fn agrees(&self, object: &F::Object) -> Result<(), String>;

    /// Whether the thread, which waits, may be sent a signal. If so, it is sent one.
    fn is_signalled(&mut self, thread: usize) -> bool;

    /// Its interrupter is triggered.
    fn is_interrupted(&mut self, thread: usize);

    /// At the end: which thread must call what, so that the waiters return and the object can be
    /// freed. `None`: nothing is left to do.
    fn ends(&self) -> Option<(usize, F::Call)>;
}

/// Steps of the longest program.
const STEPS: usize = 24;

pub(crate) fn programs<F: Family>() -> impl Strategy<Value = Program<F>> {
    let step = prop_oneof![
        20 => (any::<u8>(), F::calls()).prop_map(|(thread, call)| Step::By(thread, call)),
        1 => any::<u8>().prop_map(Step::Signal),
        1 => any::<u8>().prop_map(Step::Interrupt),
    ];
    (F::made(), vec(step, 1..=STEPS)).prop_map(|(made, steps)| Program { made, steps })
}

pub(crate) fn limits() -> impl Strategy<Value = Limit> + Clone {
    prop_oneof![
        6 => Just(Limit::Forever),
        1 => Just(Limit::Past),
        1 => Just(Limit::Soon),
        2 => Just(Limit::Far),
    ]
}

/// Checks that a call returned the right answer.
pub(crate) fn expect(thread: usize, answer: Answer, right: Answer) -> Result<(), String> {
    if answer == right {
        return Ok(());
    }
    let [answer, right] = [answer, right].map(waitword_testkit::show);
    Err(format!("thread {thread} gets {answer}, not {right}"))
}
