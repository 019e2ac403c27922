/* ww_mutex_t: every function, every error, every kind, flavour and scope. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

static const unsigned kinds[] = {WW_MUTEX_NORMAL, WW_MUTEX_RECURSIVE, WW_MUTEX_ERRORCHECK};
static const unsigned flavours[] = {WW_MUTEX_ADAPTIVE, WW_MUTEX_THROUGHPUT, WW_MUTEX_WAIT_WAKE,
                                    WW_MUTEX_PRIO_INHERIT};
static const unsigned scopes[] = {WW_PROCESS_PRIVATE, WW_PROCESS_SHARED};

/* One of the 24 combinations of flags. */
static unsigned combination(int i)
{
    return kinds[i % 3] | flavours[i / 3 % 4] | scopes[i / 12];
}
enum { COMBINATIONS = 24 };

static bool inherits(unsigned flags)
{
    return (flags & 0xf0) == WW_MUTEX_PRIO_INHERIT;
}

static bool keeps_owner(unsigned flags)
{
    return (flags & 0xf) != WW_MUTEX_NORMAL || inherits(flags);
}

static ww_mutex_t mutex;
static unsigned flags;

/* Run by a thread that does not hold the mutex while another thread does. */
static void *is_held(void *unused)
{
    ANSWERS(EBUSY, ww_mutex_trylock(&mutex));
    TIMES_OUT(ww_mutex_timedlock, ww_mutex_clocklock, &mutex);
    if (keeps_owner(flags)) {
        ANSWERS(EPERM, ww_mutex_unlock(&mutex));
        ANSWERS(EPERM, ww_mutex_unlock_fair(&mutex));
    }
    ANSWERS(EBUSY, ww_mutex_destroy(&mutex));
    return unused;
}

static void *is_free(void *unused)
{
    ANSWERS(0, ww_mutex_trylock(&mutex));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void *lock_and_unlock(void *unused)
{
    ANSWERS(0, ww_mutex_lock(&mutex));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void alone(void)
{
    ANSWERS(0, ww_mutex_lock(&mutex));
    elsewhere(is_held, NULL);
    if (flags & WW_MUTEX_RECURSIVE) {
        ANSWERS(0, ww_mutex_lock(&mutex));
        ANSWERS(0, ww_mutex_trylock(&mutex));
        ANSWERS(0, ww_mutex_timedlock(&mutex, NULL)); /* not checked */
        ANSWERS(0, ww_mutex_unlock(&mutex));
        ANSWERS(0, ww_mutex_unlock(&mutex));
        ANSWERS(0, ww_mutex_unlock(&mutex));
        elsewhere(is_held, NULL);
    } else {
        struct timespec late = never(CLOCK_REALTIME);
        ANSWERS(EBUSY, ww_mutex_trylock(&mutex));
        if (keeps_owner(flags)) {
            ANSWERS(EDEADLK, ww_mutex_lock(&mutex));
            ANSWERS(EDEADLK, ww_mutex_timedlock(&mutex, &late));
            /* The call would not wait: the time is not checked. */
            ANSWERS(EDEADLK, ww_mutex_timedlock(&mutex, &too_many_ns));
            ANSWERS(EDEADLK, ww_mutex_clocklock(&mutex, CLOCK_MONOTONIC, NULL));
        } else {
            ANSWERS(ETIMEDOUT, ww_mutex_timedlock(&mutex, &past));
        }
    }
    ANSWERS(0, ww_mutex_bump(&mutex)); /* no waiters: still held */
    ANSWERS(EBUSY, ww_mutex_destroy(&mutex));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    elsewhere(is_free, NULL);

    if (keeps_owner(flags))
        ANSWERS(EPERM, ww_mutex_unlock(&mutex));
    ANSWERS(0, ww_mutex_trylock(&mutex));
    ANSWERS(0, ww_mutex_unlock_fair(&mutex));
    ANSWERS(0, ww_mutex_timedlock(&mutex, &too_many_ns)); /* free: the time is not checked */
    ANSWERS(0, ww_mutex_unlock(&mutex));
    ANSWERS(0, ww_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    ANSWERS(EINVAL, ww_mutex_clocklock(&mutex, CLOCK_BOOTTIME, &past)); /* the clock is checked */

    ANSWERS(0, ww_mutex_destroy(&mutex));
    ANSWERS(EINVAL, ww_mutex_lock(&mutex));
    ANSWERS(EINVAL, ww_mutex_trylock(&mutex));
    ANSWERS(EINVAL, ww_mutex_timedlock(&mutex, &past));
    ANSWERS(EINVAL, ww_mutex_unlock(&mutex));
    ANSWERS(EINVAL, ww_mutex_unlock_fair(&mutex));
    ANSWERS(EINVAL, ww_mutex_destroy(&mutex));
    ANSWERS(0, ww_mutex_init(&mutex, flags));
    elsewhere(is_free, NULL);
}

/* The lock, and the data that it protects. */
struct counter {
    ww_mutex_t mutex;
    long value;
};

enum { THREADS = 4, ROUNDS = 2000 };

static void *count(void *argument)
{
    struct counter *counter = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int error = ww_mutex_lock(&counter->mutex);
        long value = counter->value;
        if (i % 64 == 0)
            sched_yield();
        counter->value = value + 1;
        if (i % 100 == 1)
            error |= ww_mutex_bump(&counter->mutex);
        error |= i % 16 ? ww_mutex_unlock(&counter->mutex) : ww_mutex_unlock_fair(&counter->mutex);
        if (error) {
            ANSWERS(0, error);
            break;
        }
    }
    return NULL;
}

static void among_threads(void)
{
    struct counter counter = {.value = 0};
    pthread_t threads[THREADS];
    ANSWERS(0, ww_mutex_init(&counter.mutex, flags));
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(count, &counter);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    GIVES(THREADS * ROUNDS, counter.value);
    ANSWERS(0, ww_mutex_destroy(&counter.mutex));
}

static void among_processes(void)
{
    struct counter *counter = shared_memory(sizeof *counter);
    ANSWERS(0, ww_mutex_init(&counter->mutex, flags));
    pid_t child = fork_child();
    count(counter);
    if (child == 0)
        end_of_child();
    wait_for_child(child);
    GIVES(2 * ROUNDS, counter->value);
    ANSWERS(0, ww_mutex_destroy(&counter->mutex));
    munmap(counter, sizeof *counter);
}

/* An unlock hands the mutex off to a waiter, and a timed wait can succeed. */
static void *lock_in_time(void *unused)
{
    struct timespec late = never(CLOCK_MONOTONIC);
    ANSWERS(0, ww_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &late));
    ANSWERS(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void handed_on(void)
{
    ANSWERS(0, ww_mutex_lock(&mutex));
    pthread_t threads[2] = {start(lock_in_time, NULL), start(lock_and_unlock, NULL)};
    usleep(2000); /* by now they probably wait */
    ANSWERS(0, ww_mutex_bump(&mutex));
    ANSWERS(0, ww_mutex_unlock_fair(&mutex));
    join(threads[0]);
    join(threads[1]);
}

/* init and the static initialiser make the same object. */
static void statically(void)
{
#define SAME(...)                                       \
    do {                                                \
        static const ww_mutex_t made_ = __VA_ARGS__;    \
        GIVES(0, memcmp(&made_, &mutex, sizeof mutex)); \
    } while (0)
#define SAME_WITH(flags)                          \
    do {                                          \
        ANSWERS(0, ww_mutex_init(&mutex, flags)); \
        SAME(WW_MUTEX_INITIALIZER_WITH(flags));   \
    } while (0)
#define SAME_SCOPES(flags)                       \
    do {                                         \
        SAME_WITH((flags) | WW_PROCESS_PRIVATE); \
        SAME_WITH((flags) | WW_PROCESS_SHARED);  \
    } while (0)
#define SAME_FLAVOURS(kind)                          \
    do {                                             \
        SAME_SCOPES((kind) | WW_MUTEX_ADAPTIVE);     \
        SAME_SCOPES((kind) | WW_MUTEX_THROUGHPUT);   \
        SAME_SCOPES((kind) | WW_MUTEX_WAIT_WAKE);    \
        SAME_SCOPES((kind) | WW_MUTEX_PRIO_INHERIT); \
    } while (0)
    SAME_FLAVOURS(WW_MUTEX_NORMAL);
    SAME_FLAVOURS(WW_MUTEX_RECURSIVE);
    SAME_FLAVOURS(WW_MUTEX_ERRORCHECK);

    ANSWERS(0, ww_mutex_init(&mutex, 0));
    SAME(WW_MUTEX_INITIALIZER);
    SAME({{0, 0}}); /* zeroed memory */
    ANSWERS(0, ww_mutex_init(&mutex, WW_MUTEX_RECURSIVE));
    SAME(WW_RECURSIVE_MUTEX_INITIALIZER);
    ANSWERS(0, ww_mutex_init(&mutex, WW_MUTEX_ERRORCHECK));
    SAME(WW_ERRORCHECK_MUTEX_INITIALIZER);
    ANSWERS(0, ww_mutex_init(&mutex, WW_MUTEX_THROUGHPUT));
    SAME(WW_THROUGHPUT_MUTEX_INITIALIZER);
    ANSWERS(0, ww_mutex_init(&mutex, WW_MUTEX_WAIT_WAKE));
    SAME(WW_WAIT_WAKE_MUTEX_INITIALIZER);
    ANSWERS(0, ww_mutex_init(&mutex, WW_MUTEX_PRIO_INHERIT));
    SAME(WW_PRIO_INHERIT_MUTEX_INITIALIZER);
}

static void bad_input(void)
{
    ww_mutex_t *odd = (ww_mutex_t *)((char *)&mutex + 2);
    ANSWERS(EINVAL, ww_mutex_init(NULL, 0));
    ANSWERS(EINVAL, ww_mutex_init(odd, 0));
    ANSWERS(EINVAL, ww_mutex_init(&mutex, 3));
    ANSWERS(EINVAL, ww_mutex_init(&mutex, 0x40));
    ANSWERS(EINVAL, ww_mutex_init(&mutex, WW_PRIVATE)); /* a futex's flag */
    ANSWERS(EINVAL, ww_mutex_init(&mutex, 1u << 31));
    ANSWERS(EINVAL, ww_mutex_destroy(NULL));
    ANSWERS(EINVAL, ww_mutex_lock(NULL));
    ANSWERS(EINVAL, ww_mutex_lock(odd));
    ANSWERS(EINVAL, ww_mutex_trylock(NULL));
    ANSWERS(EINVAL, ww_mutex_timedlock(NULL, &past));
    ANSWERS(EINVAL, ww_mutex_clocklock(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_mutex_unlock(NULL));
    ANSWERS(EINVAL, ww_mutex_unlock_fair(NULL));
    ANSWERS(EINVAL, ww_mutex_bump(NULL));
}

/* 65,536 levels, and no more. */
static void too_deep(void)
{
    static ww_mutex_t deep = WW_RECURSIVE_MUTEX_INITIALIZER;
    for (int i = 0; i < 65536; i++)
        if (ww_mutex_lock(&deep) != 0) {
            GIVES(65536, i);
            return;
        }
    ANSWERS(EAGAIN, ww_mutex_lock(&deep));
    ANSWERS(EAGAIN, ww_mutex_trylock(&deep));
    ANSWERS(EAGAIN, ww_mutex_timedlock(&deep, &past));
    for (int i = 0; i < 65536; i++)
        if (ww_mutex_unlock(&deep) != 0)
            GIVES(65536, i);
    ANSWERS(EPERM, ww_mutex_unlock(&deep));
}

/* Another thread may unlock a normal mutex, if the threads agree on it. */
static void *unlock(void *unused)
{
    ANSWERS(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void by_another(void)
{
    ANSWERS(0, ww_mutex_init(&mutex, 0));
    ANSWERS(0, ww_mutex_lock(&mutex));
    elsewhere(unlock, NULL);
    elsewhere(is_free, NULL);
}

/* What the forking thread held, its copy in the child holds too. */
static void across_fork(void)
{
    ANSWERS(0, ww_mutex_init(&mutex, 0));
    ANSWERS(0, ww_mutex_lock(&mutex));
    pid_t child = fork_child();
    if (child == 0) {
        ANSWERS(EBUSY, ww_mutex_trylock(&mutex));
        ANSWERS(0, ww_mutex_unlock(&mutex));
        elsewhere(is_free, NULL);
        end_of_child();
    }
    ANSWERS(0, ww_mutex_unlock(&mutex));
    wait_for_child(child);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    bad_input();
    statically();
    for (int i = 0; i < COMBINATIONS; i++) {
        flags = combination(i);
        printf("flags %#x\n", flags);
        ANSWERS(0, ww_mutex_init(&mutex, flags));
        alone();
        handed_on();
        among_threads();
        if (flags & WW_PROCESS_SHARED)
            among_processes();
    }
    too_deep();
    by_another();
    across_fork();
    return report("mutex");
}
