"""Waits in the kernel: futex(2) and futex2, by the registers of the threads that are in them.

Process-shared words, robust and priority-inheriting mutexes wait there, and so do threads that do
not use waitword.
"""

from . import memory

FUTEX, FUTEX_WAITV, FUTEX_WAIT = 202, 449, 455
PRIVATE = 128
# The commands of futex(2) that wait.
WAITS = {0: "FUTEX_WAIT", 6: "FUTEX_LOCK_PI", 9: "FUTEX_WAIT_BITSET", 11: "FUTEX_WAIT_REQUEUE_PI",
         13: "FUTEX_LOCK_PI2"}
LOCKS = (6, 13)
MOST_WORDS = 128


class KernelWait:
    """A thread that waits for a word in the kernel."""

    def __init__(self, thread, address, call, is_pi=False):
        self.thread = thread
        self.address = address
        self.call = call
        self.is_pi = is_pi


def waits_of(thread):
    """The words that a thread waits for in the kernel."""
    if thread.call is None:
        return []
    number, (first, second, *_) = thread.call
    if number == FUTEX:
        command = second & PRIVATE - 1
        if command not in WAITS:
            return []
        return [KernelWait(thread, first, WAITS[command], command in LOCKS)]
    if number == FUTEX_WAIT:
        return [KernelWait(thread, first, "futex_wait")]
    if number == FUTEX_WAITV:
        data = memory.read(first, 24 * min(second, MOST_WORDS))
        addresses = (memory.number(data[at + 8:at + 16]) for at in range(0, len(data), 24))
        return [KernelWait(thread, address, "futex_waitv") for address in addresses]
    return []
