/* Locks are destroyed while a thread reads, and initialised again at the same address, again and
 * again. Forgotten readers must not keep writers out. Readers overlap on two CPUs, so that the
 * locks become biased, and readers hold them through slots outside of the lock. */
#include "served.h"

static pthread_rwlock_t lock;
static volatile int enough;
static pthread_barrier_t rounds;

static void *read_much(void *forgets)
{
    for (;;) {
        pthread_barrier_wait(&rounds);
        if (enough)
            return NULL;
        for (int i = 0; i < 3000; i++) {
            pthread_rwlock_rdlock(&lock);
            pthread_rwlock_unlock(&lock);
        }
        pthread_rwlock_rdlock(&lock);
        if (!forgets)
            pthread_rwlock_unlock(&lock);
        pthread_barrier_wait(&rounds);
    }
}

int main(void)
{
    pthread_barrier_init(&rounds, NULL, 4);
    static int forgets;
    pthread_t readers[] = {start(read_much, NULL), start(read_much, &forgets),
                           start(read_much, NULL)};
    for (int round = 0; round < 300; round++) {
        GIVES(0, pthread_rwlock_init(&lock, NULL));
        pthread_barrier_wait(&rounds);
        pthread_barrier_wait(&rounds);
        GIVES(EBUSY, pthread_rwlock_trywrlock(&lock));
        GIVES(0, pthread_rwlock_destroy(&lock));
        GIVES(0, pthread_rwlock_init(&lock, NULL));
        struct timespec later = never(CLOCK_REALTIME);
        GIVES(0, pthread_rwlock_timedwrlock(&lock, &later));
        GIVES(0, pthread_rwlock_unlock(&lock));
    }
    enough = 1;
    pthread_barrier_wait(&rounds);
    for (int i = 0; i < 3; i++)
        join(readers[i]);
    return report("rwlock_reuse");
}
