"""Four producers and four consumers on a short queue.Queue. Prints what came through: the same in
every run."""

import queue
import sys
import threading
import time

PER_PRODUCER = int(sys.argv[1])
SIDE = 4

items = queue.Queue(maxsize=16)
sums = [0] * SIDE


def produce(number):
    for item in range(PER_PRODUCER):
        items.put(number * PER_PRODUCER + item)


def consume(number):
    while (item := items.get()) is not None:
        sums[number] += item
        items.task_done()
    items.task_done()


started = time.monotonic()
consumers = [threading.Thread(target=consume, args=(n,)) for n in range(SIDE)]
producers = [threading.Thread(target=produce, args=(n,)) for n in range(SIDE)]
for thread in consumers + producers:
    thread.start()
for thread in producers:
    thread.join()
for _ in consumers:
    items.put(None)
items.join()
for thread in consumers:
    thread.join()
print("sum", sum(sums), "of", SIDE * PER_PRODUCER)
print("seconds", time.monotonic() - started, file=sys.stderr)
