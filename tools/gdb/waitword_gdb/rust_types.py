"""Printers of the Rust types: the locks, their guards, and what describes a futex call.

gdb prints the library's enumerations and plain structures (options, `Snapshot`, `Kernel`) well by
itself. The debug information names a type by the module that defines it.
"""

import errno
import re

import gdb

from . import memory, printers, words
from .printers import State, StateAndData, scalar

LOCK = r"waitword::lock::"


def posix_mutex(value):
    return words.mutex(scalar(value["word"]), scalar(value["data"]))


def robust(value):
    names = ("word", "depth", "state", "kind")
    return words.robust(*(scalar(value[name]) for name in names))


def condvar(value):
    return words.condvar(*(scalar(value[name]) for name in ("mutex", "sequence", "traits")))


def inner(value):
    """The only field of a wrapper."""
    return value[value.type.strip_typedefs().fields()[0]]


def rwlock(value):
    return words.rwlock(scalar(value["word"]))


def reentrant(value):
    """lock_api's: the owner is an address in its thread's storage."""
    raw = inner(value["mutex"])
    count = scalar(value["lock_count"])
    owner = scalar(value["owner"])
    return words.joined(
        posix_mutex(raw),
        owner and f"{words.plural(count, 'time')} by {thread_of(owner)}",
    )


def thread_of(address):
    """The thread in whose storage an address lies, in words."""
    from .threads import Threads  # noqa: PLC0415 (only this looks at all threads)

    thread = Threads().by_storage(address)
    return f"thread {thread.number} (LWP {thread.lwp})" if thread else "an unknown thread"


# The raw locks: how each is described.
RAW = {
    "mutex::RawPosixMutex": posix_mutex,
    "mutex::api::RawMutex": lambda value: posix_mutex(inner(value)),
    "mutex::fair::RawFairMutex": lambda value: posix_mutex(inner(inner(value))),
    "fallible::raw::RawCheckedMutex": lambda value: posix_mutex(inner(value)),
    "fallible::raw::RawPiMutex": lambda value: posix_mutex(value["posix"]),
    "robust::raw::RawRobustMutex": robust,
    "rwlock::RawRwLock": rwlock,
    "condvar::word::RawCondvar": condvar,
}
# Locks without data.
SMALL = {
    "condvar::api::Condvar": lambda value: condvar(value["raw"]),
    "fallible::condvar::FallibleCondvar": lambda value: condvar(value["raw"]),
    "once::Once": lambda value: words.once(scalar(value["word"])),
    "semaphore::Semaphore": lambda value: words.semaphore(scalar(value["word"])),
    "barrier::Barrier": lambda value: words.barrier(
        scalar(value["state"]), scalar(value["count"])),
    "event::Event": lambda value: words.event(scalar(value["word"])),
    "auto_event::AutoEvent": lambda value: words.auto_event(scalar(value["word"])),
    "latch::Latch": lambda value: words.latch(scalar(value["word"])),
}


def describe_raw(value):
    """The state of a raw lock of any type, in words."""
    name = base(value.type)
    return RAW[name[len(LOCK):]](value)


def base(kind):
    """A type's name without parameters."""
    name = kind.strip_typedefs().name or ""
    return name.split("<")[0]


def short(kind):
    """The last part of that."""
    return base(kind).rsplit("::", 1)[-1]


def data_of(cell):
    """What is in an `UnsafeCell`."""
    return cell["value"]


def mutex(name_of_raw):
    """lock_api's Mutex, by the alias that the library has for it."""
    return {"RawFairMutex": "FairMutex"}.get(name_of_raw, "Mutex")


def lock_api_mutex(value):
    name = mutex(short(value["raw"].type))
    return StateAndData(name, describe_raw(value["raw"]), [("data", data_of(value["data"]))])


def lock_api_rwlock(value):
    return StateAndData("RwLock", rwlock(value["raw"]), [("data", data_of(value["data"]))])


def lock_api_remutex(value):
    data = [("data", data_of(value["data"]))]
    return StateAndData("ReentrantMutex", reentrant(value["raw"]), data)


def fallible_mutex(value):
    name = {"RawPiMutex": "PiMutex"}.get(short(value["raw"].type), "CheckedMutex")
    died = name == "PiMutex" and scalar(value["raw"]["owner_died"])
    text = words.joined(describe_raw(value["raw"]), died and "an owner died")
    return StateAndData(name, text, [("data", data_of(value["value"]))])


def robust_mutex(value):
    return StateAndData("RobustMutex", robust(value["raw"]), [("data", data_of(value["value"]))])


def once_lock(value):
    text = words.once(scalar(value["once"]["word"]))
    return StateAndData("OnceLock", text, [("value", data_of(value["value"]))])


def lazy_lock(value):
    cell = value["cell"]
    text = words.once(scalar(cell["once"]["word"]))
    return StateAndData("LazyLock", text, [("value", data_of(cell["value"]))])


def at(address):
    return memory.named(int(address))


def guard(name, lock, data):
    """A guard: which lock it holds, and the data."""
    return StateAndData(name, "of " + at(lock), [("data", data)])


def guard_of(field, name_of=short):
    """A guard with a reference to its lock in `field`."""
    def printer(value):
        lock = value[field]
        inside = lock.dereference()
        cell = inside["data"] if has(inside, "data") else inside["value"]
        return guard(name_of(value.type), lock, data_of(cell))

    return printer


def arc_guard_of(field):
    def printer(value):
        pointer = value[field]["ptr"]["pointer"]
        lock = pointer.dereference()["data"]
        return guard(short(value.type), lock.address, data_of(lock["data"]))

    return printer


def mapped_guard(value):
    return guard(short(value.type), value["raw"], value["data"].dereference())


def has(value, field):
    return any(one.name == field for one in value.type.strip_typedefs().fields())


def robust_access(value):
    died = scalar(value["owner_died"])
    text = words.joined("holds its mutex", died and "an owner died")
    return StateAndData("RobustAccess", text, [("data", value["value"].dereference()["value"])])


def permit(value):
    count = words.plural(int(value["permits"]), "permit")
    return State("SemaphorePermit", f"{count} of {at(value['semaphore'])}")


def raw_futex(raw):
    size = 8 << int(scalar_of_enum(raw["word"]["size"]))
    scope = str(raw["scope"]).rsplit("::", 1)[-1].lower()
    numa = bool(raw["numa"]) and "with a NUMA node"
    return words.joined(f"{size}-bit {scope} word at {at(raw['word']['address'])}", numa)


def scalar_of_enum(value):
    """The number of an enumeration without data."""
    return int(value.cast(gdb.lookup_type("u8"))) if value.type.sizeof == 1 else int(value)


def futex(value):
    return State("Futex", raw_futex(value["raw"]))


def expecting(value):
    return State("Expecting", f"{raw_futex(value['futex'])}, expected to be {int(value['value'])}")


def mask(value):
    return State("Mask", f"{int(inner(value)):#x}")


def deadline(value):
    clock = str(value["clock"]).rsplit("::", 1)[-1].lower()
    time = f"{int(value['seconds'])}.{int(value['nanoseconds']):09}"
    return State("Deadline", f"{time} s of the {clock} clock")


def wake_op(value):
    raw = value["raw"]
    op, cmp = (str(raw[name]).rsplit("::", 1)[-1] for name in ("op", "cmp"))
    changed = f"{op} {int(raw['operand'])}"
    return State("WakeOp", f"{changed}, second if {cmp} {int(raw['comparand'])}")


def numa_word(value):
    node = scalar(value["node"])
    unknown = (1 << 8 * value["node"].type.sizeof) - 1
    where = "the node of the first caller" if node == unknown else f"node {node}"
    return State("NumaWord", f"{scalar(value['value'])}, on {where}")


def error_number(value):
    """rustix keeps the negative number in 16 bits."""
    number = -scalar(value) & 0xffff
    return State("Errno", f"{errno.errorcode.get(number, 'unknown')}, {number}")


def raw_waitv(value):
    fields = (int(value[name]) for name in ("val", "uaddr", "flags"))
    return State("Waitv", words.waitv(*fields))


MUTEX_GUARD, RWLOCK_GUARD, REMUTEX_GUARD = (
    guard_of("mutex"), guard_of("rwlock"), guard_of("remutex"))
OTHERS = {
    "lock_api::mutex::Mutex": lock_api_mutex,
    "lock_api::mutex::MutexGuard": MUTEX_GUARD,
    "lock_api::mutex::MappedMutexGuard": mapped_guard,
    "lock_api::mutex::ArcMutexGuard": arc_guard_of("mutex"),
    "lock_api::rwlock::RwLock": lock_api_rwlock,
    "lock_api::rwlock::RwLockReadGuard": RWLOCK_GUARD,
    "lock_api::rwlock::RwLockWriteGuard": RWLOCK_GUARD,
    "lock_api::rwlock::RwLockUpgradableReadGuard": RWLOCK_GUARD,
    "lock_api::rwlock::MappedRwLockReadGuard": mapped_guard,
    "lock_api::rwlock::MappedRwLockWriteGuard": mapped_guard,
    "lock_api::rwlock::ArcRwLockReadGuard": arc_guard_of("rwlock"),
    "lock_api::rwlock::ArcRwLockWriteGuard": arc_guard_of("rwlock"),
    "lock_api::rwlock::ArcRwLockUpgradableReadGuard": arc_guard_of("rwlock"),
    "lock_api::remutex::ReentrantMutex": lock_api_remutex,
    "lock_api::remutex::ReentrantMutexGuard": REMUTEX_GUARD,
    "lock_api::remutex::MappedReentrantMutexGuard": mapped_guard,
    "lock_api::remutex::ArcReentrantMutexGuard": arc_guard_of("remutex"),
    LOCK + "fallible::api::FallibleMutex": fallible_mutex,
    LOCK + "fallible::api::FallibleMutexGuard": MUTEX_GUARD,
    LOCK + "robust::api::RobustMutex": robust_mutex,
    LOCK + "robust::api::RobustAccess": robust_access,
    LOCK + "once_lock::OnceLock": once_lock,
    LOCK + "lazy_lock::LazyLock": lazy_lock,
    LOCK + "permit::SemaphorePermit": permit,
    "waitword::futex::handle::Futex": futex,
    "waitword::futex::wait_any::Expecting": expecting,
    "waitword::word::Mask": mask,
    "waitword::word::numa::NumaWord": numa_word,
    "waitword::word::op::WakeOp": wake_op,
    "waitword::sys::errno::Errno": error_number,
    "waitword::sys::clock::Deadline": deadline,
    "waitword::sys::futex_raw::Waitv": raw_waitv,
}
# lock_api's types with a parking_lot inside, or another library's lock, are not ours.
FOREIGN = re.compile(r"^lock_api::\w+::\w+<(?!waitword::)")


def find(name):
    """The printer for a type by its name."""
    if FOREIGN.match(name.replace("'_, ", "")):
        return None
    plain = name.split("<")[0]
    if plain.startswith(LOCK):
        described = {**RAW, **SMALL}.get(plain[len(LOCK):])
        if described:
            return lambda value: State(plain.rsplit("::", 1)[-1], described(value))
    return OTHERS.get(plain)


def register():
    printers.register("waitword-rust", lambda kind: kind.strip_typedefs().name, find)
