/* pthread_once. Sources: POSIX, pthread_once(3p). Exceptions are in exceptions.cpp, cancellation in cancel.c. */
#include "conformance.h"

static pthread_once_t once = PTHREAD_ONCE_INIT, second = PTHREAD_ONCE_INIT;
static int runs, ready;

static void slow(void) {
    ADD(runs, 1);
    pause_ms(30);
    SET(ready, 1);
}

static void *call(void *unused) {
    (void)unused;
    OK(pthread_once(&once, slow));
    EQ(GET(ready), 1);
    return NULL;
}

CASE(runs_once) {
    struct thread threads[6];
    for (int each = 0; each < 6; each++) start(&threads[each], call, NULL);
    for (int each = 0; each < 6; each++) join(&threads[each]);
    EQ(runs, 1);
    call(NULL);
    EQ(runs, 1);
}

static void inner(void) { ADD(runs, 1); }
static void outer(void) {
    OK(pthread_once(&second, inner));
    OK(pthread_once(&second, inner));
    SET(ready, 1);
}

CASE(calls_another) {
    OK(pthread_once(&once, outer));
    EQ(runs, 1);
    EQ(ready, 1);
}

static void *call_itself(void *unused);
static void recursive(void) { call_itself(NULL); }
static void *call_itself(void *unused) {
    (void)unused;
    ADD(runs, 1);
    pthread_once(&once, recursive);
    return NULL;
}

/* Undefined in POSIX; glibc waits for ever, and so does whoever calls a library that relies on it. */
CASE(recursion_waits) {
    struct thread thread;
    start(&thread, call_itself, NULL);
    until_asleep(&thread);
    CHECK(still_waits(&thread, 20));
    EQ(runs, 2);
}

static int forks_left = 1;
static void fork_inside(void) {
    ADD(runs, 1);
    if (forks_left-- == 0) return;
    /* In the child nobody is at it any more: the routine runs again there. */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        OK(pthread_once(&second, inner));
        EQ(runs, 2);
        _exit(0);
    }
    EQ(end_of(child), 0);
}

CASE(fork_inside_the_routine) {
    OK(pthread_once(&once, fork_inside));
    EQ(runs, 1);
    OK(pthread_once(&once, fork_inside));
    EQ(runs, 1);
}

static void *run_slowly(void *unused) {
    (void)unused;
    OK(pthread_once(&once, slow));
    return NULL;
}

/* Another thread is at it while this one forks: in the child the routine has to run anew. */
CASE(fork_while_another_runs_it) {
    struct thread thread;
    start(&thread, run_slowly, NULL);
    UNTIL(GET(runs) == 1);
    CHILD(child, {
        OK(pthread_once(&once, slow));
        EQ(runs, 2);
        EQ(GET(ready), 1);
    });
    EQ(end_of(child), 0);
    join(&thread);
    EQ(runs, 1);
}

CASE(fork_after_it_has_run) {
    OK(pthread_once(&once, inner));
    CHILD(child, {
        OK(pthread_once(&once, inner));
        EQ(runs, 1);
    });
    EQ(end_of(child), 0);
}

enum { MANY = 3000 };
static pthread_once_t many[MANY];
static int counted[MANY], at;
static pthread_barrier_t line;
static __thread int current;
static void count_current(void) { ADD(counted[current], 1); }

static void *call_many(void *unused) {
    (void)unused;
    pthread_barrier_wait(&line);
    for (current = 0; current < MANY; current++) {
        OK(pthread_once(&many[current], count_current));
        EQ(GET(counted[current]), 1);
    }
    return NULL;
}

CASE(many_raced_for) {
    struct thread threads[4];
    (void)at;
    OK(pthread_barrier_init(&line, NULL, 4));
    for (int each = 0; each < 4; each++) start(&threads[each], call_many, NULL);
    for (int each = 0; each < 4; each++) join(&threads[each]);
}
