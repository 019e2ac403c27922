/* ww_cond_t: every function, every error, with mutexes of every kind, flavour and scope. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

/* The threads of a test, and what they wait for. */
struct meeting {
    ww_mutex_t mutex;
    ww_cond_t cond;
    int waiting;   /* how many have started to wait in total */
    int turn;      /* number of the thread that may continue; -1: all */
    int back;      /* how many have returned */
    int order[16]; /* their numbers, in order of return */
};

static struct meeting *meeting;

static void lock(void)
{
    ANSWERS(0, ww_mutex_lock(&meeting->mutex));
}

static void unlock(void)
{
    ANSWERS(0, ww_mutex_unlock(&meeting->mutex));
}

static void *wait_for_turn(void *number)
{
    int me = (int)(intptr_t)number;
    lock();
    meeting->waiting++;
    while (meeting->turn != -1 && meeting->turn != me)
        ANSWERS(0, ww_cond_wait(&meeting->cond, &meeting->mutex));
    meeting->order[meeting->back++] = me;
    unlock();
    return NULL;
}

/* Returns with the mutex held and `count` threads asleep, or as good as asleep. */
static void until_waiting(int count)
{
    for (;;) {
        lock();
        if (meeting->waiting == count)
            return;
        unlock();
        sched_yield();
    }
}

static void until_back(int count)
{
    for (;;) {
        lock();
        bool all = meeting->back == count;
        unlock();
        if (all)
            return;
        sched_yield();
    }
}

enum { THREADS = 6 };

/* Each signal wakes the thread that has waited longest, and no other. */
static void signals_in_order(void)
{
    pthread_t threads[THREADS];
    meeting->turn = -2;
    for (intptr_t i = 0; i < THREADS; i++) {
        threads[i] = start(wait_for_turn, (void *)i);
        until_waiting((int)i + 1);
        unlock();
    }
    for (int i = 0; i < THREADS; i++) {
        lock();
        meeting->turn = i;
        if (i % 2)
            ANSWERS(0, ww_cond_signal(&meeting->cond));
        unlock();
        if (i % 2 == 0)
            ANSWERS(0, ww_cond_signal(&meeting->cond)); /* without the mutex */
        until_back(i + 1);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
        GIVES(i, meeting->order[i]);
    }
}

static void broadcasts(bool holding)
{
    pthread_t threads[THREADS];
    meeting->waiting = meeting->back = 0;
    meeting->turn = -2;
    for (intptr_t i = 0; i < THREADS; i++)
        threads[i] = start(wait_for_turn, (void *)i);
    until_waiting(THREADS);
    meeting->turn = -1;
    if (!holding)
        unlock();
    ANSWERS(0, ww_cond_broadcast(&meeting->cond));
    if (holding)
        unlock();
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    GIVES(THREADS, meeting->back);
}

static void *is_locked(void *unused)
{
    ANSWERS(EBUSY, ww_mutex_trylock(&meeting->mutex));
    return unused;
}

static void times_out(void)
{
    lock();
    TIMES_OUT(ww_cond_timedwait, ww_cond_clockwait, &meeting->cond, &meeting->mutex);
    elsewhere(is_locked, NULL);
    /* A signal without a waiter is lost. */
    ANSWERS(0, ww_cond_signal(&meeting->cond));
    ANSWERS(0, ww_cond_broadcast(&meeting->cond));
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 2);
    ANSWERS(ETIMEDOUT, ww_cond_clockwait(&meeting->cond, &meeting->mutex, CLOCK_MONOTONIC, &soon));
    unlock();
}

static void *wait_in_time(void *unused)
{
    struct timespec late = never(CLOCK_MONOTONIC), late_realtime = never(CLOCK_REALTIME);
    lock();
    meeting->waiting++;
    while (meeting->turn < 1)
        ANSWERS(0, ww_cond_clockwait(&meeting->cond, &meeting->mutex, CLOCK_MONOTONIC, &late));
    meeting->back++;
    while (meeting->turn < 2)
        ANSWERS(0, ww_cond_timedwait(&meeting->cond, &meeting->mutex, &late_realtime));
    meeting->back++;
    unlock();
    return unused;
}

static void in_time(void)
{
    meeting->waiting = meeting->back = meeting->turn = 0;
    pthread_t thread = start(wait_in_time, NULL);
    until_waiting(1);
    meeting->turn = 1;
    ANSWERS(0, ww_cond_signal(&meeting->cond));
    unlock();
    until_back(1);
    lock();
    meeting->turn = 2;
    ANSWERS(0, ww_cond_broadcast(&meeting->cond));
    unlock();
    join(thread);
    GIVES(2, meeting->back);
}

static bool keeps_owner(unsigned flags)
{
    return (flags & 0xf) || (flags & 0xf0) == WW_MUTEX_PRIO_INHERIT;
}

static void with(unsigned flags)
{
    printf("with a mutex of flags %#x\n", flags);
    unsigned scope = flags & WW_PROCESS_SHARED;
    memset(meeting, 0, sizeof *meeting);
    ANSWERS(0, ww_mutex_init(&meeting->mutex, flags));
    ANSWERS(0, ww_cond_init(&meeting->cond, scope));
    if (keeps_owner(flags)) {
        ANSWERS(EPERM, ww_cond_wait(&meeting->cond, &meeting->mutex));
        ANSWERS(EPERM, ww_cond_timedwait(&meeting->cond, &meeting->mutex, &past));
    }
    if (!scope) /* the kernel's order is the same (except real-time threads), but not promised */
        signals_in_order();
    broadcasts(true);
    broadcasts(false);
    times_out();
    in_time();
    ANSWERS(0, ww_cond_destroy(&meeting->cond));
    ANSWERS(0, ww_mutex_destroy(&meeting->mutex));
}

/* Two processes take turns. */
enum { TURNS = 500 };

static void take_turns(int me)
{
    lock();
    for (int i = 0; i < TURNS; i++) {
        while (meeting->turn % 2 != me)
            ANSWERS(0, ww_cond_wait(&meeting->cond, &meeting->mutex));
        meeting->turn++;
        ANSWERS(0, i % 2 ? ww_cond_signal(&meeting->cond) : ww_cond_broadcast(&meeting->cond));
    }
    unlock();
}

static void between_processes(unsigned flags)
{
    printf("between processes, flags %#x\n", flags);
    memset(meeting, 0, sizeof *meeting);
    ANSWERS(0, ww_mutex_init(&meeting->mutex, flags | WW_PROCESS_SHARED));
    ANSWERS(0, ww_cond_init(&meeting->cond, WW_PROCESS_SHARED));
    pid_t child = fork_child();
    take_turns(child == 0);
    if (child == 0)
        end_of_child();
    wait_for_child(child);
    GIVES(2 * TURNS, meeting->turn);
    ANSWERS(0, ww_cond_destroy(&meeting->cond));
}

/* All waiters must use the same mutex. */
static void another_mutex(void)
{
    ww_mutex_t other = WW_MUTEX_INITIALIZER;
    *meeting = (struct meeting){.mutex = WW_MUTEX_INITIALIZER, .cond = WW_COND_INITIALIZER};
    meeting->turn = -2;
    pthread_t thread = start(wait_for_turn, NULL);
    until_waiting(1);
    ANSWERS(0, ww_mutex_lock(&other));
    ANSWERS(EINVAL, ww_cond_wait(&meeting->cond, &other));
    ANSWERS(EINVAL, ww_cond_timedwait(&meeting->cond, &other, &past));
    ANSWERS(EBUSY, ww_mutex_trylock(&other)); /* still locked */
    ANSWERS(EBUSY, ww_cond_destroy(&meeting->cond));
    meeting->turn = -1;
    ANSWERS(0, ww_cond_broadcast(&meeting->cond));
    ANSWERS(0, ww_cond_destroy(&meeting->cond)); /* signalled: may be freed */
    memset(&meeting->cond, 0xff, sizeof meeting->cond);
    unlock();
    join(thread);
}

static void bad_input(void)
{
    ww_mutex_t mutex = WW_MUTEX_INITIALIZER;
    ww_cond_t cond;
    ww_cond_t *odd = (ww_cond_t *)((char *)&cond + 4);
    static const ww_cond_t zeros;
    ANSWERS(0, ww_cond_init(&cond, 0));
    GIVES(0, memcmp(&cond, &zeros, sizeof cond));
    GIVES(0, memcmp(&cond, &(ww_cond_t)WW_COND_INITIALIZER, sizeof cond));
    ANSWERS(EINVAL, ww_cond_init(NULL, 0));
    ANSWERS(EINVAL, ww_cond_init(odd, 0));
    ANSWERS(EINVAL, ww_cond_init(&cond, WW_MUTEX_RECURSIVE));
    ANSWERS(EINVAL, ww_cond_init(&cond, WW_PRIVATE));
    ANSWERS(EINVAL, ww_cond_destroy(NULL));
    ANSWERS(0, ww_mutex_lock(&mutex));
    ANSWERS(EINVAL, ww_cond_wait(NULL, &mutex));
    ANSWERS(EINVAL, ww_cond_wait(odd, &mutex));
    ANSWERS(EINVAL, ww_cond_wait(&cond, NULL));
    ANSWERS(EINVAL, ww_cond_timedwait(NULL, &mutex, &past));
    ANSWERS(EINVAL, ww_cond_timedwait(&cond, NULL, &past));
    ANSWERS(EINVAL, ww_cond_clockwait(NULL, &mutex, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_cond_clockwait(&cond, NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    ANSWERS(EINVAL, ww_cond_signal(NULL));
    ANSWERS(EINVAL, ww_cond_broadcast(NULL));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    meeting = shared_memory(sizeof *meeting);
    bad_input();
    another_mutex();
    static const unsigned kinds[] = {WW_MUTEX_NORMAL, WW_MUTEX_RECURSIVE, WW_MUTEX_ERRORCHECK};
    static const unsigned flavours[] = {WW_MUTEX_ADAPTIVE, WW_MUTEX_THROUGHPUT, WW_MUTEX_WAIT_WAKE,
                                        WW_MUTEX_PRIO_INHERIT};
    for (int flavour = 0; flavour < 4; flavour++) {
        for (int kind = 0; kind < 3; kind++) {
            with(kinds[kind] | flavours[flavour]);
            with(kinds[kind] | flavours[flavour] | WW_PROCESS_SHARED);
        }
        between_processes(flavours[flavour]);
    }
    return report("cond");
}
