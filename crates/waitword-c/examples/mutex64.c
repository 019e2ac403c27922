/*
 * A mutex and a condition variable, a 64-bit word each, and a broadcast without a thundering herd.
 *
 * If a broadcast wakes all waiters at once, all of them compete for the mutex, and all but one go
 * back to sleep. This broadcast wakes one waiter and moves the others to the mutex's word, where
 * each unlock wakes the next one.
 *
 * Why 64 bits: the condition's word counts broadcasts. A 32-bit count can wrap around between a
 * waiter's check and its sleep, and the waiter would then sleep through the broadcast. A 64-bit
 * count does not wrap in any program's lifetime. The mutex also keeps a count next to its state:
 * how often it was found locked.
 *
 *     cc mutex64.c $(pkg-config --cflags --libs waitword) -pthread && ./a.out
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <waitword.h>

enum { THREADS = 16 };

static const unsigned word64 = WW_SIZE_U64 | WW_PRIVATE;

static void fatal(const char *what)
{
    perror(what);
    exit(1);
}

/* Sleeps while *word holds value. However it returns, the caller must check again. */
static void sleep_while(_Atomic uint64_t *word, uint64_t value)
{
    if (ww_futex_wait(word, value, WW_MASK_U64, word64, NULL, 0) < 0 && errno != EAGAIN &&
        errno != EINTR)
        fatal("ww_futex_wait");
}

/* The mutex: its state in the low two bits, the number of contended locks above them. */
typedef _Atomic uint64_t mutex;
static const uint64_t STATE = 3, FREE = 0, HELD = 1, CONTENDED = 2, ONE_CONTENDED_LOCK = 4;

/* Locks the mutex and marks it contended: another thread may be asleep on it. */
static void mutex_lock_contended(mutex *m)
{
    uint64_t now = atomic_load(m);
    for (;;) {
        uint64_t marked = (now & ~STATE) | CONTENDED;
        if ((now & STATE) == FREE) {
            if (atomic_compare_exchange_weak(m, &now, marked + ONE_CONTENDED_LOCK))
                return;
        } else if (now == marked || atomic_compare_exchange_weak(m, &now, marked)) {
            sleep_while(m, marked);
            now = atomic_load(m);
        }
    }
}

static void mutex_lock(mutex *m)
{
    uint64_t now = atomic_load(m);
    while ((now & STATE) == FREE)
        if (atomic_compare_exchange_weak(m, &now, now | HELD))
            return;
    mutex_lock_contended(m);
}

static void mutex_unlock(mutex *m)
{
    uint64_t before = atomic_fetch_and(m, ~STATE);
    if ((before & STATE) == CONTENDED && ww_futex_wake(m, WW_MASK_U64, 1, word64) < 0)
        fatal("ww_futex_wake");
}

/* The condition: the number of broadcasts so far. */
typedef _Atomic uint64_t condition;

static void condition_wait(condition *c, mutex *m)
{
    uint64_t seen = atomic_load(c);
    mutex_unlock(m);
    sleep_while(c, seen);
    /* The broadcast may have moved other threads to the mutex: our unlock must wake one of them. */
    mutex_lock_contended(m);
}

/* Returns the number of threads woken or moved. */
static long condition_broadcast(condition *c, mutex *m)
{
    for (;;) {
        struct ww_futex_waitv pair[2] = {
            {.val = atomic_fetch_add(c, 1) + 1, .uaddr = (uintptr_t)c, .flags = word64},
            {.uaddr = (uintptr_t)m, .flags = word64},
        };
        long count = ww_futex_requeue(pair, 0, 1, INT_MAX);
        if (count >= 0)
            return count;
        if (errno != EAGAIN) /* EAGAIN: another broadcast came in between; retry. */
            fatal("ww_futex_requeue");
    }
}

static mutex lock;
static condition changed;
static bool open_now; /* guarded by lock, like the counts below */
static int waiting, through;

static void *pass_gate(void *unused)
{
    (void)unused;
    mutex_lock(&lock);
    waiting++;
    while (!open_now)
        condition_wait(&changed, &lock);
    through++;
    mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, pass_gate, NULL) != 0)
            return 1;

    /* Wait until all threads have counted themselves: each is then asleep on the condition, or
     * about to be. */
    int ready;
    do {
        mutex_lock(&lock);
        ready = waiting;
        mutex_unlock(&lock);
    } while (ready < THREADS);

    mutex_lock(&lock);
    open_now = true;
    long count = condition_broadcast(&changed, &lock);
    mutex_unlock(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    if (through != THREADS || (atomic_load(&lock) & STATE) != FREE || count > THREADS) {
        fprintf(stderr, "mutex64: %d of %d came through, broadcast gave %ld\n", through, THREADS,
                count);
        return 1;
    }
    printf("mutex64: %d threads came through; the broadcast woke or moved %ld of them\n", through,
           count);
    printf("mutex64: the mutex was found locked %llu times\n",
           (unsigned long long)(atomic_load(&lock) / ONE_CONTENDED_LOCK));
    return 0;
}
