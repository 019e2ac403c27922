/* ww_robust_mutex_t: every function, every error, and holders that die: threads and processes. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

struct counter {
    ww_robust_mutex_t mutex;
    long value;
    int ready, waits;
    ww_cond_t cond;
};

static struct counter *counter;
static unsigned flags;

static bool inherits(void)
{
    return (flags & 0xf0) == WW_MUTEX_PRIO_INHERIT;
}

static void *is_held(void *unused)
{
    ANSWERS(EBUSY, ww_robust_mutex_trylock(&counter->mutex));
    ANSWERS(EPERM, ww_robust_mutex_unlock(&counter->mutex));
    ANSWERS(EBUSY, ww_robust_mutex_destroy(&counter->mutex));
    ANSWERS(EINVAL, ww_robust_mutex_consistent(&counter->mutex));
    TIMES_OUT(ww_robust_mutex_timedlock, ww_robust_mutex_clocklock, &counter->mutex);
    return unused;
}

static void *is_free(void *unused)
{
    ANSWERS(0, ww_robust_mutex_trylock(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    ANSWERS(EPERM, ww_robust_mutex_unlock(&counter->mutex));
    return unused;
}

static void alone(void)
{
    ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
    elsewhere(is_held, NULL);
    if (flags & WW_MUTEX_RECURSIVE) {
        ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
        ANSWERS(0, ww_robust_mutex_trylock(&counter->mutex));
        ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
        ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    } else {
        struct timespec late = never(CLOCK_REALTIME);
        ANSWERS(EBUSY, ww_robust_mutex_trylock(&counter->mutex));
        if (flags & WW_MUTEX_ERRORCHECK || inherits()) {
            ANSWERS(EDEADLK, ww_robust_mutex_lock(&counter->mutex));
            ANSWERS(EDEADLK, ww_robust_mutex_timedlock(&counter->mutex, &late));
            /* The call would not wait: the time is not checked. */
            ANSWERS(EDEADLK, ww_robust_mutex_timedlock(&counter->mutex, &too_many_ns));
        } else {
            ANSWERS(ETIMEDOUT, ww_robust_mutex_timedlock(&counter->mutex, &past));
        }
    }
    ANSWERS(EINVAL, ww_robust_mutex_consistent(&counter->mutex)); /* no holder has died */
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    elsewhere(is_free, NULL);
    ANSWERS(0, ww_robust_mutex_timedlock(&counter->mutex, NULL)); /* not checked */
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_destroy(&counter->mutex));
}

static void *lock_and_end(void *unused)
{
    ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
    return unused;
}

static void *wait_for_death(void *unused)
{
    struct timespec late = never(CLOCK_MONOTONIC);
    ANSWERS(EOWNERDEAD, ww_robust_mutex_clocklock(&counter->mutex, CLOCK_MONOTONIC, &late));
    ANSWERS(0, ww_robust_mutex_consistent(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    return unused;
}

static void threads_die(void)
{
    elsewhere(lock_and_end, NULL);
    /* The kernel walks the robust list, then clears the thread's number. pthread_join waits for
     * that. */
    ANSWERS(EOWNERDEAD, ww_robust_mutex_trylock(&counter->mutex));
    elsewhere(is_held, NULL);
    ANSWERS(0, ww_robust_mutex_consistent(&counter->mutex));
    ANSWERS(EINVAL, ww_robust_mutex_consistent(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    elsewhere(is_free, NULL);
    elsewhere(lock_and_end, NULL);
    ANSWERS(EOWNERDEAD, ww_robust_mutex_lock(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_consistent(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
}

static void processes_die(void)
{
    counter->ready = 0;
    pid_t child = fork_child();
    if (child == 0) {
        ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
        __atomic_store_n(&counter->ready, 1, __ATOMIC_SEQ_CST);
        pause(); /* until killed */
        _exit(1);
    }
    while (!__atomic_load_n(&counter->ready, __ATOMIC_SEQ_CST))
        sched_yield();
    pthread_t thread = start(wait_for_death, NULL);
    usleep(1000); /* by now it probably waits */
    kill(child, SIGKILL);
    join(thread);
    waitpid(child, NULL, 0);
    elsewhere(is_free, NULL);
}

static void not_recovered(void)
{
    struct timespec late = never(CLOCK_REALTIME);
    elsewhere(lock_and_end, NULL);
    ANSWERS(EOWNERDEAD, ww_robust_mutex_lock(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    ANSWERS(ENOTRECOVERABLE, ww_robust_mutex_lock(&counter->mutex));
    ANSWERS(ENOTRECOVERABLE, ww_robust_mutex_trylock(&counter->mutex));
    ANSWERS(ENOTRECOVERABLE, ww_robust_mutex_timedlock(&counter->mutex, &late));
    ANSWERS(EPERM, ww_robust_mutex_unlock(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_destroy(&counter->mutex));
}

enum { ROUNDS = 2000 };

static void *count(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        int error = ww_robust_mutex_lock(&counter->mutex);
        counter->value++;
        error |= ww_robust_mutex_unlock(&counter->mutex);
        if (error)
            ANSWERS(0, error);
    }
    return unused;
}

static void among_all(void)
{
    counter->value = 0;
    pid_t child = fork_child();
    pthread_t thread = start(count, NULL);
    count(NULL);
    join(thread);
    if (child == 0)
        end_of_child();
    wait_for_child(child);
    GIVES(4 * ROUNDS, counter->value);
}

/* Waits for `ready` on a condition variable. Returns 0 or EOWNERDEAD. */
static void *wait_until_ready(void *unused)
{
    (void)unused;
    ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
    int error = 0;
    __atomic_store_n(&counter->waits, 1, __ATOMIC_SEQ_CST);
    while (!counter->ready && error == 0) {
        struct timespec late = never(CLOCK_MONOTONIC);
        error = counter->value ? ww_cond_wait_robust(&counter->cond, &counter->mutex)
                               : ww_cond_clockwait_robust(&counter->cond, &counter->mutex,
                                                          CLOCK_MONOTONIC, &late);
    }
    if (error == EOWNERDEAD)
        ANSWERS(0, ww_robust_mutex_consistent(&counter->mutex));
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    return (void *)(intptr_t)error;
}

/* Called once the other thread waits and has released the mutex. With `dies`, ends while it holds
 * the mutex. */
static void *make_ready(void *dies)
{
    ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
    counter->ready = 1;
    ANSWERS(0, ww_cond_broadcast(&counter->cond));
    if (!dies)
        ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    return NULL;
}

static void with_a_condition(void)
{
    ww_cond_t private_cond = WW_COND_INITIALIZER;
    ANSWERS(EPERM, ww_cond_wait_robust(&counter->cond, &counter->mutex));
    ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
    ANSWERS(ENOTSUP, ww_cond_wait_robust(&private_cond, &counter->mutex));
    ANSWERS(EINVAL, ww_cond_wait_robust(NULL, &counter->mutex));
    ANSWERS(EINVAL, ww_cond_wait_robust(&counter->cond, NULL));
#define UNTIL(clock, time) ww_cond_clockwait_robust(&counter->cond, &counter->mutex, clock, time)
    ANSWERS(ETIMEDOUT, UNTIL(CLOCK_MONOTONIC, &past));
    ANSWERS(ETIMEDOUT, UNTIL(CLOCK_REALTIME, &past));
    ANSWERS(EINVAL, UNTIL(CLOCK_MONOTONIC, NULL));
    ANSWERS(EINVAL, UNTIL(CLOCK_MONOTONIC, &too_many_ns));
    ANSWERS(EINVAL, UNTIL(CLOCK_BOOTTIME, &past));
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex)); /* held throughout */

    for (int i = 0; i < 4; i++) {
        counter->ready = counter->waits = 0;
        counter->value = i % 2;
        pthread_t waiter = start(wait_until_ready, NULL);
        while (!__atomic_load_n(&counter->waits, __ATOMIC_SEQ_CST))
            sched_yield();
        join(start(make_ready, (void *)(intptr_t)(i / 2)));
        void *found;
        pthread_join(waiter, &found);
        GIVES(i / 2 ? EOWNERDEAD : 0, (intptr_t)found);
    }

    /* A waiter that was killed does not get in the way of other threads. */
    pid_t child = fork_child();
    if (child == 0) {
        ANSWERS(0, ww_robust_mutex_lock(&counter->mutex));
        __atomic_store_n(&counter->waits, 2, __ATOMIC_SEQ_CST);
        for (;;)
            ww_cond_wait_robust(&counter->cond, &counter->mutex);
    }
    while (__atomic_load_n(&counter->waits, __ATOMIC_SEQ_CST) != 2)
        sched_yield();
    ANSWERS(0, ww_robust_mutex_lock(&counter->mutex)); /* the child has released it: it waits */
    ANSWERS(0, ww_robust_mutex_unlock(&counter->mutex));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    counter->ready = counter->waits = 0;
    pthread_t waiter = start(wait_until_ready, NULL);
    while (!__atomic_load_n(&counter->waits, __ATOMIC_SEQ_CST))
        sched_yield();
    make_ready(NULL);
    join(waiter);
    ANSWERS(0, ww_cond_init(&counter->cond, WW_PROCESS_SHARED)); /* instead of a destroy */
}

static void bad_input(void)
{
    ww_robust_mutex_t mutex, *odd = (void *)((char *)&mutex + 4);
    static const ww_robust_mutex_t zeros, initial = WW_ROBUST_MUTEX_INITIALIZER;
    ANSWERS(0, ww_robust_mutex_init(&mutex, 0));
    GIVES(0, memcmp(&mutex, &zeros, sizeof mutex));
    GIVES(0, memcmp(&mutex, &initial, sizeof mutex));
    ANSWERS(EINVAL, ww_robust_mutex_init(NULL, 0));
    ANSWERS(EINVAL, ww_robust_mutex_init(odd, 0));
    ANSWERS(EINVAL, ww_robust_mutex_init(&mutex, 3));
    ANSWERS(EINVAL, ww_robust_mutex_init(&mutex, WW_MUTEX_THROUGHPUT));
    ANSWERS(EINVAL, ww_robust_mutex_init(&mutex, WW_MUTEX_WAIT_WAKE));
    ANSWERS(EINVAL, ww_robust_mutex_init(&mutex, WW_PRIVATE));
    ANSWERS(EINVAL, ww_robust_mutex_destroy(NULL));
    ANSWERS(EINVAL, ww_robust_mutex_lock(NULL));
    ANSWERS(EINVAL, ww_robust_mutex_lock(odd));
    ANSWERS(EINVAL, ww_robust_mutex_trylock(NULL));
    ANSWERS(EINVAL, ww_robust_mutex_timedlock(NULL, &past));
    ANSWERS(EINVAL, ww_robust_mutex_clocklock(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_robust_mutex_unlock(NULL));
    ANSWERS(EINVAL, ww_robust_mutex_consistent(NULL));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    counter = shared_memory(sizeof *counter);
    bad_input();
    ANSWERS(0, ww_cond_init(&counter->cond, WW_PROCESS_SHARED));
    static const unsigned kinds[] = {WW_MUTEX_NORMAL, WW_MUTEX_RECURSIVE, WW_MUTEX_ERRORCHECK};
    for (int i = 0; i < 12; i++) {
        flags = kinds[i % 3] | (i / 3 % 2 ? WW_MUTEX_PRIO_INHERIT : 0) |
                (i / 6 ? WW_PROCESS_SHARED : 0);
        printf("flags %#x\n", flags);
        ANSWERS(0, ww_robust_mutex_init(&counter->mutex, flags));
        alone();
        threads_die();
        processes_die();
        among_all();
        with_a_condition();
        not_recovered();
    }
    return report("robust");
}
