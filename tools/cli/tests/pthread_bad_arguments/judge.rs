//! Judges an outcome under the drop-in by comparing it with glibc's.

use super::cases::Case;
use super::functions::Answers;
use super::harm::Outcome;

/// The verdict on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As glibc; or the bytes mean nothing, and the call survived them.
    Right,
    /// Both hang, or both die.
    AsBad,
    /// Better than glibc, according to this line of `BETTER`.
    Better(usize),
    Wrong(String),
}

/// A case in which the drop-in rightly differs from glibc.
pub(crate) struct Better {
    /// The functions' names; a name may end with a star.
    functions: &'static [&'static str],
    /// A part of the printed case.
    argument: &'static str,
    glibc: &'static [&'static str],
    ours: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// C11's functions return `thrd_error` (2) and `thrd_timedout` (4) instead of error numbers.
pub(crate) const BETTER: &[Better] = &[
    Better {
        functions: &[
            "pthread_mutex_timedlock",
            "pthread_mutex_clocklock",
            "pthread_rwlock_timed*",
            "pthread_rwlock_clock*",
            "pthread_cond_timedwait",
            "pthread_cond_clockwait",
            "sem_timedwait",
            "sem_clockwait",
            "mtx_timedlock",
            "cnd_timedwait",
        ],
        argument: "Null]",
        glibc: &["SIGSEGV", "hangs", "0"],
        ours: &["EINVAL", "2"],
        why: "NULL is not a time (glibc dies, or waits without a limit)",
    },
    Better {
        functions: &["pthread_mutex_timedlock", "pthread_mutex_clocklock", "mtx_timedlock"],
        argument: "Time(-1, 1000000000)",
        glibc: &["ETIMEDOUT", "4"],
        ours: &["EINVAL", "2"],
        why: "a past time with 10^9 nanoseconds: either error is allowed",
    },
    Better {
        functions: &["pthread_mutex_destroy", "__pthread_mutex_destroy"],
        argument: "Destroyed",
        glibc: &["0"],
        ours: &["EINVAL"],
        why: "a destroyed mutex is no longer a mutex",
    },
    Better {
        functions: &["pthread_mutex_trylock", "__pthread_mutex_trylock", "mtx_trylock"],
        argument: "Mine(5)",
        glibc: &["EDEADLK", "2"],
        ours: &["EBUSY", "1"],
        why: "POSIX: trylock of a locked mutex is EBUSY, whichever thread holds it",
    },
    Better {
        functions: &["pthread_once", "__pthread_once", "call_once"],
        argument: "Null]",
        glibc: &["SIGSEGV", "hangs"],
        ours: &["EINVAL", "0"],
        why: "there is no routine to call",
    },
    Better {
        functions: &["pthread_rwlock_unlock", "__pthread_rwlock_unlock"],
        argument: "",
        glibc: &["0"],
        ours: &["EPERM"],
        why: "a lock that is not held cannot be released (glibc counts readers below zero)",
    },
    Better {
        functions: &["pthread_cond_destroy", "cnd_destroy"],
        argument: "Busy",
        glibc: &["hangs"],
        ours: &["EBUSY", "0"],
        why: "a thread waits that was not signalled (glibc waits for it)",
    },
    Better {
        functions: &["pthread_cond_*", "cnd_*"],
        argument: "Object(Cond, Busy",
        glibc: &["hangs", "ETIMEDOUT", "4"],
        ours: &["EINVAL", "2"],
        why: "threads already wait there with another mutex",
    },
    Better {
        functions: &[
            "pthread_cond_timedwait",
            "pthread_cond_clockwait",
            "cnd_timedwait",
            "sem_timedwait",
            "sem_clockwait",
        ],
        argument: "[Misaligned",
        glibc: &["hangs"],
        ours: &["ETIMEDOUT", "4"],
        why: "misaligned: the kernel's futex refuses it, but ours works",
    },
    Better {
        functions: &["pthread_barrier_*"],
        argument: "Misaligned",
        glibc: &["SIGFPE"],
        ours: &["EINVAL"],
        why: "a barrier of zeros has no threads (glibc divides by their number)",
    },
    Better {
        functions: &["mtx_init"],
        argument: "Number",
        glibc: &["0"],
        ours: &["2"],
        why: "no such type of mutex",
    },
];

impl Better {
    fn is(&self, case: &Case, glibc: &str, ours: &str) -> bool {
        let name = case.function.name;
        let is_named = self.functions.iter().any(|pattern| {
            pattern.strip_suffix('*').map_or(name == *pattern, |start| name.starts_with(start))
        });
        is_named
            && case.to_string().contains(self.argument)
            && self.glibc.contains(&glibc)
            && self.ours.contains(&ours)
    }
}

pub(crate) fn judge(case: &Case, glibc: Outcome, ours: Outcome) -> Verdict {
    let texts = [glibc, ours].map(|outcome| text(case, outcome));
    let wrong = || Verdict::Wrong(format!("{} on glibc, here {}", texts[0], texts[1]));
    match (glibc, ours) {
        (_, Outcome::TouchedOthers) => wrong(),
        (Outcome::Crashed(_), Outcome::Crashed(_)) | (Outcome::Hung, Outcome::Hung) => {
            Verdict::AsBad
        }
        (_, Outcome::Answered { answer, .. }) if !case.is_compared => {
            match is_answer(case.function.answers, answer) {
                true => Verdict::Right,
                false => wrong(),
            }
        }
        (_, Outcome::Hung) if !case.is_compared && case.may_wait => Verdict::Right,
        _ if texts[0] == texts[1] => Verdict::Right,
        _ => {
            let found = BETTER.iter().position(|better| better.is(case, &texts[0], &texts[1]));
            found.map_or_else(wrong, Verdict::Better)
        }
    }
}

/// Whether such a function can give this answer: 0, an error number, or -1 (for an error in
/// `errno`, or for a barrier's serial thread).
fn is_answer(answers: Answers, answer: i64) -> bool {
    match answers {
        Answers::Number => (-1..=133).contains(&answer),
        Answers::Errno => (-1..=0).contains(&answer),
        Answers::C11 => (0..=4).contains(&answer),
        Answers::Nothing => true,
    }
}

/// The outcome as text, for messages and for `BETTER`.
fn text(case: &Case, outcome: Outcome) -> String {
    match outcome {
        Outcome::Hung => "hangs".to_owned(),
        Outcome::TouchedOthers => "memory beside the object was written".to_owned(),
        Outcome::Crashed(libc::SIGSEGV) => "SIGSEGV".to_owned(),
        Outcome::Crashed(libc::SIGABRT) => "SIGABRT".to_owned(),
        Outcome::Crashed(libc::SIGFPE) => "SIGFPE".to_owned(),
        Outcome::Crashed(signal) => format!("signal {signal}"),
        Outcome::Answered { answer, errno, .. } => match (case.function.answers, answer) {
            (Answers::Errno, -1) => error(errno.into()),
            (Answers::Number, _) => error(answer),
            _ => answer.to_string(),
        },
    }
}

fn error(number: i64) -> String {
    const NAMES: [(i32, &str); 11] = [
        (libc::EPERM, "EPERM"),
        (libc::ESRCH, "ESRCH"),
        (libc::EINTR, "EINTR"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::EBUSY, "EBUSY"),
        (libc::EINVAL, "EINVAL"),
        (libc::EDEADLK, "EDEADLK"),
        (libc::ENOTSUP, "ENOTSUP"),
        (libc::EOVERFLOW, "EOVERFLOW"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::EOWNERDEAD, "EOWNERDEAD"),
    ];
    let name = NAMES.iter().find(|(known, _)| i64::from(*known) == number);
    name.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}
