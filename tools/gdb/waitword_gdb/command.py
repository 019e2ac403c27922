"""The command `info waitword`."""

import contextlib
import time

import gdb

from . import description, holders, memory
from .kernel import waits_of
from .table import Table
from .threads import Threads, kind_by_stack
from .words import plural

# A mutex's waiter knows when it began to wait, in microseconds modulo 2^33 (some two hours).
WRAPS = 1 << 33
# The kernel's futexes.
WORD = "32-bit word"
INHERITING = "priority-inheriting word"


class InfoWaitword(gdb.Command):
    """Show the threads that wait for waitword's locks and futexes, and who holds what.

For each copy of the library in the process: the size of its waiter table, and each thread that
waits in it: for what, at which address, and for how long if that is known (of a mutex or a
condvar, in a process on this machine). Then the threads that wait in the kernel's futex, the state
of each object that is waited for, and the locks whose holder is known: a plain mutex does not keep
its owner.

Only reads memory, so it works on core dumps too."""

    def __init__(self):
        super().__init__("info waitword", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError("info waitword: takes no argument")
        try:
            for line in Report().lines():
                print(line)
        except (description.NotUsable, memory.Unreadable) as error:
            raise gdb.GdbError(f"waitword: {error}") from None


class Report:
    """What is found, and the lines that say it."""

    def __init__(self):
        self.libraries = description.libraries()
        self.threads = Threads()
        self.now = now()
        self.robust = {
            address: thread
            for thread in self.threads.all
            for address in holders.robust_mutexes(thread)
        }
        # What threads wait for, in the order in which it was found: how many threads, by kind,
        # address, and whether the drop-in serves it.
        self.objects = {}
        self.tables = []

    def lines(self):
        for library in self.libraries:
            yield from self.table(library)
        in_kernel = list(self.in_kernel())
        if in_kernel:
            yield ""
            yield "waits in the kernel"
            yield from in_kernel
        if self.objects:
            yield ""
            yield "what they wait for"
            for (kind, address, is_drop_in), count in self.objects.items():
                yield f"  {self.state(kind, address, is_drop_in, count)}"
        held = list(self.held())
        if held:
            yield ""
            yield "holders"
            yield from held

    def table(self, library):
        yield str(library)
        if "waiter table" not in library.subjects:
            yield "  does not describe its waiter table"
            return
        table = Table(library)
        self.tables.append(table)
        if not table.buckets:
            yield "  no thread has waited yet: there is no waiter table"
            return
        waiters = len(table.waiters)
        parts = [
            f"{plural(table.buckets, 'bucket')}, {table.in_use} in use",
            plural(waiters, "waiter"),
            f"{table.parkers.in_use()} of {plural(table.parkers.total(), 'parker')} in use",
        ]
        if table.nodes > 1:
            parts.insert(1, f"on {table.nodes} NUMA nodes")
        if table.counted > waiters:
            parts.append(f"{table.counted - waiters} more counted: threads that come or leave")
        yield "  waiter table: " + ", ".join(parts)
        if table.locked:
            yield f"  {plural(table.locked, 'bucket')} locked: waiters may be missing"
        for problem in table.broken:
            yield f"  broken: {problem}"
        found = [(self.threads.by_pointer(waiter.thread), waiter) for waiter in table.waiters]
        found.sort(key=lambda one: (one[0].number if one[0] else 0, one[1].address))
        for thread, waiter in found:
            yield "  " + self.waiter(library, thread, waiter)

    def waiter(self, library, thread, waiter):
        kind, address = waiter.kind, waiter.address
        through = ""
        if kind == "tokens":
            # The table does not tell them apart. The function that waits does.
            kind = thread and kind_by_stack(thread.functions())
            kind = kind or ("semaphore" if library.is_drop_in else "semaphore or auto event")
        if kind == "rwlock":
            lock = holders.lock_of_slot(library, address)
            if lock is not None:
                through, address = f", which a reader holds through slot {address:#x}", lock
        key = kind, address, library.is_drop_in
        self.objects[key] = self.objects.get(key, 0) + 1
        name = str(thread) if thread else f"A thread that gdb does not know ({waiter.thread:#x})"
        text = f"{name} waits for {kind} {memory.named(address)}{through}"
        if waiter.wish():
            text += f" {waiter.wish()}"
        if waiter.mutex and kind == "condvar":
            text += f", with mutex {memory.named(waiter.mutex)}"
        if waiter.began() is not None and self.now is not None:
            text += f", for {(self.now - waiter.began()) % WRAPS / 1e6:.3f} s"
        return text

    def in_kernel(self):
        parkers = [table.parkers for table in self.tables]
        for thread in self.threads.all:
            try:
                waits = waits_of(thread)
            except memory.Unreadable:
                continue
            waits = [wait for wait in waits if not any(p.contain(wait.address) for p in parkers)]
            if not waits:
                continue
            kind = kind_by_stack(thread.functions())
            for wait in waits:
                yield "  " + self.kernel_wait(thread, wait, kind)

    def kernel_wait(self, thread, wait, kind):
        address = wait.address
        if address in self.robust:
            kind = "robust mutex"
        elif any(address in table.memory for table in self.tables):
            return f"{thread} waits for the lock of a bucket of the waiter table"
        elif kind in (None, "word"):
            kind = INHERITING if wait.is_pi else WORD
        if kind == "end of a thread":
            with contextlib.suppress(memory.Unreadable):
                ending = self.threads.by_lwp(memory.unsigned(address, 4))
                return f"{thread} waits for the end of {ending or 'a thread'}"
        if kind == "mutex" and wait.is_pi:
            # The kernel's word is the second of a mutex.
            address -= 4
        if kind == "condvar":
            # It sleeps on the word `sequence` inside.
            address -= 8
        key = kind, address, False
        self.objects[key] = self.objects.get(key, 0) + 1
        return f"{thread} waits for {kind} {memory.named(address)} ({wait.call})"

    def state(self, kind, address, is_drop_in, count):
        name = f"{kind} {memory.named(address)}"
        waiting = f"{plural(count, 'thread')} waiting"
        try:
            state, _ = holders.state(kind, address, is_drop_in)
        except memory.Unreadable:
            return f"{name}: {waiting}; its memory is not readable"
        return f"{name}: {state}; {waiting}" if state else f"{name}: {waiting}"

    def held(self):
        for address, thread in self.robust.items():
            yield f"  {thread} holds robust mutex {memory.named(address)}"
        for kind, address, is_drop_in in self.objects:
            if address in self.robust:
                continue
            with contextlib.suppress(memory.Unreadable):
                _, holder = holders.state(kind, address, is_drop_in)
                if holder is not None:
                    yield f"  {self.holder(holder)} holds {kind} {memory.named(address)}"
        for library in self.libraries:
            for address, readers in holders.slots(library).items():
                held_by = f"{plural(readers, 'reader')} through slots"
                yield f"  rwlock {memory.named(address)} is held by {held_by}"

    def holder(self, holder):
        if callable(holder):
            return str(holder(self.threads) or "A thread that has ended")
        return str(self.threads.by_lwp(holder) or f"LWP {holder}, not a thread of this process,")


def now():
    """CLOCK_MONOTONIC of a process on this machine, in microseconds; None for a core dump."""
    connection = gdb.selected_inferior().connection
    if connection is None or connection.type != "native":
        return None
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
