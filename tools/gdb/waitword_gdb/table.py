"""The waiter table of one copy of the library: buckets, and the nodes on the waiters' stacks.

`crates/waitword/src/private` describes the structures. The process stands still, but a thread may
have been stopped in the middle of a change of a bucket, whose lock is then held.
"""

from . import memory

# The most that one read takes from a table.
CHUNK = 1 << 20
AT_MUTEX = 1
# In the mask of a mutex's waiter: when it began to wait, in microseconds (lock/mutex/waiter.rs).
TIME_SHIFT = 31
READERS_SLOT = (1 << 48) - 8


class Waiter:
    """A thread that waits in the table."""

    def __init__(self, kind, address, thread, mutex, mask):
        self.kind = kind
        self.address = address
        # `pthread_self()`; 0 if it is not known.
        self.thread = thread
        # Of a condvar: the mutex that it is used with.
        self.mutex = mutex
        self.mask = mask

    def began(self):
        """When it began to wait, in microseconds of CLOCK_MONOTONIC modulo 2^33, if it says so."""
        return self.mask >> TIME_SHIFT if self.kind in ("mutex", "condvar") else None

    def wish(self):
        """What a waiter of an rwlock wants (lock/rwlock/rank.rs)."""
        wishes = {1: "to read", 2: "to write", 4: "to read upgradably", 8: "to upgrade"}
        return wishes.get(self.mask & 15) if self.kind == "rwlock" else None


class Table:
    """The table as it is now."""

    def __init__(self, library):
        about = library.subjects["waiter table"]
        self.about = about
        self.kinds = about.constants("awaited")
        self.buckets = self.nodes = self.in_use = self.counted = self.locked = 0
        # What cannot be read, in words.
        self.broken = []
        self.waiters = []
        # The buckets' addresses.
        self.memory = range(0)
        self.parkers = Parkers(about)
        current = about["waiter_table.current"].of(about.address)
        if current:
            self.read(current)

    def read(self, current):
        about = self.about
        self.nodes = about["table.nodes"].of(current).bit_count()
        self.buckets = self.nodes << about["table.bits"].of(current)
        size = about["bucket"].size
        first = about["table.buckets"].of(current)
        end = first + self.buckets * size
        self.memory = range(first, end)
        for begin in range(first, end, CHUNK // size * size):
            length = min(CHUNK // size * size, end - begin)
            data = memory.read(begin, length)
            for at in range(0, length, size):
                bucket = data[at:at + size]
                if any(bucket):
                    self.read_bucket(begin + at, bucket)

    def read_bucket(self, address, data):
        about = self.about
        chain = about["bucket.chain"].of(address, data)
        self.locked += about["bucket.lock"].of(address, data) != 0
        counts = about["bucket.waiters"]
        self.counted += sum(
            memory.number(data[counts.offset + lane:counts.offset + lane + 4])
            for lane in range(0, counts.size, 4)
        )
        if not chain:
            return
        self.in_use += 1
        seen = set()
        try:
            while chain:
                node = chain
                while True:
                    if node in seen:
                        raise memory.Unreadable(f"the queue at {node:#x} is a loop")
                    seen.add(node)
                    self.read_node(node)
                    node = about["node.next"].of(node)
                    if node == chain:
                        break
                chain = about["node.chain"].of(chain)
        except memory.Unreadable as error:
            self.broken.append(f"bucket {address:#x}: {error}")

    def read_node(self, address):
        about = self.about
        data = memory.read(address, about["node"].size)

        def field(name):
            return about["node." + name].of(address, data)

        kind = self.kinds.get(field("awaited"), "object of an unknown kind")
        thread, mutex = field("thread_or_mutex"), None
        if kind == "condvar":
            thread, mutex = self.parkers.thread(field("parker")), thread
        at = field("address")
        if kind == "condvar" and field("place") == AT_MUTEX:
            # Signalled, and moved to the mutex.
            kind = "mutex"
        self.waiters.append(Waiter(kind, at, thread, mutex, field("mask")))


class Parkers:
    """The places that threads sleep in: groups in chunks, each chunk twice the size of the last."""

    def __init__(self, about):
        self.about = about
        pool = about.address + about["waiter_table.parkers"].offset
        count = about["pool.len"].of(pool)
        chunks = pool + about["pool.chunks"].offset
        self.chunks = [memory.pointer(chunks + memory.POINTER * n) for n in range(count)]
        self.in_group = about["group.slots"].size // about["slot"].size

    def slot(self, number):
        """The address of a parker by its number, which begins with 1."""
        group, slot = divmod(number - 1, self.in_group)
        chunk = (group + 1).bit_length() - 1
        if chunk >= len(self.chunks):
            raise memory.Unreadable(f"there is no parker {number}")
        address = self.chunks[chunk] + (group + 1 - (1 << chunk)) * self.about["group"].size
        return address + self.about["group.slots"].offset + slot * self.about["slot"].size

    def thread(self, number):
        """`pthread_self()` of the parker's user, if it is stored there."""
        return self.about["slot.thread"].of(self.slot(number)) if number else 0

    def total(self):
        return ((1 << len(self.chunks)) - 1) * self.in_group

    def in_use(self):
        parkers = range(1, self.total() + 1)
        return sum(self.about["slot.in_use"].of(self.slot(number)) != 0 for number in parkers)

    def contain(self, address):
        """Whether a thread that sleeps at this address sleeps in a parker."""
        size = self.about["group"].size
        return any(begin <= address < begin + (size << n) for n, begin in enumerate(self.chunks))
