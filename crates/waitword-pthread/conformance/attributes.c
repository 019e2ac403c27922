/* Attribute objects, and the behaviour of objects made with them. Sources: POSIX,
 * pthread_mutexattr_settype(3p), pthread_mutexattr_setprotocol(3p),
 * pthread_mutexattr_setpshared(3p), pthread_condattr_setclock(3p),
 * pthread_rwlockattr_setkind_np(3). */
#include "objects.h"

CASE(of_mutexes) {
    pthread_mutexattr_t attributes;
    int value;
    OK(pthread_mutexattr_init(&attributes));
    OK(pthread_mutexattr_gettype(&attributes, &value));
    EQ(value, PTHREAD_MUTEX_DEFAULT);
    OK(pthread_mutexattr_getpshared(&attributes, &value));
    EQ(value, PTHREAD_PROCESS_PRIVATE);
    OK(pthread_mutexattr_getprotocol(&attributes, &value));
    EQ(value, PTHREAD_PRIO_NONE);
    OK(pthread_mutexattr_getrobust(&attributes, &value));
    EQ(value, PTHREAD_MUTEX_STALLED);
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    for (int each = 0; each < 4; each++) {
        OK(pthread_mutexattr_settype(&attributes, types[each]));
        OK(pthread_mutexattr_gettype(&attributes, &value));
        EQ(value, types[each]);
    }
    EQ(pthread_mutexattr_settype(&attributes, 99), EINVAL);
    EQ(pthread_mutexattr_setpshared(&attributes, 2), EINVAL);
    EQ(pthread_mutexattr_setprotocol(&attributes, -1), EINVAL);
    OK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutexattr_getpshared(&attributes, &value));
    EQ(value, PTHREAD_PROCESS_SHARED);
    OK(pthread_mutexattr_destroy(&attributes));
}

CASE(of_others) {
    pthread_condattr_t cond;
    pthread_rwlockattr_t rwlock;
    pthread_barrierattr_t barrier;
    clockid_t clock;
    int value;
    OK(pthread_condattr_init(&cond));
    OK(pthread_condattr_getclock(&cond, &clock));
    EQ(clock, CLOCK_REALTIME);
    OK(pthread_condattr_setclock(&cond, CLOCK_MONOTONIC));
    OK(pthread_condattr_getclock(&cond, &clock));
    EQ(clock, CLOCK_MONOTONIC);
    EQ(pthread_condattr_setclock(&cond, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
    EQ(pthread_condattr_setpshared(&cond, 9), EINVAL);
    OK(pthread_condattr_destroy(&cond));
    OK(pthread_rwlockattr_init(&rwlock));
    OK(pthread_rwlockattr_getkind_np(&rwlock, &value));
    EQ(value, PTHREAD_RWLOCK_DEFAULT_NP);
    EQ(pthread_rwlockattr_setkind_np(&rwlock, 9), EINVAL);
    EQ(pthread_rwlockattr_setpshared(&rwlock, 9), EINVAL);
    OK(pthread_rwlockattr_destroy(&rwlock));
    OK(pthread_barrierattr_init(&barrier));
    EQ(pthread_barrierattr_setpshared(&barrier, 9), EINVAL);
    OK(pthread_barrierattr_destroy(&barrier));
}

/* Every kind with every protocol, robustness and sharing: those that exist lock, exclude, know
 * their owner, and can be destroyed. */
CASE(all_kinds_of_mutexes) {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT};
    int may_protect = may_be_real_time();
    if (may_protect) be_real_time(1);
    for (int kind = 0; kind < 4 * 3 * 2 * 2; kind++) {
        int type = types[kind % 4], protocol = protocols[kind / 4 % 3], robust = kind / 12 % 2,
            shared = kind / 24;
        pthread_mutexattr_t attributes;
        pthread_mutex_t mutex;
        struct thread thread;
        OK(pthread_mutexattr_init(&attributes));
        OK(pthread_mutexattr_settype(&attributes, type));
        OK(pthread_mutexattr_setprotocol(&attributes, protocol));
        OK(pthread_mutexattr_setrobust(&attributes, robust));
        OK(pthread_mutexattr_setpshared(&attributes, shared));
        int made = pthread_mutex_init(&mutex, &attributes);
        EQ(made, robust && protocol == PTHREAD_PRIO_PROTECT ? ENOTSUP : 0);
        if (made != 0 || (protocol == PTHREAD_PRIO_PROTECT && !may_protect)) continue;
        for (int turn = 0; turn < 2; turn++) {
            OK(pthread_mutex_lock(&mutex));
            start(&thread, try_it, &mutex);
            EQ(join(&thread), EBUSY);
            if (type == PTHREAD_MUTEX_RECURSIVE) OK(pthread_mutex_trylock(&mutex));
            if (type == PTHREAD_MUTEX_ERRORCHECK) EQ(pthread_mutex_lock(&mutex), EDEADLK);
            if (type == PTHREAD_MUTEX_RECURSIVE) OK(pthread_mutex_unlock(&mutex));
            if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) {
                start(&thread, unlock_it, &mutex);
                EQ(join(&thread), EPERM);
            }
            if (!robust) EQ(pthread_mutex_destroy(&mutex), EBUSY);
            OK(pthread_mutex_unlock(&mutex));
        }
        OK(pthread_mutex_destroy(&mutex));
    }
}

/* Objects in memory that has only the required alignment, and objects that are all zeros without
 * any initialiser. */
CASE(zeros_are_free_ones) {
    struct {
        char byte;
        pthread_mutex_t mutex;
        char another;
        pthread_cond_t cond;
        pthread_rwlock_t rwlock;
        pthread_once_t once;
    } *zeros = (void *)calloc(1, sizeof *zeros);
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    OK(pthread_mutex_lock(&zeros->mutex));
    EQ(pthread_cond_timedwait(&zeros->cond, &zeros->mutex, &soon), ETIMEDOUT);
    OK(pthread_mutex_unlock(&zeros->mutex));
    OK(pthread_rwlock_rdlock(&zeros->rwlock));
    OK(pthread_rwlock_unlock(&zeros->rwlock));
    OK(pthread_rwlock_wrlock(&zeros->rwlock));
    EQ(pthread_rwlock_tryrdlock(&zeros->rwlock), EBUSY);
    OK(pthread_rwlock_unlock(&zeros->rwlock));
    EQ(zeros->byte, 0);
    EQ(zeros->another, 0);
    free(zeros);
}

/* Nothing is written outside the objects. */
CASE(nothing_beside_is_written) {
    struct {
        unsigned char before[16];
        pthread_mutex_t mutex;
        unsigned char one[16];
        pthread_cond_t cond;
        unsigned char two[16];
        pthread_rwlock_t rwlock;
        unsigned char three[16];
        pthread_barrier_t barrier;
        unsigned char four[16];
        sem_t sem;
        unsigned char five[16];
        pthread_spinlock_t spin;
        unsigned char six[4];
        pthread_once_t once;
        unsigned char seven[12];
    } all;
    memset(&all, 0x5a, sizeof all);
    OK(pthread_mutex_init(&all.mutex, NULL));
    OK(pthread_cond_init(&all.cond, NULL));
    OK(pthread_rwlock_init(&all.rwlock, NULL));
    OK(pthread_barrier_init(&all.barrier, NULL, 1));
    OK(sem_init(&all.sem, 0, 1));
    OK(pthread_spin_init(&all.spin, 0));
    struct timespec soon = after_ms(CLOCK_REALTIME, 5);
    OK(pthread_mutex_lock(&all.mutex));
    EQ(pthread_cond_timedwait(&all.cond, &all.mutex, &soon), ETIMEDOUT);
    OK(pthread_mutex_unlock(&all.mutex));
    OK(pthread_rwlock_wrlock(&all.rwlock));
    OK(pthread_rwlock_unlock(&all.rwlock));
    EQ(pthread_barrier_wait(&all.barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    OK(sem_wait(&all.sem));
    OK(pthread_spin_lock(&all.spin));
    OK(pthread_spin_unlock(&all.spin));
    for (int each = 0; each < 16; each++) {
        EQ(all.before[each], 0x5a);
        EQ(all.one[each], 0x5a);
        EQ(all.two[each], 0x5a);
        EQ(all.three[each], 0x5a);
        EQ(all.four[each], 0x5a);
        EQ(all.five[each], 0x5a);
        if (each < 4) EQ(all.six[each], 0x5a);
        if (each < 12) EQ(all.seven[each], 0x5a);
    }
}
