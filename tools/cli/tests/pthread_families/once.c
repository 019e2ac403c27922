/* pthread_once and call_once: the routine runs once, whichever threads call. It runs again if it
 * was left by cancellation, by the thread's end, or by fork. */
#include "served.h"
#include <threads.h>

enum { THREADS = 8 };

static pthread_once_t once;
static volatile int runs, finished, is_inside, may_go_on;

static void slowly(void)
{
    __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
    sleep_ms(5);
    set(&finished);
}

static void *call_slowly(void *unused)
{
    GIVES(0, pthread_once(&once, slowly));
    GIVES(1, finished);
    return unused;
}

static void among_many(void)
{
    for (int round = 0; round < 20; round++) {
        once = PTHREAD_ONCE_INIT;
        runs = finished = 0;
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            threads[i] = start(call_slowly, NULL);
        for (int i = 0; i < THREADS; i++)
            join(threads[i]);
        GIVES(1, runs);
        ANSWERS(0, pthread_once(&once, abort));
        GIVES(2, once); /* "done" is glibc's number, too */
    }
}

static int cleaned;

static void clean(void *unused)
{
    (void)unused;
    cleaned++;
}

static void until_cancelled(void)
{
    __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
    pthread_cleanup_push(clean, NULL);
    set(&is_inside);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
}

static void until_exit(void)
{
    __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
    set(&is_inside);
    comes(&may_go_on);
    pthread_exit((void *)7);
}

static void *call_until_cancelled(void *unused)
{
    pthread_once(&once, until_cancelled);
    return unused;
}

static void *call_until_exit(void *unused)
{
    pthread_once(&once, until_exit);
    return unused;
}

static void unwound(void *(*first)(void *), void *result, bool cancel)
{
    once = PTHREAD_ONCE_INIT;
    runs = finished = is_inside = may_go_on = cleaned = 0;
    pthread_t thread = start(first, NULL);
    GIVES(1, comes(&is_inside));
    pthread_t waiters[2] = {start(call_slowly, NULL), start(call_slowly, NULL)};
    sleep_ms(20);
    GIVES(0, finished);
    if (cancel)
        GIVES(0, pthread_cancel(thread));
    set(&may_go_on);
    void *got;
    GIVES(0, pthread_join(thread, &got));
    GIVES(result, got);
    join(waiters[0]);
    join(waiters[1]);
    /* Begun by the thread that has ended, and finished by one of the waiters. */
    GIVES(2, runs);
    GIVES(1, finished);
    GIVES(cancel, cleaned);
}

/* Another thread is in the routine while this one forks: the child runs the routine again. */
static void left_by_fork(void)
{
    once = PTHREAD_ONCE_INIT;
    runs = finished = is_inside = may_go_on = 0;
    pthread_t thread = start(call_until_exit, NULL);
    GIVES(1, comes(&is_inside));
    pid_t child = fork_child();
    if (child == 0) {
        GIVES(0, pthread_once(&once, slowly));
        GIVES(1, finished);
        end_of_child();
    }
    wait_for_child(child);
    GIVES(0, finished);
    set(&may_go_on);
    join(thread);
    GIVES(0, pthread_once(&once, slowly));
    GIVES(1, finished);
}

static pid_t forked;

static void fork_inside(void)
{
    forked = fork_child();
    __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
}

/* The routine itself forks: it ends in both processes, and is done in both. */
static void fork_in_the_routine(void)
{
    once = PTHREAD_ONCE_INIT;
    runs = 0;
    GIVES(0, pthread_once(&once, fork_inside));
    GIVES(1, runs);
    GIVES(0, pthread_once(&once, abort));
    if (forked == 0)
        end_of_child();
    wait_for_child(forked);
}

static void nested_inner(void)
{
    runs++;
}

static void nested_outer(void)
{
    static pthread_once_t inner;
    GIVES(0, pthread_once(&inner, nested_inner));
    runs++;
}

int main(void)
{
    among_many();
    unwound(call_until_cancelled, PTHREAD_CANCELED, true);
    unwound(call_until_exit, (void *)7, false);
    left_by_fork();
    fork_in_the_routine();

    once = PTHREAD_ONCE_INIT;
    runs = 0;
    GIVES(0, pthread_once(&once, nested_outer));
    GIVES(2, runs);
    if (ours()) {
        once = PTHREAD_ONCE_INIT;
        void (*volatile nothing)(void) = NULL;
        ANSWERS(EINVAL, pthread_once(&once, nothing));
    }

    static once_flag flag = ONCE_FLAG_INIT;
    runs = finished = 0;
    call_once(&flag, slowly);
    call_once(&flag, abort);
    GIVES(1, runs);
    return report("once");
}
