/*
 * A one-shot event in a single byte: many threads wait for it, and one call wakes them all.
 *
 *     cc event.c $(pkg-config --cflags --libs waitword) -pthread && ./a.out
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <waitword.h>

enum { THREADS = 8 };

/* A byte is enough: 0 before the event, 1 after it. The sleepers need no word of their own, and the
 * event needs no init. */
struct event {
    _Atomic uint8_t happened;
};

static const unsigned byte = WW_SIZE_U8 | WW_PRIVATE;

/* Waits until the event has happened or the deadline (CLOCK_MONOTONIC; NULL: none) has passed. */
static bool event_wait(struct event *event, const struct timespec *deadline)
{
    while (!atomic_load_explicit(&event->happened, memory_order_acquire)) {
        /* Sleeps only while the byte still holds 0. EAGAIN (it no longer does), EINTR and a
         * spurious wake-up all mean the same: check again. */
        if (ww_futex_wait(&event->happened, 0, WW_MASK_U8, byte, deadline, CLOCK_MONOTONIC) == 0)
            continue;
        if (errno == ETIMEDOUT)
            return false;
        if (errno != EAGAIN && errno != EINTR) {
            perror("ww_futex_wait");
            exit(1);
        }
    }
    return true;
}

/* Sets the event: first the byte, then the wake. A thread that comes in between does not sleep. */
static void event_set(struct event *event)
{
    atomic_store_explicit(&event->happened, 1, memory_order_release);
    if (ww_futex_wake(&event->happened, WW_MASK_U8, INT_MAX, byte) < 0) {
        perror("ww_futex_wake");
        exit(1);
    }
}

static struct event started;
static int message; /* written before the event, read after it */

static void *waiter(void *unused)
{
    (void)unused;
    event_wait(&started, NULL);
    return message == 42 ? &started : NULL;
}

int main(void)
{
    struct timespec soon;
    clock_gettime(CLOCK_MONOTONIC, &soon);
    soon.tv_sec += soon.tv_nsec >= 990000000;
    soon.tv_nsec = (soon.tv_nsec + 10000000) % 1000000000;
    if (event_wait(&started, &soon)) {
        fputs("event: it happened before it was set\n", stderr);
        return 1;
    }

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, waiter, NULL) != 0)
            return 1;
    message = 42;
    event_set(&started);
    for (int i = 0; i < THREADS; i++) {
        void *saw_message;
        pthread_join(threads[i], &saw_message);
        if (!saw_message) {
            fputs("event: a waiter went on too early\n", stderr);
            return 1;
        }
    }
    printf("event: %d threads went on after the event\n", THREADS);
    return 0;
}
