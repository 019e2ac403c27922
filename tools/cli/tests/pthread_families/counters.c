/* Counters at their limits: levels of recursion, beyond those that the library's own mutex
 * counts and up to the drop-in's limit; a semaphore's value. */
#include "served.h"
#include <limits.h>
#include <semaphore.h>

static pthread_mutex_t mutex;
static volatile int waits, has_it;

static void *wants_it(void *unused)
{
    GIVES(EBUSY, pthread_mutex_trylock(&mutex));
    GIVES(EPERM, pthread_mutex_unlock(&mutex));
    set(&waits);
    pthread_mutex_lock(&mutex);
    set(&has_it);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Locks and unlocks the mutex `levels` times, with a waiter. The waiter gets the mutex after the
 * last unlock, and not before. */
static void levels(int type, int protocol, int levels)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    ANSWERS(0, pthread_mutex_init(&mutex, &attributes));
    waits = has_it = 0;
    int locked = 0, unlocked = 0;
    for (int i = 0; i < levels; i++)
        locked += pthread_mutex_lock(&mutex) == 0;
    GIVES(levels, locked);
    pthread_t waiter = start(wants_it, NULL);
    GIVES(1, comes(&waits));
    for (int i = 0; i < levels - 1; i++)
        unlocked += pthread_mutex_unlock(&mutex) == 0;
    GIVES(levels - 1, unlocked);
    sleep_ms(5);
    GIVES(0, has_it);
    ANSWERS(0, pthread_mutex_unlock(&mutex));
    GIVES(1, comes(&has_it));
    join(waiter);
    ANSWERS(EPERM, pthread_mutex_unlock(&mutex));
    ANSWERS(0, pthread_mutex_destroy(&mutex));
}

/* The drop-in counts the levels above 65,536 in the object's sixth word. The count must stop at the
 * word's maximum. */
static void last_level(void)
{
    enum { COUNTED_BY_THE_LIBRARY = 65536, MORE_LEVELS = 5 };
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    ANSWERS(0, pthread_mutex_init(&mutex, &attributes));
    for (int i = 0; i < COUNTED_BY_THE_LIBRARY + 1; i++)
        pthread_mutex_lock(&mutex);
    unsigned *more_levels = (unsigned *)&mutex + MORE_LEVELS;
    GIVES(1u, *more_levels);
    *more_levels = UINT_MAX - 1;
    ANSWERS(0, pthread_mutex_lock(&mutex));
    ANSWERS(EAGAIN, pthread_mutex_lock(&mutex));
    ANSWERS(EAGAIN, pthread_mutex_trylock(&mutex));
    GIVES(UINT_MAX, *more_levels);
    ANSWERS(0, pthread_mutex_unlock(&mutex));
    *more_levels = 1;
    int unlocked = 0;
    for (int i = 0; i < COUNTED_BY_THE_LIBRARY + 1; i++)
        unlocked += pthread_mutex_unlock(&mutex) == 0;
    GIVES(COUNTED_BY_THE_LIBRARY + 1, unlocked);
    ANSWERS(EPERM, pthread_mutex_unlock(&mutex));
    ANSWERS(0, pthread_mutex_destroy(&mutex));
}

/* POSIX: EOVERFLOW, and the value is unchanged, if it would rise above SEM_VALUE_MAX. */
static void highest_value(void)
{
    sem_t semaphore;
    GIVES(0, sem_init(&semaphore, 0, SEM_VALUE_MAX));
    for (int i = 0; i < 3; i++)
        FAILS(EOVERFLOW, sem_post(&semaphore));
    int value;
    GIVES(0, sem_getvalue(&semaphore, &value));
    GIVES(SEM_VALUE_MAX, value);
    GIVES(0, sem_wait(&semaphore));
    GIVES(0, sem_post(&semaphore));
    FAILS(EOVERFLOW, sem_post(&semaphore));
    GIVES(0, sem_destroy(&semaphore));
}

int main(void)
{
    enum { MANY = 70000 };
    levels(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, MANY);
    levels(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT, MANY);
    highest_value();
    if (ours())
        last_level();
    return report("counters");
}
