/* A library whose constructor starts two threads, makes each of them perform the operation named by
 * OPERATION as its first action, and joins them. If it is loaded by dlopen, the dynamic loader
 * holds a lock meanwhile. */
#include "threads.h"
#include <waitword.h>

static ww_mutex_t mutex = WW_MUTEX_INITIALIZER;
static ww_mutex_t inheriting = WW_PRIO_INHERIT_MUTEX_INITIALIZER;
static ww_cond_t cond = WW_COND_INITIALIZER;
static ww_rwlock_t rwlock = WW_RWLOCK_INITIALIZER;
static ww_sem_t sem = WW_SEM_INITIALIZER(1);
static ww_barrier_t barrier = WW_BARRIER_INITIALIZER(2);
static int waiting, done;
static uint32_t word;

static void pause_ms(long milliseconds)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = milliseconds * 1000000};
    nanosleep(&time, NULL);
}

/* Both threads run one of these, and one of them waits for the other. */

static void *locks(void *unused)
{
    GIVES(0, ww_mutex_lock(&mutex));
    pause_ms(10);
    GIVES(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void *inherits(void *unused)
{
    GIVES(0, ww_mutex_lock(&inheriting));
    pause_ms(10);
    GIVES(0, ww_mutex_unlock(&inheriting));
    return unused;
}

static void *locks_in_time(void *unused)
{
    struct timespec far = never(CLOCK_MONOTONIC), soon = in_ms(CLOCK_MONOTONIC, 2);
    if (ww_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon) != 0)
        GIVES(0, ww_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &far));
    pause_ms(10);
    GIVES(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void *reads_and_writes(void *unused)
{
    GIVES(0, ww_rwlock_wrlock(&rwlock));
    pause_ms(10);
    GIVES(0, ww_rwlock_unlock(&rwlock));
    GIVES(0, ww_rwlock_rdlock(&rwlock));
    GIVES(0, ww_rwlock_unlock(&rwlock));
    return unused;
}

static void *takes_and_posts(void *unused)
{
    GIVES(0, ww_sem_wait(&sem));
    pause_ms(10);
    GIVES(0, ww_sem_post(&sem));
    return unused;
}

static void *arrives(void *unused)
{
    ww_barrier_wait(&barrier);
    return unused;
}

/* The first thread to arrive waits for the second one. */

static void *waits_or_signals(void *unused)
{
    GIVES(0, ww_mutex_lock(&mutex));
    if (waiting) {
        done = 1;
        GIVES(0, ww_cond_signal(&cond));
    }
    waiting = 1;
    while (!done)
        GIVES(0, ww_cond_wait(&cond, &mutex));
    GIVES(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void *waits_in_time_or_signals(void *unused)
{
    GIVES(0, ww_mutex_lock(&mutex));
    if (waiting) {
        pause_ms(10);
        done = 1;
        GIVES(0, ww_cond_broadcast(&cond));
    }
    waiting = 1;
    while (!done) {
        struct timespec soon = in_ms(CLOCK_REALTIME, 2);
        ww_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &soon);
    }
    GIVES(0, ww_mutex_unlock(&mutex));
    return unused;
}

static void *waits_or_wakes(void *unused)
{
    const unsigned flags = WW_SIZE_U32 | WW_PRIVATE;
    if (__atomic_exchange_n(&waiting, 1, __ATOMIC_SEQ_CST)) {
        pause_ms(10);
        __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
        ww_futex_wake(&word, WW_MASK_U32, 1, flags);
        return unused;
    }
    while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST)) {
        struct timespec far = never(CLOCK_MONOTONIC);
        ww_futex_wait(&word, 0, WW_MASK_U32, flags, &far, CLOCK_MONOTONIC);
    }
    return unused;
}

static const struct {
    const char *name;
    void *(*run)(void *);
} operations[] = {
    {"mutex", locks},
    {"inheriting mutex", inherits},
    {"mutex with a time limit", locks_in_time},
    {"rwlock", reads_and_writes},
    {"semaphore", takes_and_posts},
    {"barrier", arrives},
    {"cond", waits_or_signals},
    {"cond with a time limit", waits_in_time_or_signals},
    {"futex", waits_or_wakes},
};

__attribute__((constructor)) static void at_load(void)
{
    const char *wanted = getenv("OPERATION");
    for (size_t each = 0; each < sizeof operations / sizeof *operations; each++) {
        if (strcmp(operations[each].name, wanted) != 0)
            continue;
        pthread_t threads[] = {start(operations[each].run, NULL),
                               start(operations[each].run, NULL)};
        join(threads[0]);
        join(threads[1]);
        if (failures == 0)
            printf("%s works\n", wanted);
    }
    (void)past, (void)before_zero, (void)too_many_ns, (void)negative_ns, (void)clocks;
}
