//! The functions that the drop-in exports, their parameters, and how they answer.

use super::values::Kind;
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeSet;

/// The meaning of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// Memory in which to initialise an object.
    New(Kind),
    Object(Kind),
    /// An attribute object of so many bytes, or NULL.
    Attributes(usize),
    Time,
    Clock,
    /// Whether processes share the object.
    Shared,
    Count,
    /// A C11 mutex type.
    Type,
    /// `int *`.
    Result,
    Routine,
    Thread,
}

/// How a function reports its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// As an error number; a barrier also as -1.
    Number,
    /// As -1 and `errno`.
    Errno,
    /// As C11's numbers.
    C11,
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) answers: Answers,
    /// Whether it may wait without a limit.
    pub(crate) waits: bool,
}

use Answers::{C11, Errno, Nothing, Number};
use Kind::{Barrier, Cond, Mutex, Once, Rwlock, Sem, Spin};
use Parameter::{
    Attributes, Clock, Count, New, Object, Result as Into, Routine, Shared, Thread, Time, Type,
};

const fn function(
    answers: Answers,
    name: &'static str,
    parameters: &'static [Parameter],
) -> Function {
    Function { name, parameters, answers, waits: false }
}

const fn waits(answers: Answers, name: &'static str, parameters: &'static [Parameter]) -> Function {
    Function { name, parameters, answers, waits: true }
}

const MUTEX: &[Parameter] = &[Object(Mutex)];
const RWLOCK: &[Parameter] = &[Object(Rwlock)];
const COND: &[Parameter] = &[Object(Cond)];
const SEM: &[Parameter] = &[Object(Sem)];
const SPIN: &[Parameter] = &[Object(Spin)];
const ONCE: &[Parameter] = &[Object(Once), Routine];
const NEW_MUTEX: &[Parameter] = &[New(Mutex), Attributes(4)];
const NEW_RWLOCK: &[Parameter] = &[New(Rwlock), Attributes(8)];
const TIMED: &[Parameter] = &[Object(Rwlock), Time];
const CLOCKED: &[Parameter] = &[Object(Rwlock), Clock, Time];

/// All functions but those in [`TRIED_ELSEWHERE`].
pub(crate) const FUNCTIONS: &[Function] = &[
    function(Number, "pthread_mutex_init", NEW_MUTEX),
    // glibc's waits for waiters.
    function(Number, "pthread_mutex_destroy", MUTEX),
    waits(Number, "pthread_mutex_lock", MUTEX),
    function(Number, "pthread_mutex_trylock", MUTEX),
    function(Number, "pthread_mutex_unlock", MUTEX),
    function(Number, "pthread_mutex_timedlock", &[Object(Mutex), Time]),
    function(Number, "pthread_mutex_clocklock", &[Object(Mutex), Clock, Time]),
    function(Number, "pthread_cond_init", &[New(Cond), Attributes(4)]),
    // glibc's waits for waiters.
    waits(Number, "pthread_cond_destroy", COND),
    function(Number, "pthread_cond_signal", COND),
    function(Number, "pthread_cond_broadcast", COND),
    waits(Number, "pthread_cond_wait", &[Object(Cond), Object(Mutex)]),
    function(Number, "pthread_cond_timedwait", &[Object(Cond), Object(Mutex), Time]),
    function(Number, "pthread_cond_clockwait", &[Object(Cond), Object(Mutex), Clock, Time]),
    function(Number, "pthread_rwlock_init", NEW_RWLOCK),
    function(Number, "pthread_rwlock_destroy", RWLOCK),
    waits(Number, "pthread_rwlock_rdlock", RWLOCK),
    waits(Number, "pthread_rwlock_wrlock", RWLOCK),
    function(Number, "pthread_rwlock_tryrdlock", RWLOCK),
    function(Number, "pthread_rwlock_trywrlock", RWLOCK),
    function(Number, "pthread_rwlock_unlock", RWLOCK),
    function(Number, "pthread_rwlock_timedrdlock", TIMED),
    function(Number, "pthread_rwlock_timedwrlock", TIMED),
    function(Number, "pthread_rwlock_clockrdlock", CLOCKED),
    function(Number, "pthread_rwlock_clockwrlock", CLOCKED),
    function(Errno, "sem_init", &[New(Sem), Shared, Count]),
    function(Errno, "sem_destroy", SEM),
    function(Errno, "sem_post", SEM),
    function(Errno, "sem_trywait", SEM),
    waits(Errno, "sem_wait", SEM),
    function(Errno, "sem_timedwait", &[Object(Sem), Time]),
    function(Errno, "sem_clockwait", &[Object(Sem), Clock, Time]),
    function(Errno, "sem_getvalue", &[Object(Sem), Into]),
    function(Number, "pthread_barrier_init", &[New(Barrier), Attributes(4), Count]),
    // glibc's waits for threads that are leaving the barrier.
    waits(Number, "pthread_barrier_destroy", &[Object(Barrier)]),
    waits(Number, "pthread_barrier_wait", &[Object(Barrier)]),
    function(Number, "pthread_spin_init", &[New(Spin), Shared]),
    function(Number, "pthread_spin_destroy", SPIN),
    waits(Number, "pthread_spin_lock", SPIN),
    function(Number, "pthread_spin_trylock", SPIN),
    function(Number, "pthread_spin_unlock", SPIN),
    waits(Number, "pthread_once", ONCE),
    function(Number, "pthread_cancel", &[Thread]),
    waits(Number, "pthread_join", &[Thread, Into]),
    waits(Number, "pthread_timedjoin_np", &[Thread, Into, Time]),
    waits(Number, "pthread_clockjoin_np", &[Thread, Into, Clock, Time]),
    function(C11, "mtx_init", &[New(Mutex), Type]),
    function(Nothing, "mtx_destroy", MUTEX),
    waits(C11, "mtx_lock", MUTEX),
    function(C11, "mtx_trylock", MUTEX),
    function(C11, "mtx_timedlock", &[Object(Mutex), Time]),
    function(C11, "mtx_unlock", MUTEX),
    function(C11, "cnd_init", &[New(Cond)]),
    waits(Nothing, "cnd_destroy", COND),
    function(C11, "cnd_signal", COND),
    function(C11, "cnd_broadcast", COND),
    waits(C11, "cnd_wait", &[Object(Cond), Object(Mutex)]),
    function(C11, "cnd_timedwait", &[Object(Cond), Object(Mutex), Time]),
    waits(Nothing, "call_once", ONCE),
    function(Number, "__pthread_mutex_init", NEW_MUTEX),
    function(Number, "__pthread_mutex_destroy", MUTEX),
    waits(Number, "__pthread_mutex_lock", MUTEX),
    function(Number, "__pthread_mutex_trylock", MUTEX),
    function(Number, "__pthread_mutex_unlock", MUTEX),
    function(Number, "__pthread_rwlock_init", NEW_RWLOCK),
    function(Number, "__pthread_rwlock_destroy", RWLOCK),
    waits(Number, "__pthread_rwlock_rdlock", RWLOCK),
    waits(Number, "__pthread_rwlock_wrlock", RWLOCK),
    function(Number, "__pthread_rwlock_tryrdlock", RWLOCK),
    function(Number, "__pthread_rwlock_trywrlock", RWLOCK),
    function(Number, "__pthread_rwlock_unlock", RWLOCK),
    waits(Number, "__pthread_once", ONCE),
];

/// `tests/raw_futex` and `crates/waitword/tests/fuzz` try `syscall`, with wrong arguments, too.
/// The remaining functions pass their arguments to the C library unchanged, and most of them do not
/// return (`conformance/leaving.c`, `conformance/exceptions.cpp`).
const TRIED_ELSEWHERE: &[&str] = &[
    "syscall",
    "pthread_setcanceltype",
    "pthread_exit",
    "thrd_exit",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "_Unwind_RaiseException",
    "_Unwind_Resume_or_Rethrow",
];

/// The functions that the library exports and that are not known here, and the known functions that
/// it does not export.
pub(crate) fn unknown_and_missing(library: &str) -> (Vec<String>, Vec<String>) {
    let bytes = std::fs::read(library).expect("the drop-in");
    let file = object::File::parse(&*bytes).expect("a shared library");
    let exported: BTreeSet<String> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.is_global())
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect();
    let known: BTreeSet<String> = FUNCTIONS
        .iter()
        .map(|function| function.name)
        .chain(TRIED_ELSEWHERE.iter().copied())
        .map(str::to_owned)
        .collect();
    (exported.difference(&known).cloned().collect(), known.difference(&exported).cloned().collect())
}
