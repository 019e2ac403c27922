/* ww_sem_t, ww_barrier_t, ww_latch_t, ww_event_t, ww_auto_event_t: every function, every error,
 * both scopes. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

/* One of each, in memory shared with a child. */
static struct {
    ww_sem_t sem;
    ww_barrier_t barrier;
    ww_latch_t latch;
    ww_event_t event;
    ww_auto_event_t auto_event;
    int counts[4];
} * all;

/* init and the static initialiser make the same object. */
#define IS_MADE_AS(object, type, ...)                   \
    do {                                                \
        static const type made_ = __VA_ARGS__;          \
        GIVES(sizeof made_, sizeof *(object));          \
        GIVES(0, memcmp(&made_, object, sizeof made_)); \
    } while (0)

/* A misaligned pointer. */
#define ODD(pointer) ((void *)((char *)(pointer) + 1))

/* Semaphores. */

static void *post(void *unused)
{
    ANSWERS(0, ww_sem_post(&all->sem));
    return unused;
}

static void on_signal(int signal)
{
    (void)signal;
}

static volatile bool interrupted;

static void *be_interrupted(void *unused)
{
    ANSWERS(EINTR, ww_sem_wait(&all->sem));
    interrupted = true;
    return unused;
}

static void sem_signals(unsigned scope)
{
    /* Installed without SA_RESTART. */
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    ANSWERS(0, ww_sem_init(&all->sem, scope, 0));
    interrupted = false;
    pthread_t thread = start(be_interrupted, NULL);
    while (!interrupted) {
        pthread_kill(thread, SIGUSR1);
        usleep(200);
    }
    join(thread);
}

static void *take_many(void *count)
{
    for (intptr_t i = 0; i < (intptr_t)count; i++) {
        int error = WAIT_BY(i % 3, ww_sem, &all->sem);
        if (error)
            ANSWERS(0, error);
    }
    return NULL;
}

static void sem(unsigned scope)
{
    int value = -1;
    ANSWERS(0, ww_sem_init(&all->sem, scope, 3));
    if (!scope)
        IS_MADE_AS(&all->sem, ww_sem_t, WW_SEM_INITIALIZER(3));
    ANSWERS(0, ww_sem_getvalue(&all->sem, &value));
    GIVES(3, value);
    ANSWERS(0, ww_sem_wait(&all->sem));
    ANSWERS(0, ww_sem_timedwait(&all->sem, &negative_ns)); /* not checked */
    ANSWERS(0, ww_sem_trywait(&all->sem));
    ANSWERS(EAGAIN, ww_sem_trywait(&all->sem));
    TIMES_OUT(ww_sem_timedwait, ww_sem_clockwait, &all->sem);
    ANSWERS(0, ww_sem_post_many(&all->sem, 0));
    ANSWERS(EAGAIN, ww_sem_trywait(&all->sem));
    pthread_t thread = start(post, NULL);
    ANSWERS(0, ww_sem_wait(&all->sem));
    join(thread);

    pthread_t takers[4];
    for (int i = 0; i < 4; i++)
        takers[i] = start(take_many, (void *)300);
    for (int i = 0; i < 4 * 300; i += 4)
        if (i % 8 == 0)
            ANSWERS(0, ww_sem_post_many(&all->sem, 4));
        else
            for (int j = 0; j < 4; j++)
                ANSWERS(0, ww_sem_post(&all->sem));
    for (int i = 0; i < 4; i++)
        join(takers[i]);
    ANSWERS(0, ww_sem_getvalue(&all->sem, &value));
    GIVES(0, value);

    ANSWERS(0, ww_sem_init(&all->sem, scope, WW_SEM_VALUE_MAX));
    ANSWERS(EOVERFLOW, ww_sem_post(&all->sem));
    ANSWERS(EOVERFLOW, ww_sem_post_many(&all->sem, UINT32_MAX));
    ANSWERS(0, ww_sem_getvalue(&all->sem, &value));
    GIVES(WW_SEM_VALUE_MAX, value);
    ANSWERS(0, ww_sem_destroy(&all->sem));
    sem_signals(scope);
}

static void sem_bad_input(void)
{
    int value;
    ANSWERS(EINVAL, ww_sem_init(NULL, 0, 0));
    ANSWERS(EINVAL, ww_sem_init(ODD(&all->sem), 0, 0));
    ANSWERS(EINVAL, ww_sem_init(&all->sem, 1, 0)); /* sem_init's pshared: not ours */
    ANSWERS(EINVAL, ww_sem_init(&all->sem, 0, 1u + WW_SEM_VALUE_MAX));
    ANSWERS(EINVAL, ww_sem_destroy(NULL));
    ANSWERS(EINVAL, ww_sem_wait(NULL));
    ANSWERS(EINVAL, ww_sem_wait(ODD(&all->sem)));
    ANSWERS(EINVAL, ww_sem_trywait(NULL));
    ANSWERS(EINVAL, ww_sem_timedwait(NULL, &past));
    ANSWERS(EINVAL, ww_sem_clockwait(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_sem_post(NULL));
    ANSWERS(EINVAL, ww_sem_post_many(NULL, 1));
    ANSWERS(EINVAL, ww_sem_getvalue(NULL, &value));
    ANSWERS(EINVAL, ww_sem_getvalue(&all->sem, NULL));
}

/* Barriers. */

enum { THREADS = 4, ROUNDS = 200 };
static int arrived[ROUNDS], serial[ROUNDS];

static void *meet(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&arrived[i], 1, __ATOMIC_RELAXED);
        int result = WAIT_BY(i % 3, ww_barrier, &all->barrier);
        if (result == WW_BARRIER_SERIAL_THREAD)
            __atomic_fetch_add(&serial[i], 1, __ATOMIC_RELAXED);
        else if (result != 0)
            GIVES(0, result);
        if (arrived[i] != THREADS)
            GIVES(THREADS, arrived[i]);
    }
    return unused;
}

static void barrier(unsigned scope)
{
    ANSWERS(0, ww_barrier_init(&all->barrier, scope, THREADS));
    if (!scope)
        IS_MADE_AS(&all->barrier, ww_barrier_t, WW_BARRIER_INITIALIZER(THREADS));
    memset(arrived, 0, sizeof arrived);
    memset(serial, 0, sizeof serial);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(meet, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    for (int i = 0; i < ROUNDS; i++)
        GIVES(1, serial[i]);
    TIMES_OUT(ww_barrier_timedwait, ww_barrier_clockwait, &all->barrier);
    ANSWERS(0, ww_barrier_destroy(&all->barrier)); /* a thread that timed out has not arrived */
    ANSWERS(0, ww_barrier_init(&all->barrier, scope, 1));
    ANSWERS(WW_BARRIER_SERIAL_THREAD, ww_barrier_wait(&all->barrier));
    ANSWERS(0, ww_barrier_destroy(&all->barrier));
}

static void *arrive(void *unused)
{
    int result = ww_barrier_wait(&all->barrier);
    GIVES(true, result == 0 || result == WW_BARRIER_SERIAL_THREAD);
    return unused;
}

/* With a private barrier only: destroying a shared barrier while threads still arrive is a misuse
 * that it does not detect. */
static void barrier_busy(void)
{
    ANSWERS(0, ww_barrier_init(&all->barrier, WW_PROCESS_PRIVATE, 2));
    pthread_t thread = start(arrive, NULL);
    int error;
    while ((error = ww_barrier_destroy(&all->barrier)) == 0)
        sched_yield();
    GIVES(EBUSY, error);
    arrive(NULL);
    join(thread);
    ANSWERS(0, ww_barrier_destroy(&all->barrier));
}

static void barrier_bad_input(void)
{
    ANSWERS(EINVAL, ww_barrier_init(NULL, 0, 1));
    ANSWERS(EINVAL, ww_barrier_init(ODD(&all->barrier), 0, 1));
    ANSWERS(EINVAL, ww_barrier_init(&all->barrier, 1, 1));
    ANSWERS(EINVAL, ww_barrier_init(&all->barrier, 0, 0));
    ANSWERS(EINVAL, ww_barrier_init(&all->barrier, 0, 1u + WW_BARRIER_COUNT_MAX));
    ANSWERS(EINVAL, ww_barrier_destroy(NULL));
    ANSWERS(EINVAL, ww_barrier_wait(NULL));
    ANSWERS(EINVAL, ww_barrier_timedwait(NULL, &past));
    ANSWERS(EINVAL, ww_barrier_clockwait(NULL, CLOCK_MONOTONIC, &past));
    memset(&all->barrier, 0, sizeof all->barrier);
    ANSWERS(EINVAL, ww_barrier_wait(&all->barrier));
    ANSWERS(EINVAL, ww_barrier_destroy(&all->barrier));
}

/* Latches. */

static void *await_latch(void *number)
{
    if ((intptr_t)number < 3)
        ANSWERS(0, WAIT_BY((intptr_t)number, ww_latch, &all->latch));
    else
        ANSWERS(0, ww_latch_arrive_and_wait(&all->latch));
    ANSWERS(0, ww_latch_trywait(&all->latch));
    return NULL;
}

static void latch(unsigned scope)
{
    ANSWERS(0, ww_latch_init(&all->latch, scope, 5));
    if (!scope)
        IS_MADE_AS(&all->latch, ww_latch_t, WW_LATCH_INITIALIZER(5));
    ANSWERS(EAGAIN, ww_latch_trywait(&all->latch));
    TIMES_OUT(ww_latch_timedwait, ww_latch_clockwait, &all->latch);
    ANSWERS(EINVAL, ww_latch_count_down(&all->latch, 6));
    ANSWERS(0, ww_latch_count_down(&all->latch, 0));
    ANSWERS(0, ww_latch_count_down(&all->latch, 2));
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
        threads[i] = start(await_latch, (void *)i);
    ANSWERS(EAGAIN, ww_latch_trywait(&all->latch));
    ANSWERS(0, ww_latch_count_down(&all->latch, 1));
    ANSWERS(0, ww_latch_count_down(&all->latch, 1));
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    ANSWERS(0, ww_latch_wait(&all->latch));
    ANSWERS(0, ww_latch_timedwait(&all->latch, NULL));
    ANSWERS(EINVAL, ww_latch_count_down(&all->latch, 1));
    ANSWERS(EINVAL, ww_latch_arrive_and_wait(&all->latch));
    ANSWERS(0, ww_latch_init(&all->latch, scope, 0));
    ANSWERS(0, ww_latch_trywait(&all->latch));
    ANSWERS(0, ww_latch_destroy(&all->latch));
}

static void latch_bad_input(void)
{
    ANSWERS(EINVAL, ww_latch_init(NULL, 0, 1));
    ANSWERS(EINVAL, ww_latch_init(ODD(&all->latch), 0, 1));
    ANSWERS(EINVAL, ww_latch_init(&all->latch, 1, 1));
    ANSWERS(EINVAL, ww_latch_init(&all->latch, 0, 1u + WW_LATCH_COUNT_MAX));
    ANSWERS(EINVAL, ww_latch_destroy(NULL));
    ANSWERS(EINVAL, ww_latch_count_down(NULL, 1));
    ANSWERS(EINVAL, ww_latch_arrive_and_wait(NULL));
    ANSWERS(EINVAL, ww_latch_wait(NULL));
    ANSWERS(EINVAL, ww_latch_trywait(NULL));
    ANSWERS(EINVAL, ww_latch_timedwait(NULL, &past));
    ANSWERS(EINVAL, ww_latch_clockwait(NULL, CLOCK_MONOTONIC, &past));
}

/* Events. */

static void *await_event(void *number)
{
    ANSWERS(0, WAIT_BY((intptr_t)number, ww_event, &all->event));
    return NULL;
}

static void event(unsigned scope)
{
    ANSWERS(0, ww_event_init(&all->event, scope));
    if (!scope)
        IS_MADE_AS(&all->event, ww_event_t, WW_EVENT_INITIALIZER);
    ANSWERS(EAGAIN, ww_event_trywait(&all->event));
    TIMES_OUT(ww_event_timedwait, ww_event_clockwait, &all->event);
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++)
        threads[i] = start(await_event, (void *)i);
    ANSWERS(0, ww_event_set(&all->event));
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    ANSWERS(0, ww_event_trywait(&all->event));
    ANSWERS(0, ww_event_wait(&all->event));
    ANSWERS(0, ww_event_timedwait(&all->event, NULL)); /* not checked */
    ANSWERS(0, ww_event_set(&all->event));
    ANSWERS(0, ww_event_reset(&all->event));
    ANSWERS(EAGAIN, ww_event_trywait(&all->event));
    ANSWERS(0, ww_event_init(&all->event, scope | WW_EVENT_SET));
    ANSWERS(0, ww_event_trywait(&all->event));
    ANSWERS(0, ww_event_destroy(&all->event));
}

static void *await_auto_event(void *number)
{
    ANSWERS(0, WAIT_BY((intptr_t)number, ww_auto_event, &all->auto_event));
    __atomic_fetch_add(&all->counts[0], 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void auto_event(unsigned scope)
{
    ANSWERS(0, ww_auto_event_init(&all->auto_event, scope));
    if (!scope)
        IS_MADE_AS(&all->auto_event, ww_auto_event_t, WW_AUTO_EVENT_INITIALIZER);
    ANSWERS(EAGAIN, ww_auto_event_trywait(&all->auto_event));
    TIMES_OUT(ww_auto_event_timedwait, ww_auto_event_clockwait, &all->auto_event);
    all->counts[0] = 0;
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++)
        threads[i] = start(await_auto_event, (void *)i);
    for (int i = 1; i <= 3; i++) {
        ANSWERS(0, ww_auto_event_set(&all->auto_event));
        while (__atomic_load_n(&all->counts[0], __ATOMIC_SEQ_CST) < i)
            sched_yield();
        GIVES(i, all->counts[0]);
    }
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    ANSWERS(EAGAIN, ww_auto_event_trywait(&all->auto_event));
    ANSWERS(0, ww_auto_event_set(&all->auto_event));
    ANSWERS(0, ww_auto_event_set(&all->auto_event)); /* it is already set: no effect */
    ANSWERS(0, ww_auto_event_trywait(&all->auto_event));
    ANSWERS(EAGAIN, ww_auto_event_trywait(&all->auto_event));
    ANSWERS(0, ww_auto_event_set(&all->auto_event));
    ANSWERS(0, ww_auto_event_reset(&all->auto_event));
    ANSWERS(EAGAIN, ww_auto_event_trywait(&all->auto_event));
    ANSWERS(0, ww_auto_event_init(&all->auto_event, scope | WW_EVENT_SET));
    ANSWERS(0, ww_auto_event_timedwait(&all->auto_event, &too_many_ns)); /* not checked */
    ANSWERS(EAGAIN, ww_auto_event_trywait(&all->auto_event));
    ANSWERS(0, ww_auto_event_destroy(&all->auto_event));
}

static void event_bad_input(void)
{
    ANSWERS(EINVAL, ww_event_init(NULL, 0));
    ANSWERS(EINVAL, ww_event_init(ODD(&all->event), 0));
    ANSWERS(EINVAL, ww_event_init(&all->event, 2));
    ANSWERS(EINVAL, ww_event_destroy(NULL));
    ANSWERS(EINVAL, ww_event_set(NULL));
    ANSWERS(EINVAL, ww_event_reset(NULL));
    ANSWERS(EINVAL, ww_event_wait(NULL));
    ANSWERS(EINVAL, ww_event_trywait(NULL));
    ANSWERS(EINVAL, ww_event_timedwait(NULL, &past));
    ANSWERS(EINVAL, ww_event_clockwait(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_auto_event_init(NULL, 0));
    ANSWERS(EINVAL, ww_auto_event_init(ODD(&all->auto_event), 0));
    ANSWERS(EINVAL, ww_auto_event_init(&all->auto_event, 2));
    ANSWERS(EINVAL, ww_auto_event_destroy(NULL));
    ANSWERS(EINVAL, ww_auto_event_set(NULL));
    ANSWERS(EINVAL, ww_auto_event_reset(NULL));
    ANSWERS(EINVAL, ww_auto_event_wait(NULL));
    ANSWERS(EINVAL, ww_auto_event_trywait(NULL));
    ANSWERS(EINVAL, ww_auto_event_timedwait(NULL, &past));
    ANSWERS(EINVAL, ww_auto_event_clockwait(NULL, CLOCK_MONOTONIC, &past));
}

/* Two processes wait for each other on each type of object. */
static void between_processes(void)
{
    ANSWERS(0, ww_sem_init(&all->sem, WW_PROCESS_SHARED, 0));
    ANSWERS(0, ww_barrier_init(&all->barrier, WW_PROCESS_SHARED, 2));
    ANSWERS(0, ww_latch_init(&all->latch, WW_PROCESS_SHARED, 2));
    ANSWERS(0, ww_event_init(&all->event, WW_PROCESS_SHARED));
    ANSWERS(0, ww_auto_event_init(&all->auto_event, WW_PROCESS_SHARED));
    memset(all->counts, 0, sizeof all->counts);
    pid_t child = fork_child();
    for (int i = 0; i < 100; i++) {
        __atomic_fetch_add(&all->counts[0], 1, __ATOMIC_SEQ_CST);
        int result = ww_barrier_wait(&all->barrier);
        if (result == WW_BARRIER_SERIAL_THREAD)
            __atomic_fetch_add(&all->counts[1], 1, __ATOMIC_SEQ_CST);
        else
            GIVES(0, result);
        GIVES(true, __atomic_load_n(&all->counts[0], __ATOMIC_SEQ_CST) >= 2 * (i + 1));
        /* One process waits, the other posts. */
        if (child == 0)
            ANSWERS(0, ww_sem_wait(&all->sem));
        else
            ANSWERS(0, ww_sem_post(&all->sem));
        if (child == 0)
            ANSWERS(0, ww_auto_event_set(&all->auto_event));
        else
            ANSWERS(0, ww_auto_event_wait(&all->auto_event));
    }
    if (child == 0)
        ANSWERS(0, ww_event_wait(&all->event));
    else
        ANSWERS(0, ww_event_set(&all->event));
    ANSWERS(0, ww_latch_arrive_and_wait(&all->latch));
    if (child == 0)
        end_of_child();
    wait_for_child(child);
    GIVES(200, all->counts[0]);
    GIVES(100, all->counts[1]);
    ANSWERS(0, ww_barrier_destroy(&all->barrier));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    all = shared_memory(sizeof *all);
    sem_bad_input();
    barrier_bad_input();
    latch_bad_input();
    event_bad_input();
    for (unsigned scope = 0; scope <= WW_PROCESS_SHARED; scope += WW_PROCESS_SHARED) {
        printf("%s\n", scope ? "shared" : "private");
        sem(scope);
        barrier(scope);
        latch(scope);
        event(scope);
        auto_event(scope);
    }
    barrier_busy();
    printf("between processes\n");
    between_processes();
    return report("small_locks");
}
