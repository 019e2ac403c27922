/* Many threads take one rwlock in every way: writers are alone, readers see complete writes, no
 * write is lost. All threads first use a lock at the same time, so that a race decides whether
 * the lock becomes the drop-in's. */
#include "served.h"

enum { THREADS = 8, ROUNDS = 3000 };

static struct {
    pthread_rwlock_t lock;
    volatile unsigned long a, b;
} *shared;

static pthread_barrier_t begin;
static unsigned long writes;
static int disorder;

static int take_for_reading(unsigned way)
{
    struct timespec soon;
    switch (way % 4) {
    case 0:
        return pthread_rwlock_tryrdlock(&shared->lock);
    case 1:
        soon = in_ms(CLOCK_REALTIME, way % 3);
        return pthread_rwlock_timedrdlock(&shared->lock, &soon);
    case 2:
        soon = in_ms(CLOCK_MONOTONIC, way % 3);
        return pthread_rwlock_clockrdlock(&shared->lock, CLOCK_MONOTONIC, &soon);
    default:
        return pthread_rwlock_rdlock(&shared->lock);
    }
}

static int take_for_writing(unsigned way)
{
    struct timespec soon;
    switch (way % 4) {
    case 0:
        return pthread_rwlock_trywrlock(&shared->lock);
    case 1:
        soon = in_ms(CLOCK_REALTIME, way % 3);
        return pthread_rwlock_timedwrlock(&shared->lock, &soon);
    case 2:
        soon = in_ms(CLOCK_MONOTONIC, way % 3);
        return pthread_rwlock_clockwrlock(&shared->lock, CLOCK_MONOTONIC, &soon);
    default:
        return pthread_rwlock_wrlock(&shared->lock);
    }
}

static void *work(void *number)
{
    unsigned random = 1 + (unsigned)(long)number;
    unsigned long written = 0;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        unsigned way = random >> 16;
        bool writes_now = way % 5 == 0;
        int answer = writes_now ? take_for_writing(way / 5) : take_for_reading(way / 5);
        if (answer == EBUSY || answer == ETIMEDOUT)
            continue;
        if (answer != 0 || shared->a != shared->b)
            __atomic_store_n(&disorder, 1, __ATOMIC_RELAXED);
        if (writes_now) {
            shared->a++;
            if (way % 64 == 0)
                sched_yield();
            shared->b++;
            written++;
        }
        if (pthread_rwlock_unlock(&shared->lock) != 0)
            __atomic_store_n(&disorder, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&writes, written, __ATOMIC_RELAXED);
    return NULL;
}

static void many(void)
{
    pthread_t threads[THREADS];
    writes = 0;
    pthread_barrier_init(&begin, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    GIVES(0, disorder);
    GIVES(writes, shared->a);
    GIVES(writes, shared->b);
    GIVES(0, pthread_rwlock_trywrlock(&shared->lock));
    GIVES(0, pthread_rwlock_unlock(&shared->lock));
    GIVES(0, pthread_rwlock_destroy(&shared->lock));
    pthread_barrier_destroy(&begin);
}

int main(void)
{
    for (int round = 0; round < 10; round++) {
        /* Static initialisers: all zeros, and zeros with a kind. */
        shared = calloc(1, sizeof *shared);
        if (round % 2)
            shared->lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
        many();
        free(shared);
    }
    return report("rwlock_many");
}
