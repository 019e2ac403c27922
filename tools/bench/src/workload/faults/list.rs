//! The table: each workload, each fault, and how it shows.

use super::broken::{
    Liar, Lie, NeverHad, NeverWaits, OpenCondvar, OpenToAll, OpenToReaders, SleepsOn,
    SleepsOnBarrier, SleepsOnCondvar, SleepsOnEvent, SleepsOnLock, SleepsOnSemaphore,
};
use super::{Fault, Row, Shown};
use crate::crew::Crew;
use crate::harness::{Contender, Context, Failure, Measured};
use crate::locks::{BenchCondvar, BenchMutex, BenchRwLock};
use crate::ops::{Futexes, Kernel};
use crate::usage::Usage;
use crate::workload;
use crate::workload::calls::Call;
use crate::workload::crowd::Work;
use crate::workload::futexes::OURS;
use crate::workload::game::Signal;
use crate::workload::guarded::open::Open;
use crate::workload::lockhammer::Load;
use crate::workload::ping_pong::{Placement, Spin};
use crate::workload::race::Place;
use crate::workload::rwlock::classes::Classes;
use crate::workload::uncontended::Section;
use Fault::{DoesLess, LosesWake, SkipsLock};
use Shown::{By, Cannot, Fails, Hangs};
use std::rc::Rc;
use std::time::Duration;

/// Long enough for threads to contend, even on a loaded machine.
const TIME: Duration = Duration::from_millis(200);
/// One of 13 phases, and far shorter than the watchdog's patience.
const PHASE: Duration = Duration::from_millis(20);
const BATCH: f64 = 1e6;
/// Wake-ups that [`SleepsOn`] does not lose: those of `workload::proof` and a few more.
const A_FEW: u32 = 30;

const NO_LOCK: Shown = Cannot("the workload has no lock");
const COUNTED: Shown =
    Cannot("a mutex does nothing else that could be left out: the sections are the workload's own");

const NONE_WAITED: &str = "kept no thread waiting";
const NONE_SLEPT: &str = "a thread ran that was not woken";
const SPURIOUS: &str = "an unsignalled wait returned";

const fn row(workload: &'static str, fault: Fault, shown: Shown) -> Row {
    Row { workload, fault, shown }
}

#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    row("calls", SkipsLock, NO_LOCK),
    row("calls", LosesWake, Hangs(|context|
        calls(SleepsOn::after(0, Kernel::<true>), Call::Wait, context))),
    row("calls", DoesLess, Fails("found another value", |context|
        calls(lie(Lie::AlwaysMismatches), Call::Wait, context))),
    row("calls", DoesLess, Fails("reported 0 woken", |context|
        calls(lie(Lie::WakesNone), Call::Wake, context))),
    row("calls", DoesLess, Fails("1 had stayed", |context|
        calls(lie(Lie::RequeuesNone), Call::Requeue, context))),
    row("calls", DoesLess, Fails("wake_op woke 0", |context|
        calls(lie(Lie::OperatesOnNothing), Call::WakeOp, context))),

    row("hash", SkipsLock, NO_LOCK),
    row("hash", LosesWake, Hangs(|context|
        Ok(workload::hash::contender(lost(0), &crew(2, context)?)))),
    row("hash", DoesLess, Fails("found another value", |context|
        Ok(workload::hash::contender(lie(Lie::AlwaysMismatches), &crew(2, context)?)))),

    row("wake", SkipsLock, NO_LOCK),
    row("wake", LosesWake, Hangs(|context|
        Ok(workload::wake::contender(lost(A_FEW), &crew(4, context)?, 1)))),
    row("wake", DoesLess, Fails(NONE_SLEPT, |context|
        Ok(workload::wake::contender(lie(Lie::NeverWaits), &crew(4, context)?, 1)))),
    row("wake", DoesLess, Fails("reported 0 woken", |context|
        Ok(workload::wake::contender(lie(Lie::WakesNone), &crew(4, context)?, 1)))),

    row("wake-parallel", SkipsLock, NO_LOCK),
    row("wake-parallel", LosesWake, Hangs(|context| wake_parallel(lost(A_FEW), context))),
    row("wake-parallel", DoesLess, Fails(NONE_SLEPT, |context|
        wake_parallel(lie(Lie::NeverWaits), context))),

    row("requeue", SkipsLock, NO_LOCK),
    row("requeue", LosesWake, Hangs(|context| requeue(lost(A_FEW), context))),
    row("requeue", DoesLess, Fails("4 still on the first word", |context|
        requeue(lie(Lie::MovesNone), context))),
    row("requeue", DoesLess, Fails("moved 0", |context|
        requeue(lie(Lie::RequeuesNone), context))),

    row("ping-pong", SkipsLock, NO_LOCK),
    row("ping-pong", LosesWake, Hangs(|context| ping_pong(lost(A_FEW), true, context))),
    row("ping-pong", DoesLess, Fails(NONE_SLEPT, |context|
        ping_pong(lie(Lie::NeverWaits), true, context))),

    row("shared", SkipsLock, NO_LOCK),
    row("shared", LosesWake, Hangs(|context|
        ping_pong(SleepsOn::after(A_FEW, Kernel::<false>), false, context))),
    row("shared", DoesLess, Fails(NONE_SLEPT, |context|
        ping_pong(Liar::<false>(Lie::NeverWaits), false, context))),

    row("scale", SkipsLock, NO_LOCK),
    row("scale", LosesWake, Hangs(|context| scale(lost(A_FEW), context))),
    row("scale", DoesLess, Fails(NONE_SLEPT, |context| scale(lie(Lie::NeverWaits), context))),

    row("memory", SkipsLock, NO_LOCK),
    row("memory", LosesWake, Hangs(|_| Ok(memory(SleepsOn::after(2, OURS))))),
    row("memory", DoesLess, Fails("no table to be measured", |_| Ok(memory(Kernel::<true>)))),

    row("uncontended", SkipsLock, Fails(NONE_WAITED, uncontended_mutex::<Open>)),
    row("uncontended", SkipsLock, Fails(NONE_WAITED, |context|
        Ok(workload::uncontended::failing_trylock::<Open>(&crew(1, context)?)))),
    row("uncontended", SkipsLock, Fails(NONE_WAITED, |context|
        Ok(workload::uncontended::reader::<Open>(&crew(1, context)?, Section::Empty)))),
    row("uncontended", SkipsLock, Fails(NONE_WAITED, |context|
        Ok(workload::uncontended::writer::<Open>(&crew(1, context)?, Section::Filler)))),
    row("uncontended", SkipsLock, Fails(NONE_WAITED, |context|
        Ok(workload::uncontended::semaphore::<OpenToAll>(&crew(1, context)?, Section::Empty)))),
    row("uncontended", LosesWake, Hangs(uncontended_mutex::<SleepsOnLock<0>>)),
    row("uncontended", LosesWake, Hangs(|context|
        Ok(workload::uncontended::reader::<SleepsOnLock<0>>(&crew(1, context)?, Section::Empty)))),
    row("uncontended", LosesWake, Hangs(|context|
        Ok(workload::uncontended::semaphore::<SleepsOnSemaphore<0>>(
            &crew(1, context)?, Section::Empty)))),
    row("uncontended", DoesLess, Fails("could not be locked", |context|
        Ok(workload::uncontended::failing_trylock::<NeverHad>(&crew(1, context)?)))),

    row("semaphore", SkipsLock, NO_LOCK),
    row("semaphore", LosesWake, Hangs(|context|
        Ok(workload::semaphore::contender::<SleepsOnSemaphore<8>>(
            &crew(2, context)?, Place::OneCpu, BATCH)))),
    row("semaphore", DoesLess, Fails(NONE_WAITED, |context|
        Ok(workload::semaphore::contender::<OpenToAll>(&crew(2, context)?, Place::OneCpu, BATCH)))),
    row("semaphore", DoesLess,
        By("workload::semaphore::tests::\
            a_semaphore_that_lets_every_thread_through_is_detected_by_the_turns")),

    row("queue", SkipsLock, Fails(NONE_WAITED, queue::<OpenCondvar>)),
    row("queue", LosesWake, Hangs(queue::<SleepsOnCondvar>)),
    row("queue", DoesLess, Fails(SPURIOUS, queue::<NeverWaits>)),
    row("queue", DoesLess, By("workload::queue::tests::an_item_out_of_turn_is_detected")),

    row("barrier", SkipsLock, NO_LOCK),
    row("barrier", LosesWake, Hangs(|context|
        Ok(workload::barrier::contender::<SleepsOnBarrier>(&crew(2, context)?, BATCH)))),
    row("barrier", DoesLess, Fails(NONE_WAITED, |context|
        Ok(workload::barrier::contender::<OpenToAll>(&crew(2, context)?, BATCH)))),
    row("barrier", DoesLess, By("workload::barrier::tests::a_barrier_that_is_none_is_detected")),

    row("event", SkipsLock, NO_LOCK),
    row("event", LosesWake, Hangs(|context|
        Ok(workload::event::contender::<SleepsOnEvent>(&crew(4, context)?, 2)))),
    row("event", DoesLess, Fails(NONE_SLEPT, |context|
        Ok(workload::event::contender::<OpenToAll>(&crew(4, context)?, 2)))),

    row("lockhammer", SkipsLock, Fails(NONE_WAITED, lockhammer::<Open>)),
    row("lockhammer", SkipsLock, By("workload::mutex::tests::a_lock_that_is_none_is_detected")),
    row("lockhammer", LosesWake, Hangs(lockhammer::<SleepsOnLock<1>>)),
    row("lockhammer", DoesLess, COUNTED),

    row("rates", SkipsLock, Fails(NONE_WAITED, rates::<Open>)),
    row("rates", SkipsLock, By("workload::mutex::tests::a_lock_that_is_none_is_detected")),
    row("rates", LosesWake, Hangs(rates::<SleepsOnLock<1>>)),
    row("rates", DoesLess, COUNTED),

    row("mutex", SkipsLock, Fails(NONE_WAITED, mutex::<Open>)),
    row("mutex", SkipsLock, By("workload::mutex::tests::a_lock_that_is_none_is_detected")),
    row("mutex", LosesWake, Hangs(mutex::<SleepsOnLock<1>>)),
    row("mutex", DoesLess, COUNTED),

    row("shifting", SkipsLock, Fails(NONE_WAITED, shifting::<Open>)),
    row("shifting", SkipsLock, By("workload::shifting::tests::a_lock_that_is_none_is_detected")),
    row("shifting", LosesWake, Hangs(shifting::<SleepsOnLock<1>>)),
    row("shifting", DoesLess, COUNTED),

    row("rwlock", SkipsLock, Fails(NONE_WAITED, rwlock::<Open>)),
    row("rwlock", SkipsLock, Fails(NONE_WAITED, rwlock_classes::<Open>)),
    row("rwlock", SkipsLock, By("workload::rwlock::tests::a_lock_that_is_none_is_detected")),
    row("rwlock", LosesWake, Hangs(rwlock::<SleepsOnLock<3>>)),
    row("rwlock", LosesWake, Hangs(rwlock_classes::<SleepsOnLock<3>>)),
    row("rwlock", DoesLess,
        Fails("a write lock against readers kept no thread", rwlock::<OpenToReaders>)),

    row("signal", SkipsLock, Fails(NONE_WAITED, signal::<OpenCondvar>)),
    row("signal", LosesWake, Hangs(signal::<SleepsOnCondvar>)),
    row("signal", DoesLess, Fails(SPURIOUS, signal::<NeverWaits>)),

    row("cond-perf", SkipsLock, Fails(NONE_WAITED, cond_perf::<OpenCondvar>)),
    row("cond-perf", SkipsLock,
        By("workload::cond_perf::tests::a_mutex_that_is_none_is_detected")),
    row("cond-perf", LosesWake, Hangs(cond_perf::<SleepsOnCondvar>)),
    row("cond-perf", DoesLess, Fails(SPURIOUS, cond_perf::<NeverWaits>)),

    row("pp", SkipsLock, Fails(NONE_WAITED, pp::<OpenCondvar>)),
    row("pp", LosesWake, Hangs(pp::<SleepsOnCondvar>)),
    row("pp", DoesLess, Fails(SPURIOUS, pp::<NeverWaits>)),

    row("programs", SkipsLock, By("workload::programs::tests::another_output_is_an_error")),
    row("programs", LosesWake, By("programs::child::tests::a_hang_is_reported_thread_by_thread")),
    row("programs", DoesLess, By("workload::programs::tests::another_output_is_an_error")),

    row("recording", SkipsLock, By("workload::programs::tests::another_output_is_an_error")),
    row("recording", LosesWake, By("programs::child::tests::a_hang_is_reported_thread_by_thread")),
    row("recording", DoesLess,
        By("workload::recording::child::tests::a_wait_that_leaves_no_record_is_an_error")),
];

fn crew(size: usize, context: &Context) -> Result<Rc<Crew>, Failure> {
    Ok(Rc::new(Crew::new(size, context)?))
}

fn lie(lie: Lie) -> Liar<true> {
    Liar(lie)
}

fn lost(after: u32) -> SleepsOn<Kernel<true>> {
    SleepsOn::after(after, Kernel)
}

type Built = Result<Contender, Failure>;

fn calls<F: Futexes>(futex: F, call: Call, context: &Context) -> Built {
    let crew = crew(1, context)?;
    Ok(workload::calls::contender(futex, &crew, call, 2, true))
}

fn wake_parallel<F: Futexes>(futex: F, context: &Context) -> Built {
    let (sleepers, wakers) = (crew(4, context)?, crew(2, context)?);
    Ok(workload::wake_parallel::contender(futex, &sleepers, &wakers))
}

fn requeue<F: Futexes>(futex: F, context: &Context) -> Built {
    Ok(workload::requeue::contender(futex, &crew(4, context)?, 1))
}

fn ping_pong<F: Futexes>(futex: F, private: bool, context: &Context) -> Built {
    let (crew, place) = (crew(2, context)?, Placement::OneCpu);
    Ok(workload::ping_pong::contender(futex, "", &crew, place, Spin::Off, private))
}

fn scale<F: Futexes>(futex: F, context: &Context) -> Built {
    let (players, single) = (crew(2, context)?, crew(1, context)?);
    let crews = workload::scale::Crews::new(4, &players, &single, context)?;
    Ok(workload::scale::contender(futex, &crews, 0))
}

fn memory<F: Futexes>(futex: F) -> Contender {
    Contender::named("bytes", move |context| {
        let bytes = workload::memory::bytes_after_waiting(futex, 4, context)?;
        Ok(Measured { values: vec![bytes as f64], operations: 0, usage: Usage::default() })
    })
}

fn uncontended_mutex<M: BenchMutex>(context: &Context) -> Built {
    let prover = crew(1, context)?;
    Ok(workload::uncontended::mutex::<M>(&prover, Section::Empty))
}

fn queue<C: BenchCondvar>(context: &Context) -> Built {
    let (crew, place) = (crew(2, context)?, Place::OneCpu);
    Ok(workload::queue::contender::<C>(&crew, place, 0.0, BATCH))
}

fn lockhammer<M: BenchMutex>(context: &Context) -> Built {
    let load = Load { hold: 200.0, gap: 0.0 };
    let crew = crew(2, context)?;
    Ok(workload::lockhammer::contender::<M>(&crew, load, TIME))
}

fn rates<M: BenchMutex>(context: &Context) -> Built {
    let crew = crew(2, context)?;
    Ok(workload::rates::contender::<M>(&crew, (10, 0), TIME))
}

fn mutex<M: BenchMutex>(context: &Context) -> Built {
    let work = Work { inside: 5, outside: 1, naps: 0 };
    let crew = crew(2, context)?;
    Ok(workload::mutex::timed::<M>(&crew, work, [TIME; 2]))
}

fn shifting<M: BenchMutex>(context: &Context) -> Built {
    let crew = crew(64, context)?;
    Ok(workload::shifting::contender::<M>(&crew, PHASE))
}

fn rwlock<L: BenchRwLock>(context: &Context) -> Built {
    let crew = crew(4, context)?;
    let load = workload::rwlock::mixed::Load { period: 2, gap: 0.0 };
    Ok(workload::rwlock::mixed::contender::<L>(&crew, load, TIME))
}

fn rwlock_classes<L: BenchRwLock>(context: &Context) -> Built {
    let (readers, writers) = (2, 2);
    let classes = Classes { readers, writers };
    let crew = crew(readers + writers, context)?;
    Ok(workload::rwlock::classes::contender::<L>(&crew, classes, TIME))
}

fn signal<C: BenchCondvar>(context: &Context) -> Built {
    let (crew, place) = (crew(2, context)?, Place::OneCpu);
    let signal = Signal::Held;
    Ok(workload::hand_over::contender::<C>(&crew, place, signal, BATCH))
}

fn cond_perf<C: BenchCondvar>(context: &Context) -> Built {
    let crew = crew(5, context)?;
    Ok(workload::cond_perf::contender::<C>(&crew, 30, true))
}

fn pp<C: BenchCondvar>(context: &Context) -> Built {
    Ok(workload::pp::contender::<C>(&crew(8, context)?, 50))
}
