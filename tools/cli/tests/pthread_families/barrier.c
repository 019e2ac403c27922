/* pthread_barrier_*: answers, rounds, one serial thread per round, and memory that is freed as
 * soon as one thread has left. */
#include "served.h"
#include <limits.h>

enum { THREADS = 5, ROUNDS = 2000 };

static pthread_barrier_t *barrier;
static volatile int arrived, serial;
static int disorder;

static void *rounds(void *unused)
{
    for (int i = 1; i <= ROUNDS; i++) {
        __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
        int answer = pthread_barrier_wait(barrier);
        if (answer != 0 && answer != PTHREAD_BARRIER_SERIAL_THREAD)
            disorder = 1;
        if (answer != 0)
            serial++; /* by one thread per round; the next wait orders it */
        if (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < i * THREADS)
            disorder = 2;
        pthread_barrier_wait(barrier);
    }
    return unused;
}

static void all_rounds(void)
{
    pthread_t threads[THREADS];
    arrived = serial = 0;
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(rounds, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    GIVES(0, disorder);
    GIVES(ROUNDS, serial);
}

static void *wait_and_unmap(void *argument)
{
    pthread_barrier_t *own = argument;
    if (pthread_barrier_wait(own) == PTHREAD_BARRIER_SERIAL_THREAD) {
        GIVES(0, pthread_barrier_destroy(own));
        munmap(own, 4096);
    }
    return NULL;
}

static volatile int is_waiting;

static void *wait_once(void *unused)
{
    set(&is_waiting);
    pthread_barrier_wait(barrier);
    return unused;
}

static void answers(void)
{
    pthread_barrier_t made;
    memset(&made, 0xa5, sizeof made);
    ANSWERS(EINVAL, pthread_barrier_init(&made, NULL, 0));
    ANSWERS(EINVAL, pthread_barrier_init(&made, NULL, UINT_MAX));
    ANSWERS(EINVAL, pthread_barrier_init(&made, NULL, UINT_MAX / 2));
    ANSWERS(0, pthread_barrier_init(&made, NULL, UINT_MAX / 2 - 1));
    ANSWERS(0, pthread_barrier_destroy(&made));
    ANSWERS(0, pthread_barrier_init(&made, NULL, 1));
    for (int i = 0; i < 100; i++)
        ANSWERS(PTHREAD_BARRIER_SERIAL_THREAD, pthread_barrier_wait(&made));
    ANSWERS(0, pthread_barrier_destroy(&made));
    if (ours()) {
        /* glibc divides by the count, or waits. */
        memset(&made, 0, sizeof made);
        ANSWERS(EINVAL, pthread_barrier_wait(&made));
        ANSWERS(EINVAL, pthread_barrier_destroy(&made));
        barrier = &made;
        ANSWERS(0, pthread_barrier_init(&made, NULL, 2));
        pthread_t other = start(wait_once, NULL);
        comes(&is_waiting);
        int answer = 0;
        for (int i = 0; i < 10000 && answer == 0; i++) {
            answer = pthread_barrier_destroy(&made);
            sleep_ms(1);
        }
        GIVES(EBUSY, answer);
        pthread_barrier_wait(&made);
        join(other);
        ANSWERS(0, pthread_barrier_destroy(&made));
    }
}

static void shared_by_processes(void)
{
    pthread_barrier_t *shared = shared_memory(sizeof *shared);
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ANSWERS(0, pthread_barrier_init(shared, &attributes, 2));
    pid_t child = fork_child();
    int serial_here = 0;
    for (int i = 0; i < 100; i++)
        serial_here += pthread_barrier_wait(shared) != 0;
    GIVES(true, serial_here <= 100);
    if (child == 0)
        end_of_child();
    wait_for_child(child);
    ANSWERS(0, pthread_barrier_destroy(shared));
}

int main(void)
{
    answers();
    barrier = malloc(sizeof *barrier);
    ANSWERS(0, pthread_barrier_init(barrier, NULL, THREADS));
    all_rounds();
    ANSWERS(0, pthread_barrier_destroy(barrier));
    free(barrier);
    for (int i = 0; i < 200; i++) {
        pthread_barrier_t *own = shared_memory(4096);
        GIVES(0, pthread_barrier_init(own, NULL, 3));
        pthread_t threads[3];
        for (int t = 0; t < 3; t++)
            threads[t] = start(wait_and_unmap, own);
        for (int t = 0; t < 3; t++)
            join(threads[t]);
    }
    shared_by_processes();
    return report("barrier");
}
