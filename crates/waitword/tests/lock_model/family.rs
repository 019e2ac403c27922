//! What a family of locks has to say of itself to be run against its model.

use super::program::{Limit, Program, Step};
use crate::support::Answer;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Debug;
use std::time::Duration;
use waitword::abi_support::Interrupter;

/// Locks of one kind: the real ones, and the model of them.
pub(crate) trait Family: Copy + Debug + 'static {
    /// What is chosen as one is made.
    type Made: Clone + Debug + 'static;
    type Call: Clone + Debug + Send + 'static;
    type Object: Send + Sync + 'static;
    type Model: Model<Self>;

    /// The type's own name.
    const NAME: &'static str;

    /// For so long nobody has run though somebody must come back: then nobody will. Longer than what a waiter sleeps that looks by
    /// itself, but for the second after which sleepers on shared words do, which would hide a lost wake-up.
    const QUIET: Duration = Duration::from_millis(50);

    fn made() -> BoxedStrategy<Self::Made>;
    fn calls() -> BoxedStrategy<Self::Call>;

    fn make(made: &Self::Made) -> Self::Object;
    fn call(object: &Self::Object, caller: &Caller, call: &Self::Call) -> Answer;
}

/// Who calls.
pub(crate) struct Caller {
    pub(crate) thread: usize,
    /// By which others end its waits, where they can. Cleared by whoever was interrupted.
    pub(crate) interrupter: &'static Interrupter,
}

/// What must come of the calls: as simple as it can be said.
///
/// Where a lock promises less than one outcome (which of the waiters is next), the model takes what it sees, if that is one of
/// those promised.
pub(crate) trait Model<F: Family>: Sized {
    fn new(made: &F::Made) -> Self;

    /// Whether an idle thread may make this call: it is defined, and somebody can end it.
    fn allows(&self, thread: usize, call: &F::Call) -> bool;

    /// Whether the call, which is allowed, most likely comes to nothing. Then somebody else makes it, most of the time.
    fn is_misuse(&self, _thread: usize, _call: &F::Call) -> bool {
        false
    }

    /// A thread makes a call that is allowed.
    fn begins(&mut self, thread: usize, call: &F::Call);

    /// A call has come back.
    fn returns(&mut self, thread: usize, answer: Answer) -> Result<(), String>;

    /// All sleep who have not come back; is that right? Else somebody must still come.
    fn rests(&mut self, object: &F::Object) -> Result<(), String>;

    /// Whether the object then says of itself what is so.
    fn agrees(&self, object: &F::Object) -> Result<(), String>;

    /// Whether the thread, which waits, may be sent a signal; it will be, then.
    fn is_signalled(&mut self, thread: usize) -> bool;

    /// Its interrupter is requested.
    fn is_interrupted(&mut self, thread: usize);

    /// At the end: who calls what so that those who wait come back, and the object can be freed. `None`: nothing is left to do.
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

/// That a call came back with another answer than it must.
pub(crate) fn expect(thread: usize, answer: Answer, right: Answer) -> Result<(), String> {
    if answer == right {
        return Ok(());
    }
    let [answer, right] = [answer, right].map(crate::support::show);
    Err(format!("thread {thread} is told {answer}, not {right}"))
}
