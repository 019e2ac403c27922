/* ww_stats: what is counted of waits and wakes, when, and what is not. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

#define WAITERS 6

static ww_mutex_t mutex = WW_MUTEX_INITIALIZER;
static ww_cond_t cond = WW_COND_INITIALIZER;
static int waiting;
static bool go;

static void *lock_once(void *unused)
{
    ANSWERS(0, ww_mutex_lock(&mutex));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void *wait_once(void *unused)
{
    ANSWERS(0, ww_mutex_lock(&mutex));
    waiting++;
    while (!go)
        ANSWERS(0, ww_cond_wait(&cond, &mutex));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    return unused;
}

static bool reaches(unsigned event, uint64_t count)
{
    struct timespec end = never(CLOCK_MONOTONIC);
    while (ww_stats_count(event) < count) {
        if (has_come(CLOCK_MONOTONIC, end))
            return false;
        usleep(1000);
    }
    return true;
}

/* The holder keeps the mutex until its waiter sleeps, and then hands it off. */
static void contended_once(void)
{
    uint64_t contended = ww_stats_count(WW_STATS_CONTENDED);
    uint64_t sleeps = ww_stats_count(WW_STATS_SLEEPS);
    uint64_t wakes = ww_stats_count(WW_STATS_WAKES);
    uint64_t hand_offs = ww_stats_count(WW_STATS_HAND_OFFS);
    ANSWERS(0, ww_mutex_lock(&mutex));
    pthread_t waiter = start(lock_once, NULL);
    GIVES(true, reaches(WW_STATS_CONTENDED, contended + 1));
    GIVES(true, reaches(WW_STATS_SLEEPS, sleeps + 1));
    GIVES(hand_offs, ww_stats_count(WW_STATS_HAND_OFFS));
    ANSWERS(0, ww_mutex_unlock_fair(&mutex));
    join(waiter);
    GIVES(contended + 1, ww_stats_count(WW_STATS_CONTENDED));
    GIVES(hand_offs + 1, ww_stats_count(WW_STATS_HAND_OFFS));
    GIVES(true, ww_stats_count(WW_STATS_WAKES) > wakes);
}

/* All waiters of a broadcast go on to the mutex, which the caller holds. */
static void broadcast_once(void)
{
    pthread_t waiters[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = start(wait_once, NULL);
    for (int counted = 0; counted < WAITERS; usleep(1000)) {
        ww_mutex_lock(&mutex);
        counted = waiting;
        ww_mutex_unlock(&mutex);
    }
    ANSWERS(0, ww_mutex_lock(&mutex));
    go = true;
    uint64_t requeues = ww_stats_count(WW_STATS_REQUEUES);
    ANSWERS(0, ww_cond_broadcast(&cond));
    GIVES(requeues + WAITERS, ww_stats_count(WW_STATS_REQUEUES));
    GIVES(1, ww_stats_count(WW_STATS_HERDS_AVOIDED));
    GIVES(WAITERS, ww_stats_count(WW_STATS_HERD_WAITERS));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    for (int i = 0; i < WAITERS; i++)
        join(waiters[i]);
}

/* As contended_once, but nothing is counted, so that nothing tells whether the thread sleeps. */
static void uncounted(void)
{
    uint64_t before[16];
    for (unsigned event = 0; event < 16; event++)
        before[event] = ww_stats_count(event);
    ANSWERS(0, ww_mutex_lock(&mutex));
    pthread_t waiter = start(lock_once, NULL);
    usleep(50000);
    ANSWERS(0, ww_mutex_unlock(&mutex));
    join(waiter);
    for (unsigned event = 0; event < 16; event++)
        GIVES(before[event], ww_stats_count(event));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    for (unsigned event = 0; event < 16; event++)
        GIVES(0, ww_stats_count(event));
    uncounted();
    ww_stats_enable();
    contended_once();
    broadcast_once();
    GIVES(0, ww_stats_count(WW_STATS_HERD_WAITERS + 1)); /* no such event */
    GIVES(0, ww_stats_count(0xffffffff));
    ww_stats_disable();
    uncounted();
    ww_stats_enable(); /* goes on */
    GIVES(1, ww_stats_count(WW_STATS_HERDS_AVOIDED));
    contended_once();
    return report("stats");
}
