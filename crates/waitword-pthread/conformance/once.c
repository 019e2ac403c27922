/* pthread_once. Sources: POSIX, pthread_once(3p). Exceptions are in exceptions.cpp, cancellation
 * in cancel.c. */
#include "conformance.h"
#include <threads.h>

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

/* Undefined in POSIX; glibc waits forever, and so does a caller of a library that relies on it. */
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
    /* In the child no thread runs the routine any longer: it runs again there. */
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

/* Another thread runs the routine while this one forks: in the child the routine has to run
 * again. */
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

/* ---- Left through frames without unwind tables, as C code often has (`untabled.c`) ---- */

extern void (*untabled_leave)(void *), (*untabled_handler)(void *);
void untabled_routine(void);
void untabled_routine_with_handler(void);
void untabled_call(void (*function)(void *), void *argument);
void untabled_call_with_handler(void (*function)(void *), void *argument);

static void exit_here(void *unused) {
    ADD(runs, 1);
    pthread_exit(unused);
}

static void be_cancelled(void *unused) {
    (void)unused;
    ADD(runs, 1);
    for (;;) pause();
}

static void return_here(void *unused) {
    (void)unused;
    ADD(runs, 1);
}

static void *call_untabled(void *unused) {
    OK(pthread_once(&once, untabled_routine));
    return unused;
}

static void *call_untabled_of_c11(void *unused) {
    static once_flag flag = ONCE_FLAG_INIT;
    call_once(&flag, untabled_routine);
    return unused;
}

static void *call_untabled_with_handler(void *unused) {
    OK(pthread_once(&once, untabled_routine_with_handler));
    return unused;
}

/* It counts as not called, and the next call runs it. */
static void is_left_and_runs_again(void *(*call_it)(void *)) {
    struct thread thread;
    untabled_leave = exit_here;
    start(&thread, call_it, NULL);
    join(&thread);
    EQ(runs, 1);
    untabled_leave = return_here;
    call_it(NULL);
    EQ(runs, 2);
    call_it(NULL);
    EQ(runs, 2);
}

CASE(left_without_tables_by_exit) { is_left_and_runs_again(call_untabled); }
CASE(left_without_tables_by_exit_c11) { is_left_and_runs_again(call_untabled_of_c11); }

CASE(left_without_tables_by_cancellation) {
    struct thread thread, next;
    untabled_leave = be_cancelled;
    start(&thread, call_untabled, NULL);
    UNTIL(GET(runs) == 1);
    start(&next, call_untabled, NULL);
    until_asleep(&next);
    SET(untabled_leave, return_here);
    OK(pthread_cancel(thread.handle));
    CHECK(join(&thread) == PTHREAD_CANCELED);
    CHECK(join(&next) == NULL);
    EQ(runs, 2);
}

/* Handlers run from the innermost to the outermost, and the once is left between them. */
static int inner_handled, outer_handled;

static void handle_inside(void *unused) {
    (void)unused;
    EQ(outer_handled, 0);
    inner_handled++;
}

static void handle_outside(void *unused) {
    (void)unused;
    EQ(inner_handled, 1);
    outer_handled++;
    untabled_leave = return_here;
    untabled_handler = handle_inside;
    OK(pthread_once(&once, untabled_routine_with_handler));
}

static void call_with_inner_handler(void *unused) {
    untabled_handler = handle_inside;
    call_untabled_with_handler(unused);
}

static void *call_with_both_handlers(void *unused) {
    untabled_leave = exit_here;
    untabled_handler = handle_outside;
    untabled_call_with_handler(call_with_inner_handler, NULL);
    return unused;
}

CASE(left_without_tables_between_handlers) {
    struct thread thread;
    start(&thread, call_with_both_handlers, NULL);
    join(&thread);
    EQ(inner_handled, 1);
    EQ(outer_handled, 1);
    EQ(runs, 2);
}

static void call_second(void *unused) {
    (void)unused;
    OK(pthread_once(&second, untabled_routine));
}

static void call_second_inside(void) {
    ADD(runs, 1);
    untabled_call(call_second, NULL);
}

static void *call_nested(void *unused) {
    OK(pthread_once(&once, call_second_inside));
    return unused;
}

CASE(left_without_tables_nested) {
    struct thread thread;
    untabled_leave = exit_here;
    start(&thread, call_nested, NULL);
    join(&thread);
    EQ(runs, 2);
    untabled_leave = return_here;
    call_nested(NULL);
    EQ(runs, 4);
}

static void *return_and_exit(void *unused) {
    OK(pthread_once(&once, inner));
    untabled_call(exit_here, unused);
    return unused;
}

CASE(done_before_an_exit_without_tables) {
    struct thread thread;
    start(&thread, return_and_exit, NULL);
    join(&thread);
    EQ(runs, 2);
    OK(pthread_once(&once, inner));
    EQ(runs, 2);
}
