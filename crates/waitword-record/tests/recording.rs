//! Records waits, and reads the files back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;
use waitword_record::format::{
    Block, CELLS, Cell, Ended, HELD_TO_READ, Hold, MAGIC, Object, PAGE, RING_BYTES, Ring, Turns,
    Wait, cells_of_stack, stack_frames, stack_head,
};
use waitword_record::{
    Take, What, begin, end, end_at_condvar, finish, note_release, release, start, take,
};

const PROCESS: u32 = 7;

/// Everything in a recording.
#[derive(Default)]
struct Found {
    waits: Vec<(u32, Wait)>,
    holds: Vec<(u32, Hold)>,
    stacks: BTreeMap<u32, Vec<u64>>,
    lost: u64,
}

impl Found {
    fn add(&mut self, thread: u32, cells: &[Cell]) {
        let mut at = 0;
        while at < cells.len() {
            if let Some((number, frames)) = stack_head(cells[at]) {
                let len = cells_of_stack(frames);
                let frames = stack_frames(&cells[at..at + len]).collect();
                assert!(self.stacks.insert(number, frames).is_none(), "a stack is written once");
                at += len;
            } else if let Some(hold) = Hold::of_cell(cells[at]) {
                self.holds.push((thread, hold));
                at += 1;
            } else if Turns::of_cell(cells[at]).is_some() {
                // Of a thread that has ended.
                at += 1;
            } else {
                let wait = Wait::of_cell(cells[at]).expect("a wait, a stack or turns");
                self.waits.push((thread, wait));
                at += 1;
            }
        }
    }
}

fn cells(bytes: &[u8]) -> Vec<Cell> {
    bytes
        .chunks_exact(64)
        .map(|line| {
            Cell(core::array::from_fn(|n| {
                u64::from_ne_bytes(line[8 * n..8 * (n + 1)].try_into().unwrap())
            }))
        })
        .collect()
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

fn read(directory: &Path) -> Found {
    let mut found = Found::default();
    for path in files(directory, "records") {
        let all = cells(&fs::read(path).unwrap());
        let mut at = 0;
        while at < all.len() {
            let head = all[at].0;
            assert_eq!(head[0].to_ne_bytes(), MAGIC);
            let (thread, count) = (head[1] as u32, (head[1] >> 32) as usize);
            found.add(thread, &all[at + 1..at + 1 + count]);
            at += 1 + count;
        }
    }
    for path in files(directory, "rings") {
        let bytes = fs::read(path).unwrap();
        assert_eq!(bytes[..8], MAGIC);
        found.lost += number(&bytes, 40) + number(&bytes, 48);
        for ring in bytes[PAGE..].chunks_exact(RING_BYTES) {
            let thread = number(ring, 0) as u32;
            let (written, flushed) = (number(ring, 8), number(ring, 16));
            let all = cells(&ring[size_of::<Ring>()..]);
            let left: Vec<Cell> =
                (flushed..written).map(|n| all[(n % CELLS as u64) as usize]).collect();
            found.add(thread, &left);
        }
    }
    found
}

const ALONE: Take = Take { to_read: false, is_contended: false };
const CONTENDED: Take = Take { is_contended: true, ..ALONE };

#[inline(never)]
fn a_wait_of(time: Duration, address: u64) {
    let began = begin(PROCESS, Object::Mutex, address, false).unwrap();
    std::thread::sleep(time);
    if address as u32 == 0 {
        // As if this thread itself had kept it.
        note_release(PROCESS, address, false);
    }
    let (object, ended) = (Object::Mutex, Ended::Got);
    end(PROCESS, began, &What { object, address, ended });
}

/// A thread waits for a lock; another one has it for a moment, sleeps without it, and has it for a
/// moment again. Returns how long it slept.
fn a_lock_that_is_free_for_a_while(address: u64) -> Duration {
    const FREE: Duration = Duration::from_millis(500);
    let has_begun = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = begin(PROCESS, Object::Mutex, address, false).unwrap();
            has_begun.wait();
            std::thread::sleep(FREE + Duration::from_millis(100));
            let what = What { object: Object::Mutex, address, ended: Ended::Got };
            end(PROCESS, began, &what);
        });
        has_begun.wait();
        for time in [FREE, Duration::ZERO] {
            take(PROCESS, address, CONTENDED);
            note_release(PROCESS, address, false);
            release(PROCESS, address);
            std::thread::sleep(time);
        }
    });
    FREE
}

/// One test, because a process has one recording.
#[test]
fn every_wait_that_is_long_enough_is_found_again() {
    assert_eq!(size_of::<Block>(), 64);
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().as_os_str().as_encoded_bytes();
    assert!(begin(PROCESS, Object::Mutex, 1, false).is_none(), "not yet");
    assert!(start(PROCESS, b"relative", 1).is_err());
    assert!(start(PROCESS, b"/no/such/directory", 1).is_err());
    assert!(begin(PROCESS, Object::Mutex, 1, false).is_none());
    start(PROCESS, directory, 50_000).unwrap();
    const THREADS: u64 = 4;
    const WAITS: u64 = 700;
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            std::thread::spawn(move || {
                for wait in 0..WAITS {
                    a_wait_of(Duration::from_micros(100), thread << 32 | wait);
                }
                // SAFETY: it cannot fail.
                unsafe { libc::gettid() as u32 }
            })
        })
        .collect();
    let threads: Vec<u32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    // Shorter than the threshold.
    let (object, ended) = (Object::Read, Ended::TimedOut);
    end(
        PROCESS,
        begin(PROCESS, Object::Read, 9, false).unwrap(),
        &What { object, address: 9, ended },
    );
    const FREE_LOCK: u64 = 0xf4ee << 32;
    let free = a_lock_that_is_free_for_a_while(FREE_LOCK);
    finish(PROCESS);

    let mut found = read(place.path());
    // Nobody kept it while it was free.
    let long = |hold: &Hold| hold.address == FREE_LOCK && hold.took >= free.as_nanos() as u64 / 2;
    assert!(!found.holds.iter().any(|(_, hold)| long(hold)), "{:?}", found.holds);
    assert_eq!(found.waits.iter().filter(|(_, wait)| wait.address == FREE_LOCK).count(), 1);
    found.waits.retain(|(_, wait)| wait.address != FREE_LOCK);
    found.holds.retain(|(_, hold)| hold.address != FREE_LOCK);
    assert_eq!(found.lost, 0);
    assert_eq!(found.waits.len() as u64, THREADS * WAITS);
    let mut addresses: Vec<u64> = found.waits.iter().map(|(_, wait)| wait.address).collect();
    addresses.sort_unstable();
    let expected: Vec<u64> =
        (0..THREADS).flat_map(|thread| (0..WAITS).map(move |wait| thread << 32 | wait)).collect();
    assert_eq!(addresses, expected);
    for (thread, wait) in &found.waits {
        assert_eq!(*thread, threads[(wait.address >> 32) as usize]);
        assert!(wait.took >= 100_000 && wait.weight_shift == 0, "{wait:?}");
        assert_eq!(wait.object(), Some(Object::Mutex));
        // The release that was noted of the first address.
        let is_first = wait.address as u32 == 0;
        assert_eq!(wait.holder, if is_first { *thread } else { 0 });
        assert_eq!(found.stacks.contains_key(&wait.holder_stack), is_first);
        // It slept meanwhile. All 0: the kernel allows no ring here, or it was not there yet.
        let known = wait.running + wait.preempted + wait.asleep;
        assert!(known == 0 || wait.asleep > 500, "{wait:?}");
        let stack = &found.stacks[&wait.stack];
        // The function that waited is among the frames.
        let function = a_wait_of as fn(Duration, u64) as usize as u64;
        assert!(
            stack.iter().any(|frame| (function..function + 1000).contains(frame)),
            "{stack:x?}"
        );
    }
    // Each thread has kept its first lock while it waited for it.
    assert_eq!(found.holds.len() as u64, THREADS);
    for (thread, hold) in &found.holds {
        assert_eq!(
            hold.address,
            (threads.iter().position(|it| it == thread).unwrap() as u64) << 32
        );
        assert!(hold.took >= 100_000 && found.stacks.contains_key(&hold.stack), "{hold:?}");
    }
    // All waits of a thread have the same stack, and threads differ at most in their ends.
    assert!(found.stacks.len() <= 3 * THREADS as usize, "{}", found.stacks.len());
    let maps = fs::read_to_string(&files(place.path(), "maps")[0]).unwrap();
    assert!(maps.starts_with("# at ") && maps.contains("r-xp"), "{maps}");

    what_a_thread_waits_for_and_holds_is_in_its_ring(place.path());
    a_wait_for_the_mutex_after_a_signal_is_one_for_a_lock(place.path());
    a_wait_is_charged_to_the_end_of_its_chain(place.path());
    a_forked_child_has_its_own(place.path());
    another_recording_has_files_of_its_own(place.path());
}

fn me() -> u32 {
    // SAFETY: it cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// The ring of the calling thread, as the file has it.
fn my_ring(directory: &Path) -> Vec<u8> {
    let bytes = fs::read(&files(directory, "rings")[0]).unwrap();
    let mut rings = bytes[PAGE..].chunks_exact(RING_BYTES);
    rings.find(|ring| number(ring, 0) as u32 == me()).unwrap().to_vec()
}

fn what_a_thread_waits_for_and_holds_is_in_its_ring(directory: &Path) {
    use core::mem::offset_of;
    let deadline = core::cell::Cell::new(0_u32);
    let present = || {
        let ring = my_ring(directory);
        assert_eq!(number(&ring, offset_of!(Ring, has_deadline)) as u32, deadline.get());
        let held = number(&ring, offset_of!(Ring, held_count)) as u32 as usize;
        let locks = (0..held).map(|n| number(&ring, offset_of!(Ring, held) + 8 * n));
        (number(&ring, offset_of!(Ring, waiting)), locks.collect::<Vec<u64>>())
    };
    take(PROCESS, 0x100, ALONE);
    take(PROCESS, 0x200, Take { to_read: true, ..ALONE });
    let began = begin(PROCESS, Object::Write, 0x300, true).unwrap();
    deadline.set(1);
    assert_eq!(present(), (0x300, vec![0x100, 0x200 | HELD_TO_READ]));
    end(PROCESS, began, &What { object: Object::Write, address: 0x300, ended: Ended::Got });
    assert!(release(PROCESS, 0x100) && !release(PROCESS, 0x300));
    assert_eq!(present(), (0, vec![0x200 | HELD_TO_READ]));
    assert!(release(PROCESS, 0x200));
}

/// The waits for objects at these addresses.
fn waits_for(directory: &Path, addresses: &[u64]) -> Vec<Wait> {
    let all = read(directory).waits.into_iter().map(|(_, wait)| wait);
    let mut all: Vec<Wait> = all.filter(|wait| addresses.contains(&wait.address)).collect();
    all.sort_by_key(|wait| wait.began);
    all
}

fn a_wait_for_the_mutex_after_a_signal_is_one_for_a_lock(directory: &Path) {
    const LONG: Duration = Duration::from_millis(2);
    let wait = |condvar, mutex, released| {
        let began = begin(PROCESS, Object::Condvar, condvar, false).unwrap();
        std::thread::sleep(LONG);
        // As if another thread signalled.
        note_release(PROCESS, condvar, false);
        std::thread::sleep(LONG);
        if released {
            note_release(PROCESS, mutex, false);
        }
        let (object, ended) = (Object::Condvar, Ended::Got);
        end_at_condvar(PROCESS, began, &What { object, address: condvar, ended }, mutex);
    };
    wait(0xc00, 0xd00, true);
    let found = waits_for(directory, &[0xc00, 0xd00]);
    let objects: Vec<_> = found.iter().map(|wait| wait.object().unwrap()).collect();
    assert_eq!(objects, [Object::Condvar, Object::Mutex]);
    assert_eq!(found[0].began + found[0].took, found[1].began);
    assert!(found.iter().all(|wait| u128::from(wait.took) >= LONG.as_nanos()));
    assert_eq!((found[0].holder, found[0].waker, found[1].holder), (0, me(), me()));
    // No thread had the mutex: it took that long to wake up.
    wait(0xe00, 0xf00, false);
    let found = waits_for(directory, &[0xe00, 0xf00]);
    assert_eq!(found.len(), 1);
    assert!(u128::from(found[0].took) >= 2 * LONG.as_nanos());
}

fn a_wait_is_charged_to_the_end_of_its_chain(directory: &Path) {
    let (first, second) = (0x1100, 0x1200);
    let (waits, go) = (Barrier::new(2), Barrier::new(2));
    let last = std::thread::scope(|threads| {
        threads.spawn(|| {
            let began = begin(PROCESS, Object::Mutex, first, false).unwrap();
            waits.wait();
            go.wait();
            let (object, ended) = (Object::Mutex, Ended::Got);
            end(PROCESS, began, &What { object, address: first, ended });
            finish(PROCESS);
        });
        waits.wait();
        // The holder of the first waits for the second, which a third thread releases.
        let began = begin(PROCESS, Object::Mutex, second, false).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let last = threads.spawn(|| {
            note_release(PROCESS, second, false);
            finish(PROCESS);
            me()
        });
        let last = last.join().unwrap();
        let (object, ended) = (Object::Mutex, Ended::Got);
        end(PROCESS, began, &What { object, address: second, ended });
        note_release(PROCESS, first, true);
        go.wait();
        last
    });
    let found = waits_for(directory, &[first]);
    assert_eq!(found.len(), 1);
    let Wait { holder, waker, next, ended, holder_stack, .. } = found[0];
    assert_eq!((holder, next, waker), (last, second, me()));
    assert_eq!(ended, Ended::HandedOver as u8);
    assert_ne!(holder_stack, 0);
}

fn another_recording_has_files_of_its_own(directory: &Path) {
    let before = waits_for(directory, &[0x2100]).len();
    let place = tempfile::tempdir().unwrap();
    start(PROCESS, place.path().as_os_str().as_encoded_bytes(), 50_000).unwrap();
    let began = begin(PROCESS, Object::Mutex, 0x2100, false).unwrap();
    std::thread::sleep(Duration::from_millis(1));
    end(PROCESS, began, &What { object: Object::Mutex, address: 0x2100, ended: Ended::Got });
    assert_eq!(waits_for(directory, &[0x2100]).len(), before);
    let found = read(place.path());
    assert_eq!(found.waits.len(), 1);
    assert!(found.stacks.contains_key(&found.waits[0].1.stack), "the stack is written anew");
}

fn a_forked_child_has_its_own(directory: &Path) {
    // SAFETY: the child only waits, records and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let began = begin(8, Object::Futex, 77, false).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let (object, ended) = (Object::Futex, Ended::Got);
        end(8, began, &What { object, address: 77, ended });
        // Killed: what it has written is in its ring.
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let mut status = 0;
    // SAFETY: a child of this process.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(files(directory, "rings").len(), 2);
    let theirs = files(directory, "rings")
        .into_iter()
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&format!("{child}.")));
    let bytes = fs::read(theirs.unwrap()).unwrap();
    let cells = cells(&bytes[PAGE + size_of::<Ring>()..]);
    let wait = cells.iter().find_map(|cell| Wait::of_cell(*cell)).unwrap();
    assert_eq!((wait.address, wait.object()), (77, Some(Object::Futex)));
    assert!(wait.stack != 0 && wait.took >= 1_000_000);
}
