/* The answers of pthread_rwlock_*. */
#include "served.h"

static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

#define TIMED_READ(time) pthread_rwlock_timedrdlock(lock, time)
#define CLOCK_READ(clock, time) pthread_rwlock_clockrdlock(lock, clock, time)
#define TIMED_WRITE(time) pthread_rwlock_timedwrlock(lock, time)
#define CLOCK_WRITE(clock, time) pthread_rwlock_clockwrlock(lock, clock, time)

static void *while_it_is_read(void *argument)
{
    pthread_rwlock_t *lock = argument;
    ANSWERS(EBUSY, pthread_rwlock_trywrlock(lock));
    TIMES_OUT_AT(pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock, lock);
    ANSWERS(0, pthread_rwlock_rdlock(lock));
    ANSWERS(0, pthread_rwlock_unlock(lock));
    return NULL;
}

static void *while_it_is_written(void *argument)
{
    pthread_rwlock_t *lock = argument;
    ANSWERS(EBUSY, pthread_rwlock_trywrlock(lock));
    ANSWERS(EBUSY, pthread_rwlock_tryrdlock(lock));
    TIMES_OUT_AT(pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock, lock);
    TIMES_OUT_AT(pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock, lock);
    return NULL;
}

static void *take_and_leave(void *argument)
{
    return (void *)(long)pthread_rwlock_wrlock(argument);
}

static void *read_and_leave(void *argument)
{
    return (void *)(long)pthread_rwlock_rdlock(argument);
}

static void free_again(pthread_rwlock_t *lock)
{
    ANSWERS(0, pthread_rwlock_trywrlock(lock));
    ANSWERS(0, pthread_rwlock_unlock(lock));
}

static void answers(pthread_rwlock_t *lock)
{
    struct timespec later = never(CLOCK_REALTIME);
    struct timespec later_monotonic = never(CLOCK_MONOTONIC);

    /* Free. An invalid time is refused all the same. A time that has passed does not matter. */
    ANSWERS(EINVAL, TIMED_READ(&too_many_ns));
    ANSWERS(EINVAL, TIMED_WRITE(&negative_ns));
    ANSWERS(EINVAL, CLOCK_READ(CLOCK_PROCESS_CPUTIME_ID, &later));
    ANSWERS(EINVAL, CLOCK_WRITE(-1, &later));
    ANSWERS(0, TIMED_READ(&past));
    ANSWERS(0, pthread_rwlock_unlock(lock));
    ANSWERS(0, TIMED_WRITE(&before_zero));
    ANSWERS(0, pthread_rwlock_unlock(lock));

    /* Read, twice. */
    ANSWERS(0, pthread_rwlock_rdlock(lock));
    ANSWERS(0, CLOCK_READ(CLOCK_MONOTONIC, &later_monotonic));
    elsewhere(while_it_is_read, lock);
    ANSWERS(EBUSY, pthread_rwlock_trywrlock(lock));
    ANSWERS(0, pthread_rwlock_destroy(lock));
    ANSWERS(0, pthread_rwlock_unlock(lock));
    ANSWERS(EBUSY, pthread_rwlock_trywrlock(lock));
    ANSWERS(0, pthread_rwlock_unlock(lock));
    free_again(lock);

    /* Written, each way. */
    for (int way = 0; way < 4; way++) {
        if (way == 0)
            ANSWERS(0, pthread_rwlock_wrlock(lock));
        if (way == 1)
            ANSWERS(0, pthread_rwlock_trywrlock(lock));
        if (way == 2)
            ANSWERS(0, TIMED_WRITE(&later));
        if (way == 3)
            ANSWERS(0, CLOCK_WRITE(CLOCK_MONOTONIC, &later_monotonic));
        ANSWERS(EDEADLK, pthread_rwlock_wrlock(lock));
        ANSWERS(EDEADLK, pthread_rwlock_rdlock(lock));
        ANSWERS(EDEADLK, TIMED_READ(&later));
        ANSWERS(EDEADLK, TIMED_WRITE(&past));
        ANSWERS(EINVAL, TIMED_WRITE(&too_many_ns));
        ANSWERS(EBUSY, pthread_rwlock_trywrlock(lock));
        ANSWERS(EBUSY, pthread_rwlock_tryrdlock(lock));
        elsewhere(while_it_is_written, lock);
        ANSWERS(0, pthread_rwlock_destroy(lock));
        ANSWERS(0, pthread_rwlock_unlock(lock));
        free_again(lock);
    }

    /* Taken by a thread that has ended. (If the writer is not the caller, glibc's unlock takes
     * it for a reader, and the lock is lost.) */
    if (ours()) {
        elsewhere(take_and_leave, lock);
        ANSWERS(EBUSY, pthread_rwlock_tryrdlock(lock));
        ANSWERS(0, pthread_rwlock_unlock(lock));
        free_again(lock);
    }
    elsewhere(read_and_leave, lock);
    ANSWERS(EBUSY, pthread_rwlock_trywrlock(lock));
    ANSWERS(0, pthread_rwlock_unlock(lock));
    free_again(lock);

    if (ours()) {
        /* glibc goes on counting. */
        ANSWERS(EPERM, pthread_rwlock_unlock(lock));
        free_again(lock);
    }

    /* Destroyed, and used all the same. POSIX leaves this undefined; programs do it as they end. */
    ANSWERS(0, pthread_rwlock_destroy(lock));
    free_again(lock);
    ANSWERS(0, pthread_rwlock_destroy(lock));

    /* Initialised again while it was held. */
    ANSWERS(0, pthread_rwlock_wrlock(lock));
    ANSWERS(0, pthread_rwlock_init(lock, NULL));
    free_again(lock);
    ANSWERS(0, pthread_rwlock_rdlock(lock));
    ANSWERS(0, pthread_rwlock_init(lock, NULL));
    free_again(lock);
    ANSWERS(0, pthread_rwlock_destroy(lock));
}

static void too_many_readers(void)
{
    /* The count is the upper half of the first word (the drop-in's own layout). */
    struct {
        unsigned other, readers;
    } *word = (void *)&plain;
    pthread_rwlock_init(&plain, NULL);
    ANSWERS(0, pthread_rwlock_rdlock(&plain));
    GIVES(1, word->readers);
    word->readers = 0x7fffffff;
    ANSWERS(EAGAIN, pthread_rwlock_rdlock(&plain));
    ANSWERS(EAGAIN, pthread_rwlock_tryrdlock(&plain));
    struct timespec later = never(CLOCK_REALTIME);
    ANSWERS(EAGAIN, pthread_rwlock_timedrdlock(&plain, &later));
    word->readers = 1;
    ANSWERS(0, pthread_rwlock_unlock(&plain));
    free_again(&plain);
}

static void shared_by_processes(void)
{
    pthread_rwlock_t *lock = shared_memory(sizeof *lock);
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    ANSWERS(0, pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    ANSWERS(0, pthread_rwlock_init(lock, &attributes));
    ANSWERS(0, pthread_rwlock_wrlock(lock));
    ANSWERS(EDEADLK, pthread_rwlock_wrlock(lock));
    pid_t child = fork_child();
    if (child == 0) {
        ANSWERS(EBUSY, pthread_rwlock_tryrdlock(lock));
        ANSWERS(0, pthread_rwlock_wrlock(lock));
        ANSWERS(0, pthread_rwlock_unlock(lock));
        end_of_child();
    }
    sleep_ms(20);
    ANSWERS(0, pthread_rwlock_unlock(lock));
    wait_for_child(child);
    ANSWERS(0, pthread_rwlock_destroy(lock));
}

int main(void)
{
    answers(&plain);
    answers(&writers_first);
    for (int kind = PTHREAD_RWLOCK_PREFER_READER_NP;
         kind <= PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP; kind++) {
        pthread_rwlockattr_t attributes;
        pthread_rwlockattr_init(&attributes);
        ANSWERS(0, pthread_rwlockattr_setkind_np(&attributes, kind));
        pthread_rwlock_t lock;
        memset(&lock, 0xa5, sizeof lock);
        ANSWERS(0, pthread_rwlock_init(&lock, &attributes));
        answers(&lock);
    }
    if (ours())
        too_many_readers();
    shared_by_processes();
    return report("rwlock_answers");
}
