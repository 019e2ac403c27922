/* C11's condition variables, and pthread's functions on the same objects. */
#include "served.h"
#include <threads.h>

enum { THREADS = 6 };

static mtx_t mutex;
static cnd_t condition;
static int waiting, tickets, woken;

static int take_a_ticket(void *unused)
{
    (void)unused;
    mtx_lock(&mutex);
    waiting++;
    while (tickets == 0)
        if (cnd_wait(&condition, &mutex) != thrd_success)
            woken = -1000;
    tickets--;
    woken++;
    mtx_unlock(&mutex);
    return 0;
}

static void until_all_wait(int count)
{
    for (int are = 0; are < count;) {
        mtx_lock(&mutex);
        are = waiting;
        mtx_unlock(&mutex);
        sleep_ms(1);
    }
}

static int woken_now(void)
{
    mtx_lock(&mutex);
    int now = woken;
    mtx_unlock(&mutex);
    return now;
}

static void clean(void *unused)
{
    (void)unused;
    /* The mutex is locked again before cleanup handlers run. */
    GIVES(thrd_success, mtx_unlock(&mutex));
}

static void *wait_until_cancelled(void *unused)
{
    mtx_lock(&mutex);
    waiting++;
    pthread_cleanup_push(clean, NULL);
    for (;;)
        cnd_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
    return unused;
}

int main(void)
{
    GIVES(thrd_success, mtx_init(&mutex, mtx_plain));
    memset(&condition, 0xa5, sizeof condition);
    GIVES(thrd_success, cnd_init(&condition));
    GIVES(thrd_success, cnd_signal(&condition));
    GIVES(thrd_success, cnd_broadcast(&condition));

    thrd_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        thrd_create(&threads[i], take_a_ticket, NULL);
    until_all_wait(THREADS);
    GIVES(0, woken);
    mtx_lock(&mutex);
    tickets = 1;
    GIVES(thrd_success, cnd_signal(&condition));
    mtx_unlock(&mutex);
    while (woken_now() < 1)
        sleep_ms(1);
    mtx_lock(&mutex);
    tickets = THREADS - 1;
    mtx_unlock(&mutex);
    GIVES(0, pthread_cond_broadcast((pthread_cond_t *)&condition));
    for (int i = 0; i < THREADS; i++)
        thrd_join(threads[i], NULL);
    GIVES(THREADS, woken);
    GIVES(0, tickets);

    mtx_lock(&mutex);
    struct timespec soon = in_ms(CLOCK_REALTIME, 5);
    GIVES(thrd_timedout, cnd_timedwait(&condition, &mutex, &soon));
    GIVES(true, has_come(CLOCK_REALTIME, soon));
    GIVES(thrd_timedout, cnd_timedwait(&condition, &mutex, &past));
    GIVES(thrd_error, cnd_timedwait(&condition, &mutex, &too_many_ns));
    GIVES(thrd_busy, mtx_trylock(&mutex));
    GIVES(thrd_success, mtx_unlock(&mutex));

    waiting = 0;
    pthread_t thread = start(wait_until_cancelled, NULL);
    until_all_wait(1);
    GIVES(0, pthread_cancel(thread));
    void *result;
    GIVES(0, pthread_join(thread, &result));
    GIVES(PTHREAD_CANCELED, result);
    GIVES(thrd_success, mtx_trylock(&mutex));
    GIVES(thrd_success, mtx_unlock(&mutex));
    cnd_destroy(&condition);
    mtx_destroy(&mutex);
    return report("c11_cond");
}
