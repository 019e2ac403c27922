"""Each kind of lock that Python's threads, pools and processes have. Prints the same in every
run."""

import asyncio
import concurrent.futures
import hashlib
import multiprocessing
import queue
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib

TURNS = int(sys.argv[1])
THREADS = 4


def run(target, count=THREADS):
    threads = [threading.Thread(target=target, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def condition():
    turn, changed = [0], threading.Condition()

    def play(number):
        for _ in range(TURNS):
            with changed:
                changed.wait_for(lambda: turn[0] % THREADS == number)
                turn[0] += 1
                changed.notify_all()

    run(play)
    return turn[0]


def barrier():
    meeting, log = threading.Barrier(THREADS), []

    def meet(_):
        for _ in range(TURNS // 10):
            if meeting.wait() == 0:
                log.append(1)

    run(meet)
    return len(log)


def semaphore():
    places, inside, most, guard = threading.BoundedSemaphore(2), [0], [0], threading.RLock()

    def enter(_):
        for _ in range(TURNS):
            with places:
                with guard, guard:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                with guard:
                    inside[0] -= 1

    run(enter)
    return inside[0], most[0] <= 2


def timeouts():
    empty, never, held = queue.Queue(), threading.Event(), threading.Lock()
    held.acquire()
    came = 0
    for wait in (0.001, 0.01, 0.05):
        try:
            empty.get(timeout=wait)
        except queue.Empty:
            came += 1
        before = time.monotonic()
        came += not never.wait(wait)
        came += not held.acquire(timeout=wait)
        assert time.monotonic() - before >= 2 * wait
    return came


def pool():
    with concurrent.futures.ThreadPoolExecutor(THREADS) as workers:
        parts = list(workers.map(lambda n: zlib.crc32(bytes(1000) * n), range(TURNS)))
        deep = workers.submit(sum, parts).result()
    return deep, hashlib.sha256(repr(parts).encode()).hexdigest()


def children(number):
    out = subprocess.run(["cat"], input=b"%d" % number, stdout=subprocess.PIPE, check=True)
    return int(out.stdout)


def forks():
    """Children are made while other threads take locks."""
    stop, lock = threading.Event(), threading.Lock()

    def busy():
        while not stop.is_set():
            with lock:
                pass

    noise = threading.Thread(target=busy)
    noise.start()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as workers:
        total = sum(workers.map(children, range(20)))
    stop.set()
    noise.join()
    return total


def square(number):
    return number * number


def processes():
    """Named, process-shared semaphores."""
    with multiprocessing.get_context("fork").Pool(2) as workers:
        return sum(workers.map(square, range(1000)))


def shared_counter():
    context = multiprocessing.get_context("fork")
    counter = context.Value("i", 0)

    def add():
        for _ in range(1000):
            with counter.get_lock():
                counter.value += 1

    workers = [context.Process(target=add) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return counter.value


def database():
    with tempfile.TemporaryDirectory() as place:
        path = place + "/threads.db"
        with sqlite3.connect(path) as first:
            first.execute("create table t (thread integer, item integer)")

        def insert(number):
            mine = sqlite3.connect(path, timeout=60)
            for item in range(20):
                with mine:
                    mine.execute("insert into t values (?, ?)", (number, item))
            mine.close()

        run(insert)
        with sqlite3.connect(path) as last:
            return last.execute("select count(*), sum(item) from t").fetchone()


def event_loop():
    async def main():
        loop = asyncio.get_running_loop()
        jobs = [loop.run_in_executor(None, square, n) for n in range(200)]
        return sum(await asyncio.gather(*jobs))

    return asyncio.run(main())


started = time.monotonic()
for part in (
    condition, barrier, semaphore, timeouts, pool, forks, processes, shared_counter, database,
    event_loop,
):
    print(part.__name__, part(), flush=True)
print("seconds", time.monotonic() - started, file=sys.stderr)
