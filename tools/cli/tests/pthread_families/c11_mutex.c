/* C11's mutexes, and pthread's functions on the same objects. */
#include "served.h"
#include <threads.h>

static mtx_t mutex;
static long count;

static int work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        mtx_lock(&mutex);
        count++;
        mtx_unlock(&mutex);
    }
    return 0;
}

static int try_it(void *unused)
{
    (void)unused;
    int answer = mtx_trylock(&mutex);
    if (answer == thrd_success)
        mtx_unlock(&mutex);
    return answer;
}

static int time_out(void *time)
{
    int answer = mtx_timedlock(&mutex, time);
    if (answer == thrd_success)
        mtx_unlock(&mutex);
    return answer;
}

static int in_a_thread(int (*body)(void *), void *argument)
{
    thrd_t thread;
    int answer;
    thrd_create(&thread, body, argument);
    thrd_join(thread, &answer);
    return answer;
}

int main(void)
{
    static const int kinds[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive,
                                mtx_timed | mtx_recursive};
    for (int i = 0; i < 4; i++) {
        bool recursive = kinds[i] & mtx_recursive;
        memset(&mutex, 0xa5, sizeof mutex);
        GIVES(thrd_success, mtx_init(&mutex, kinds[i]));
        GIVES(thrd_success, in_a_thread(try_it, NULL));
        GIVES(thrd_success, mtx_lock(&mutex));
        GIVES(thrd_busy, in_a_thread(try_it, NULL));
        GIVES(recursive ? thrd_success : thrd_busy, mtx_trylock(&mutex));
        if (recursive)
            GIVES(thrd_success, mtx_unlock(&mutex));
        struct timespec soon = in_ms(CLOCK_REALTIME, 5);
        GIVES(thrd_timedout, in_a_thread(time_out, &soon));
        struct timespec bad = too_many_ns;
        GIVES(thrd_error, in_a_thread(time_out, &bad));
        /* The same object, with pthread's functions. */
        GIVES(recursive ? 0 : EBUSY, pthread_mutex_trylock((pthread_mutex_t *)&mutex));
        if (recursive)
            GIVES(0, pthread_mutex_unlock((pthread_mutex_t *)&mutex));
        GIVES(0, pthread_mutex_unlock((pthread_mutex_t *)&mutex));
        GIVES(thrd_success, in_a_thread(try_it, NULL));

        thrd_t threads[4];
        count = 0;
        for (int t = 0; t < 4; t++)
            thrd_create(&threads[t], work, NULL);
        for (int t = 0; t < 4; t++)
            thrd_join(threads[t], NULL);
        GIVES(80000, count);
        mtx_destroy(&mutex);
    }
    /* (glibc checks only one bit.) */
    if (ours())
        GIVES(thrd_error, mtx_init(&mutex, 77));
    return report("c11_mutex");
}
