//! A reader/writer lock: read, write; the end of a write with sleeping readers, and of a read with
//! a sleeping writer.

use super::rows::{Lock, Row};
use crate::costs::scene::{Apart, asleep, on_stage, put};
use crate::locks::BenchRwLock;

/// The operations of a reader/writer lock.
pub(super) fn rwlock<L: BenchRwLock>() -> Lock {
    let rows: [Row; 5] = [
        ("read, unlock", read::<L>, new_rwlock::<L>),
        ("write, unlock", write::<L>, new_rwlock::<L>),
        ("unlock, 1 reader sleeps", end_write::<L>, written::<L, 1>),
        ("unlock, 8 readers sleep", end_write::<L>, written::<L, 8>),
        ("unlock, 1 writer sleeps", end_read::<L>, || {
            new_rwlock::<L>();
            rw::<L>().read_lock();
            asleep(1, write::<L>);
        }),
    ];
    Lock { name: L::NAME.to_owned(), rows: rows.into() }
}

/// Puts a new one on the stage and uses it once.
fn new_rwlock<L: BenchRwLock>() {
    put(Apart(L::new()));
    read::<L>();
    write::<L>();
}

#[inline(always)]
fn rw<L: BenchRwLock>() -> &'static L {
    // SAFETY: every row of a rwlock puts one there first.
    unsafe { on_stage::<Apart<L>>() }
}

#[inline(always)]
fn read<L: BenchRwLock>() {
    rw::<L>().read_lock();
    end_read::<L>();
}

#[inline(always)]
fn end_read<L: BenchRwLock>() {
    // SAFETY: every caller holds a read lock, and no other lock.
    unsafe { rw::<L>().read_unlock() };
}

#[inline(always)]
fn write<L: BenchRwLock>() {
    rw::<L>().write_lock();
    end_write::<L>();
}

#[inline(always)]
fn end_write<L: BenchRwLock>() {
    // SAFETY: every caller holds the write lock.
    unsafe { rw::<L>().write_unlock() };
}

fn written<L: BenchRwLock, const READERS: usize>() {
    new_rwlock::<L>();
    rw::<L>().write_lock();
    asleep(READERS, read::<L>);
}
