"""Printers of the C library's types in a process with the drop-in, which keeps its own state in
them. The files `object.rs` of crates/waitword-pthread/src define the bytes, and which library
serves an object. Objects of the C library are printed as their bytes, as everywhere.
"""

import gdb

from . import memory, printers, words
from .printers import State

ELSEWHERE = "served by the C library"
MADE = 1 << 16
# Robust, priority-protected, process-shared: the C library's.
THEIRS = 16 | 64 | 128
OURS = (int.from_bytes(b"wwRW", "big"), int.from_bytes(b"wwRC", "big"))


def is_loaded():
    """Whether the drop-in is in the process."""
    return any("libwaitword_pthread" in (file.filename or "") for file in gdb.objfiles())


def raw(value, at, size):
    """A number in the object."""
    return memory.unsigned(int(value.address) + at, size)


def mutex(value):
    kind = raw(value, 16, 4)
    if kind == 0xffffffff:
        return "destroyed"
    if kind & MADE == 0 and kind & THEIRS:
        return ELSEWHERE
    word, data, more = (raw(value, at, 4) for at in (0, 4, 20))
    if not kind & MADE and kind in (1, 2):
        return "unlocked, " + ("recursive", "error-checking")[kind - 1]
    return words.joined(words.mutex(word, data), more and f"{more} more times")


def cond(value):
    if raw(value, 28, 4) | raw(value, 36, 4):
        return ELSEWHERE
    return words.condvar(raw(value, 0, 8), raw(value, 8, 4), raw(value, 12, 4))


def rwlock(value):
    whose = raw(value, 8, 4)
    if whose not in OURS and (whose or raw(value, 28, 4)):
        return ELSEWHERE
    return words.rwlock(raw(value, 0, 8))


def sem(value):
    return ELSEWHERE if raw(value, 8, 4) else words.semaphore(raw(value, 0, 8))


def barrier(value):
    if raw(value, 12, 4):
        return ELSEWHERE
    return words.barrier(raw(value, 16, 8), raw(value, 24, 4))


def once(value):
    return words.once(raw(value, 0, 4))


PRINTERS = {
    "pthread_mutex_t": mutex,
    "pthread_cond_t": cond,
    "pthread_rwlock_t": rwlock,
    "sem_t": sem,
    "pthread_barrier_t": barrier,
    "pthread_once_t": once,
    "mtx_t": mutex,
    "cnd_t": cond,
    "once_flag": once,
}


def find(name):
    describe = PRINTERS.get(name)
    if describe is None or not is_loaded():
        return None

    def printer(value):
        if value.address is None:
            return None
        try:
            return State(name, describe(value))
        except memory.Unreadable:
            return None

    return printer


def register():
    printers.register("waitword-pthread", lambda kind: kind.name, find)
