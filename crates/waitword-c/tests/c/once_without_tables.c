/* A ww_once_t whose routine ends its thread, compiled without unwind tables: glibc cannot unwind
 * the thread past these functions, so it calls the cleanup handlers and abandons the rest of the
 * stack. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

static ww_once_t once, outer_once;
static int runs, leaves, may_leave;

static void leave_or_return(void)
{
    __atomic_add_fetch(&runs, 1, __ATOMIC_SEQ_CST);
    while (leaves && !__atomic_load_n(&may_leave, __ATOMIC_SEQ_CST))
        sched_yield();
    if (leaves) {
        leaves = 0;
        pthread_exit(NULL);
    }
}

static void with_argument(void *number)
{
    failures += *(int *)number != 7;
    leave_or_return();
}

static void around(void)
{
    ww_once(&once, leave_or_return);
    runs += 10;
}

static void *call(void *unused)
{
    ANSWERS(0, ww_once(&once, leave_or_return));
    return unused;
}

static void *call_with(void *number)
{
    ANSWERS(0, ww_once_call(&once, with_argument, number));
    return NULL;
}

static void *call_around(void *unused)
{
    ANSWERS(0, ww_once(&outer_once, around));
    return unused;
}

/* The routine counts as not called: the next call runs it, and later ones do not. */
static void left_and_called_again(void *(*body)(void *), void *argument, int runs_in_all)
{
    once = outer_once = (ww_once_t)WW_ONCE_INIT;
    runs = 0;
    leaves = may_leave = 1;
    elsewhere(body, argument);
    GIVES(1, runs);
    elsewhere(body, argument);
    GIVES(runs_in_all, runs);
    elsewhere(body, argument);
    GIVES(runs_in_all, runs);
}

/* A thread that waits meanwhile runs it. */
static void left_while_another_waits(void)
{
    once = (ww_once_t)WW_ONCE_INIT;
    runs = may_leave = 0;
    leaves = 1;
    pthread_t first = start(call, NULL);
    while (__atomic_load_n(&runs, __ATOMIC_SEQ_CST) == 0)
        sched_yield();
    pthread_t second = start(call, NULL);
    usleep(20000);
    __atomic_store_n(&may_leave, 1, __ATOMIC_SEQ_CST);
    join(first);
    join(second);
    GIVES(2, runs);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    int number = 7;
    left_and_called_again(call, NULL, 2);
    left_and_called_again(call_with, &number, 2);
    left_and_called_again(call_around, NULL, 12);
    left_while_another_waits();
    return report("once without unwind tables");
}
