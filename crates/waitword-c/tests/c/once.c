/* ww_once_t: both functions, every error, a routine that ends its thread. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

static ww_once_t once_plain = WW_ONCE_INIT, once_with, once_left;
static int times_plain, times_with, times_left;

static void routine(void)
{
    usleep(1000);
    times_plain++;
}

static void routine_with(void *argument)
{
    times_with += *(int *)argument;
}

static void *call_once(void *number)
{
    ANSWERS(0, ww_once(&once_plain, routine));
    GIVES(1, times_plain);
    ANSWERS(0, ww_once_call(&once_with, routine_with, number));
    return NULL;
}

/* If a thread ends inside the routine, the routine counts as not called. */
static void leave(void)
{
    if (times_left++ == 0)
        pthread_exit(NULL);
}

static void *call_and_leave(void *unused)
{
    ww_once(&once_left, leave);
    return unused;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    pthread_t threads[4];
    int numbers[4] = {7, 7, 7, 7};
    for (int i = 0; i < 4; i++)
        threads[i] = start(call_once, &numbers[i]);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    GIVES(1, times_plain);
    GIVES(7, times_with);
    elsewhere(call_and_leave, NULL);
    GIVES(1, times_left);
    elsewhere(call_and_leave, NULL);
    elsewhere(call_and_leave, NULL);
    GIVES(2, times_left);
    ANSWERS(EINVAL, ww_once(NULL, routine));
    ANSWERS(EINVAL, ww_once((void *)((char *)&once_plain + 1), routine));
    ANSWERS(EINVAL, ww_once(&once_plain, NULL));
    ANSWERS(EINVAL, ww_once_call(NULL, routine_with, NULL));
    ANSWERS(EINVAL, ww_once_call(&once_with, NULL, NULL));
    return report("once");
}
