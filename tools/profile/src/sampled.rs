//! What can be seen of the waits of a program that does not record: looks at a low rate.
//!
//! Each look counts for the time since the one before. So times are estimates, waits cannot be
//! counted, and short ones are seen by chance only. The looks take a small part of a CPU, however
//! many threads there are: they become rarer if they take long.

use crate::remote::{Call, Remote};
use crate::symbols::Symbols;
use crate::text::{place_of, time};
use crate::wait_for::{Graph, Holders, Node};
use anyhow::Result;
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use waitword_record::format::Object;

/// The time between two looks, if they are short.
const BETWEEN: Duration = Duration::from_millis(50);
/// The part of a CPU that the looks may take, as its reciprocal.
const PART: u32 = 20;
/// How many places are shown, as for a recording.
const SHOWN: usize = 10;
const SHOWN_OF_WORK: usize = 3;
/// The longest chain of holders that wait for each other.
const MOST_LINKS: usize = 16;

/// What was seen.
#[derive(Debug, Default)]
pub struct Sampled {
    /// How often the process was looked at.
    pub looks: u64,
    /// How long.
    pub took: Duration,
    sites: HashMap<(Object, Vec<u64>), Site>,
}

/// Waits for one kind of object, at one place. Times are in nanoseconds.
#[derive(Debug, Default)]
struct Site {
    waited: u64,
    threads: HashSet<u32>,
    /// What the holders did meanwhile.
    running: u64,
    runnable: u64,
    asleep: HashMap<&'static str, u64>,
    /// Where the holders were.
    holders: HashMap<Vec<u64>, u64>,
}

/// Looks at a process for so long, or until it ends, or `stop` is set.
///
/// # Errors
/// It had ended before.
pub fn sample(
    remote: &Remote,
    symbols: &mut Symbols<'_>,
    duration: Duration,
    stop: &AtomicBool,
) -> Result<Sampled> {
    let mut sampled = Sampled::default();
    let mut times = Times::default();
    let began = Instant::now();
    let mut graph = Graph::look(remote, None, symbols, &Graph::default())?;
    let (mut last, mut cost) = (began, Duration::ZERO);
    // Relaxed: the flag stands alone.
    while began.elapsed() < duration && !stop.load(Relaxed) {
        let left = duration.saturating_sub(began.elapsed());
        std::thread::sleep(BETWEEN.max(cost * (PART - 1)).min(left));
        let (since, cpu_before) = (last, cpu_time());
        last = Instant::now();
        // An error: the process has ended.
        let Ok(next) = Graph::look(remote, None, symbols, &graph) else {
            break;
        };
        graph = next;
        sampled.add(remote, &graph, last.duration_since(since), &mut times);
        cost = cpu_time().saturating_sub(cpu_before);
    }
    sampled.took = began.elapsed();
    Ok(sampled)
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

/// How a holder spends its time.
enum Doing {
    /// The part of the time during which it has no CPU.
    Runs(f64),
    Sleeps(&'static str),
    Unknown,
}

impl Sampled {
    fn add(&mut self, remote: &Remote, graph: &Graph, since: Duration, times: &mut Times) {
        self.looks += 1;
        times.begin_look();
        let weight = since.as_nanos() as u64;
        for (&thread, node) in &graph.threads {
            let Some(wait) = &node.wait else {
                continue;
            };
            let site = self.sites.entry((wait.object, node.stack.frames.clone())).or_default();
            site.waited += weight;
            site.threads.insert(thread);
            let Some(holder) = last_holder(graph, node) else {
                continue;
            };
            *site.holders.entry(holder.stack.frames.clone()).or_default() += weight;
            match doing(holder, times, || remote.times(&holder.thread)) {
                Doing::Runs(without_cpu) => {
                    let runnable = (weight as f64 * without_cpu) as u64;
                    site.runnable += runnable;
                    site.running += weight - runnable;
                }
                Doing::Sleeps(call) => *site.asleep.entry(call).or_default() += weight,
                Doing::Unknown => {}
            }
        }
    }
}

/// The thread that keeps what this one waits for, or what that one waits for, and so on.
fn last_holder<'a>(graph: &'a Graph, node: &Node) -> Option<&'a Node> {
    let mut found: Option<&Node> = None;
    for _ in 0..MOST_LINKS {
        let wait = found.unwrap_or(node).wait.as_ref().filter(|wait| wait.object.is_lock());
        let holder = wait.and_then(|wait| match &wait.holders {
            Holders::Threads(holders) => graph.threads.get(holders.first()?),
            _ => None,
        });
        match holder {
            Some(holder) => found = Some(holder),
            None => break,
        }
    }
    found
}

/// For how long threads have run, and waited for a CPU: of this look, and of the one before.
#[derive(Debug, Default)]
struct Times {
    now: HashMap<u32, (u64, u64)>,
    before: HashMap<u32, (u64, u64)>,
}

impl Times {
    fn begin_look(&mut self) {
        self.before = core::mem::take(&mut self.now);
    }

    /// The part of the time since the look before during which a thread had no CPU, of the time
    /// that it wanted one. `read` is called once in a look.
    fn without_cpu(&mut self, tid: u32, read: impl FnOnce() -> Option<(u64, u64)>) -> Option<f64> {
        let now = match self.now.get(&tid) {
            Some(now) => *now,
            None => *self.now.entry(tid).or_insert(read()?),
        };
        let before = self.before.get(&tid)?;
        let (ran, delayed) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        (ran + delayed > 0).then(|| delayed as f64 / (ran + delayed) as f64)
    }
}

fn doing(holder: &Node, times: &mut Times, read: impl FnOnce() -> Option<(u64, u64)>) -> Doing {
    match (holder.thread.state, holder.thread.call) {
        // A thread that runs has no stack; one that waits for a CPU looks the same.
        ('R', _) => match times.without_cpu(holder.thread.tid, read) {
            Some(part) => Doing::Runs(part),
            None => Doing::Unknown,
        },
        (_, Call::In { .. }) => Doing::Sleeps(holder.thread.call_name().unwrap_or("a system call")),
        (_, Call::Outside { .. }) => Doing::Sleeps("a page fault"),
        _ => Doing::Unknown,
    }
}

/// The places at which the most time was lost, as of a recording.
pub fn text(pid: u32, sampled: &Sampled, symbols: &mut Symbols<'_>) -> String {
    let mut all: Vec<_> = sampled.sites.iter().collect();
    all.sort_by(|(key, site), (other_key, other)| {
        other.waited.cmp(&site.waited).then_with(|| key.1.cmp(&other_key.1))
    });
    // A raw futex may be a lock of another library.
    let is_work = |object: Object| !object.is_lock() && object != Object::Futex;
    let (idle, locks): (Vec<_>, Vec<_>) = all.into_iter().partition(|((it, _), _)| is_work(*it));
    let total = |sites: &[(_, &Site)]| sites.iter().map(|(_, it)| it.waited).sum::<u64>();
    let (lost, idled) = (total(&locks), total(&idle));
    let mut text = format!(
        "process {pid}, sampled ({} looks in {}): about {} lost waiting for locks, {} waiting for \
         work\n",
        sampled.looks,
        time(sampled.took.as_nanos() as u64),
        time(lost),
        time(idled)
    );
    for ((object, stack), site) in locks.iter().take(SHOWN) {
        let share = 100.0 * site.waited as f64 / lost.max(1) as f64;
        let _ = writeln!(
            text,
            "{share:5.1} % {:>9}  {}: {}",
            time(site.waited),
            who(site, *object),
            place_of(stack, symbols)
        );
        let longest = site.holders.iter().max_by_key(|(stack, waited)| (**waited, *stack));
        if let Some((holder, _)) = longest {
            let place = if holder.is_empty() {
                "a thread that runs".into()
            } else {
                place_of(holder, symbols)
            };
            let _ = writeln!(text, "                   kept by {place}{}", cause(site));
        }
    }
    for ((object, stack), site) in idle.iter().take(SHOWN_OF_WORK) {
        let _ = writeln!(
            text,
            "        {:>9}  {}, for work or an event: {}",
            time(site.waited),
            who(site, *object),
            place_of(stack, symbols)
        );
    }
    text
}

fn who(site: &Site, object: Object) -> String {
    let plural = if site.threads.len() == 1 { "thread waits" } else { "threads wait" };
    format!("{} {plural} for {object:?}", site.threads.len())
}

/// What the holders did, as parts of the wait.
fn cause(site: &Site) -> String {
    let percent = |part: u64| 100.0 * part as f64 / site.waited.max(1) as f64;
    let mut parts: Vec<(u64, String)> =
        site.asleep.iter().map(|(call, part)| (*part, format!("asleep in {call}"))).collect();
    parts.push((site.running, "running".to_owned()));
    parts.push((site.runnable, "runnable without a CPU".to_owned()));
    parts.sort_by_key(|(part, what)| (core::cmp::Reverse(*part), what.clone()));
    parts.retain(|(part, _)| percent(*part) >= 1.0);
    parts.iter().map(|(part, what)| format!(", {:.0} % {what}", percent(*part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_for::tests::graph;

    #[test]
    fn the_last_holder_of_a_chain_is_charged() {
        let mutex = |holder| Some((Object::Mutex, Holders::Threads(vec![holder])));
        let chain = graph(&[(1, mutex(2)), (2, mutex(3)), (3, None), (4, mutex(9))]);
        let of = |thread| last_holder(&chain, &chain.threads[&thread]).map(|it| it.thread.tid);
        assert_eq!([of(1), of(2), of(3), of(4)], [Some(3), Some(3), None, None]);
        // A cycle has no last one, and ends.
        let cycle = graph(&[(1, mutex(2)), (2, mutex(1))]);
        assert!(last_holder(&cycle, &cycle.threads[&1]).is_some());
    }

    #[test]
    fn all_waiters_see_the_same_of_their_holder() {
        let mut times = Times::default();
        times.begin_look();
        assert_eq!(times.without_cpu(7, || Some((100, 50))), None, "nothing to compare with");
        times.begin_look();
        let first = times.without_cpu(7, || Some((110, 80)));
        let second = times.without_cpu(7, || panic!("it has been read"));
        assert_eq!((first, second), (Some(0.75), Some(0.75)));
        // Not of the look before.
        times.begin_look();
        times.begin_look();
        assert_eq!(times.without_cpu(7, || Some((200, 80))), None);
    }

    #[test]
    fn the_costliest_place_comes_first_with_what_the_holder_did() {
        let mut sampled =
            Sampled { looks: 4, took: Duration::from_millis(200), ..Default::default() };
        let mut site = Site { waited: 100_000_000, running: 10_000_000, ..Default::default() };
        site.threads.extend([1, 2]);
        site.asleep.insert("read", 90_000_000);
        site.holders.insert(vec![0x30], 100_000_000);
        sampled.sites.insert((Object::Mutex, vec![0x10]), site);
        let futex = Site { waited: 50_000_000, ..Default::default() };
        sampled.sites.insert((Object::Futex, vec![0x20]), futex);
        let idle = Site { waited: 200_000_000, threads: [3].into(), ..Default::default() };
        sampled.sites.insert((Object::Condvar, vec![0x20]), idle);
        let shown = text(7, &sampled, &mut Symbols::of_maps(&[], None));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "process 7, sampled (4 looks in 200 ms): about 150 ms lost waiting for \
                 locks, 200 ms waiting for work",
                " 66.7 %    100 ms  2 threads wait for Mutex: 0x10 (?)",
                "                   kept by 0x30 (?), 90 % asleep in read, 10 % running",
                " 33.3 %   50.0 ms  0 threads wait for Futex: 0x20 (?)",
                "           200 ms  1 thread waits for Condvar, for work or an event: 0x20 (?)",
            ]
        );
    }
}
