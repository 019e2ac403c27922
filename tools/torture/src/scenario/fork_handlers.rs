//! Tortured: forks while other threads lock, wait, post, and call once-routines. Handlers of
//! `pthread_atfork` take a mutex before the fork and release it on both sides, as libraries do. The
//! child makes the other objects again, at the same places, and uses them with threads of its own.
//! Some children execute this same program, which goes on torturing.
//!
//! Checked: the handlers' mutex is free in the child, and what it protects is whole. Objects that
//! are made again work. A routine that a thread of the parent had not finished is called again. The
//! parent goes on as if nothing had happened.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::pthread::condvar::{Condvar, CondvarSort};
use crate::objects::pthread::mutex::Mutex;
use crate::objects::pthread::object::{Object, zero};
use crate::objects::pthread::once::Once;
use crate::objects::pthread::semaphore::Semaphore;
use crate::objects::pthread::sort::{Kind, Made, Protocol, Sort};
use crate::objects::traits::{Lock as _, Once as _, Semaphore as _};
use crate::parts::books::Pair;
use crate::process::{self, BareThread, Ended};
use crate::protocol::VARIABLE;
use crate::slice::Slice;
use std::ffi::CString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

const FORKS: usize = 12;
const MOST_THREADS: usize = 32;
/// Tokens that the child's threads hand over.
const TOKENS: usize = 40;
/// After this many forks, a child executes this program.
const EXECUTES_EVERY: usize = 12;

/// How a child reports what was wrong: its exit status. 0 means that all is well.
const CHILD_FAILED: i32 = 61;
const NOT_WHOLE: i32 = 62;
const NOT_CALLED: i32 = 63;
const NO_EXEC: i32 = 64;

/// What the threads use.
struct Yard {
    /// The handlers' mutex.
    kept: Mutex,
    pair: Pair,
    /// Made again by the child.
    lock: Mutex,
    condvar: Condvar,
    semaphore: Semaphore,
    /// One for each fork.
    once: [Once; FORKS],
    tokens: AtomicUsize,
    over: AtomicBool,
    called: [AtomicUsize; FORKS],
    /// Which fork is next.
    fork: AtomicUsize,
}

/// The yard whose mutex the handlers take, while there are forks.
static KEPT: AtomicPtr<Yard> = AtomicPtr::new(std::ptr::null_mut());

fn kept() -> Option<&'static Mutex> {
    // SAFETY: null, or one that is never freed.
    unsafe { KEPT.load(SeqCst).as_ref() }.map(|yard| &yard.kept)
}

unsafe extern "C" fn prepare() {
    if let Some(lock) = kept() {
        // SAFETY: it was made.
        unsafe { libc::pthread_mutex_lock(lock.raw()) };
    }
}

unsafe extern "C" fn after() {
    if let Some(lock) = kept() {
        // SAFETY: taken by `prepare`, by the thread that forked.
        unsafe { libc::pthread_mutex_unlock(lock.raw()) };
    }
}

impl Yard {
    /// In the parent: things that may be in progress when another thread forks.
    fn turn(&'static self, actor: &mut Actor) -> Verdict {
        match actor.dice.u32(0..4) {
            0 | 1 => {
                let lock = &self.kept;
                lock.lock(actor)?;
                let sound = self.change();
                lock.unlock()?;
                sound?;
            }
            2 => {
                self.lock.lock(actor)?;
                let tokens = self.tokens.load(Relaxed);
                match actor.dice.bool() {
                    true => {
                        self.tokens.store(tokens + 1, Relaxed);
                        self.condvar.signal(false)?;
                    }
                    false if tokens > 0 => self.tokens.store(tokens - 1, Relaxed),
                    false => self.condvar.wait(actor, &self.lock, true)?,
                }
                self.lock.unlock()?;
            }
            _ => {
                self.semaphore.post();
                self.call_once();
                self.semaphore.wait()?;
            }
        }
        actor.step();
        Ok(())
    }

    /// With the handlers' mutex held.
    fn change(&self) -> Verdict {
        match self.pair.change(std::thread::yield_now) {
            true => Ok(()),
            false => Err("two threads hold a mutex".to_owned()),
        }
    }

    /// In the child, whose only thread this is.
    fn in_child(&'static self) -> Result<(), i32> {
        // SAFETY: it was made, and the handler has unlocked it.
        let free = unsafe { libc::pthread_mutex_trylock(self.kept.raw()) } == 0;
        if !self.pair.is_whole() || !free {
            return Err(NOT_WHOLE);
        }
        let failed = |_| CHILD_FAILED;
        self.kept.unlock().map_err(failed)?;
        // The threads that used these objects do not exist here.
        let make_again = || -> Verdict {
            self.lock.make()?;
            self.condvar.make()?;
            self.semaphore.make(0)
        };
        make_again().map_err(failed)?;
        self.tokens.store(0, SeqCst);
        // The parent may have called it, or have begun to, or not.
        let called = &self.called[self.fork.load(SeqCst)];
        let before = called.load(SeqCst);
        self.call_once();
        let after = called.load(SeqCst);
        if after == 0 || after > before + 1 {
            return Err(NOT_CALLED);
        }
        let taker = BareThread::start(move || i32::from(self.take(TOKENS).is_err()));
        self.give(TOKENS).map_err(failed)?;
        match taker.join() {
            0 => Ok(()),
            _ => Err(CHILD_FAILED),
        }
    }

    fn call_once(&'static self) {
        let fork = self.fork.load(SeqCst);
        // In whatever state the parent's threads have left it.
        self.once[fork].call(&mut || {
            std::thread::yield_now();
            self.called[fork].fetch_add(1, SeqCst);
            std::thread::yield_now();
        });
    }

    fn give(&self, tokens: usize) -> Verdict {
        for _ in 0..tokens {
            self.with_lock(|| {
                self.tokens.fetch_add(1, Relaxed);
                self.condvar.signal(false)
            })?;
            self.semaphore.wait()?;
        }
        Ok(())
    }

    fn take(&self, tokens: usize) -> Verdict {
        for _ in 0..tokens {
            self.with_lock(|| {
                while self.tokens.load(Relaxed) == 0 {
                    zero("wait", self.condvar.wait_now(&self.lock, None))?;
                }
                self.tokens.fetch_sub(1, Relaxed);
                Ok(())
            })?;
            if !self.semaphore.post() {
                return Err("sem_post failed".to_owned());
            }
        }
        Ok(())
    }

    /// In the child, whose threads have no actors.
    fn with_lock(&self, work: impl FnOnce() -> Verdict) -> Verdict {
        let mutex = self.lock.raw();
        // SAFETY: it was made.
        zero("lock", unsafe { libc::pthread_mutex_lock(mutex) })?;
        work()?;
        // SAFETY: locked above.
        zero("unlock", unsafe { libc::pthread_mutex_unlock(mutex) })
    }
}

/// What a child executes: this program, for a round of another scenario. It is made before the
/// fork, because the child must not allocate.
struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    fn new(context: &Context) -> Option<Self> {
        let path = std::env::current_exe().ok()?;
        // A round of another scenario, with few threads.
        let slice = Slice {
            scenario: "pthread-once".to_owned(),
            seconds: 0.0,
            threads: vec![4],
            ..context.slice.clone()
        };
        let slice = format!("{VARIABLE}={}", slice.to_text().ok()?);
        let others = std::env::vars_os().filter(|(name, _)| name != VARIABLE);
        let others = others.map(|(name, value)| {
            let text = [name.as_bytes(), b"=", value.as_bytes()].concat();
            CString::new(text).unwrap_or_default()
        });
        Some(Self {
            path: CString::new(path.into_os_string().into_vec()).ok()?,
            arguments: std::env::args_os()
                .map(|argument| CString::new(argument.into_vec()).unwrap_or_default())
                .collect(),
            environment: others.chain([CString::new(slice).ok()?]).collect(),
        })
    }

    /// Replaces the process by the program. Returns only if that fails.
    fn execute(&self) -> i32 {
        let list = |texts: &[CString]| -> Vec<*const libc::c_char> {
            let texts = texts.iter().map(|text| text.as_ptr());
            texts.chain([std::ptr::null()]).collect()
        };
        // glibc's allocator works in a child of fork.
        let (arguments, environment) = (list(&self.arguments), list(&self.environment));
        // SAFETY: NUL-terminated strings, in lists that end with null. The program's output is
        // discarded.
        unsafe {
            let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
            libc::dup2(nowhere, 1);
            libc::execve(self.path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
        }
        NO_EXEC
    }
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    // SAFETY: functions that are never unloaded.
    zero("pthread_atfork", unsafe {
        libc::pthread_atfork(Some(prepare), Some(after), Some(after))
    })?;
    let program = Program::new(context).ok_or("the path of this program is not known")?;
    let sorts: Vec<_> = Sort::mutexes()
        .filter(|sort| sort.protocol == Protocol::None && !sort.robust && !sort.shared)
        .collect();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let mut some = |fits: fn(&Sort) -> bool| {
            let fitting: Vec<_> = sorts.iter().copied().filter(fits).collect();
            fitting[dice.usize(0..fitting.len())]
        };
        // In a child of fork, its thread counts as another owner.
        let kept = some(|sort| {
            matches!(sort.kind, Kind::Normal | Kind::Adaptive) && sort.made != Made::C11
        });
        let lock = some(|_| true);
        let yard: &'static Yard = Box::leak(Box::new(Yard {
            kept: Mutex::new(context, kept)?,
            pair: Pair::default(),
            lock: Mutex::new(context, lock)?,
            condvar: Condvar::new(
                context,
                "of a fork",
                CondvarSort { shared: false, ..CondvarSort::some(&mut dice) },
            )?,
            semaphore: Semaphore::private(Object::new(context, "semaphore of a fork", false)),
            once: std::array::from_fn(|index| Once::new(context, index)),
            tokens: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            called: [const { AtomicUsize::new(0) }; FORKS],
            fork: AtomicUsize::new(0),
        }));
        yard.semaphore.make(0)?;
        KEPT.store((&raw const *yard).cast_mut(), SeqCst);
        let threads = round.threads.min(MOST_THREADS);
        let program = &program;
        context.crew(round, |crew| {
            for index in 0..threads {
                crew.spawn("worker", index, move |actor| {
                    while !yard.over.load(Relaxed) {
                        yard.turn(actor)?;
                    }
                    Ok(())
                });
            }
            crew.spawn("forker", 0, move |actor| {
                let forked = (0..FORKS).try_for_each(|number| {
                    yard.fork.store(number, SeqCst);
                    let executes = number % EXECUTES_EVERY == EXECUTES_EVERY - 1;
                    fork_once(context, actor, yard, executes.then_some(program))
                });
                yard.over.store(true, Relaxed);
                forked
            });
            Ok(())
        })?;
        KEPT.store(std::ptr::null_mut(), SeqCst);
        let called = yard.called.each_ref().map(|called| called.load(SeqCst));
        if !yard.pair.is_whole() || called.iter().any(|&called| called > 1) {
            return Err(format!(
                "what the mutex protects: {:?}; calls per routine: {called:?}",
                yard.pair.halves()
            ));
        }
        yard.kept.renew()?;
        yard.lock.renew()?;
    }
    Ok(())
}

fn fork_once(
    context: &'static Context,
    actor: &mut Actor,
    yard: &'static Yard,
    program: Option<&Program>,
) -> Verdict {
    std::thread::sleep(Duration::from_micros(actor.dice.u64(0..800)));
    let child = process::fork(context, || match program {
        Some(program) => program.execute(),
        None => yard.in_child().err().unwrap_or(0),
    });
    actor.count(Count::Forks, 1);
    let ended = process::reap(context, child)?;
    actor.step();
    match ended {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(NOT_WHOLE) => {
            Err("in a child, the fork handlers' mutex, or what it protects, is damaged".to_owned())
        }
        Ended::Exited(NOT_CALLED) => {
            Err("in a child, a once-routine was not called exactly once".to_owned())
        }
        other => Err(format!("a child ended with {other:?}")),
    }
}
