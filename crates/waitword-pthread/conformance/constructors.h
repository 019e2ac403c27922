/* Every function that the drop-in exports, as the first one that a thread calls:
 * `constructors.c` makes its cases of this list, and `constructors_plugin.c` runs them.
 *
 *     OPERATION(function, kind of object, the first thread's code, the second thread's code)
 *
 * The kinds and their variants are in `constructors.c`.
 */
#define ALONE(function, kind, body) OPERATION(function, kind, body, {})
#define BOTH(function, kind, body) OPERATION(function, kind, body, body)

/* The second thread waits, in one call or in several, until the first one releases the object. */
#define CONTENDED(function, kind, hold, lock, unlock) \
    OPERATION(                                        \
        function, kind,                               \
        {                                             \
            UNTIL_HAD(hold);                          \
            SET(stage, 1);                            \
            pause_ms(10);                             \
            MUST(unlock);                             \
        },                                            \
        {                                             \
            UNTIL(GET(stage) == 1);                   \
            UNTIL_HAD(lock);                          \
            MUST(unlock);                             \
        })

/* The first thread waits on a condition variable for the second one. */
#define SIGNALLED(function, kind, wait, signal)       \
    OPERATION(                                        \
        function, kind,                               \
        {                                             \
            MUST(pthread_mutex_lock(&mutex));         \
            SET(stage, 1);                            \
            while (!done) wait;                       \
            MUST(pthread_mutex_unlock(&mutex));       \
        },                                            \
        {                                             \
            UNTIL(GET(stage) == 1);                   \
            pause_ms(10);                             \
            MUST(pthread_mutex_lock(&mutex));         \
            done = 1;                                 \
            MUST(signal);                             \
            MUST(pthread_mutex_unlock(&mutex));       \
        })

ALONE(pthread_mutex_init, NEW_MUTEX, { MUST(pthread_mutex_init(&mutex, &mutex_kind)); })
ALONE(pthread_mutex_destroy, MUTEX, { MUST(pthread_mutex_destroy(&mutex)); })
#define MUTEX_CONTENDED(function, lock) \
    CONTENDED(function, MUTEX, pthread_mutex_lock(&mutex), lock, pthread_mutex_unlock(&mutex))
MUTEX_CONTENDED(pthread_mutex_lock, pthread_mutex_lock(&mutex))
MUTEX_CONTENDED(pthread_mutex_trylock, pthread_mutex_trylock(&mutex))
MUTEX_CONTENDED(pthread_mutex_timedlock, pthread_mutex_timedlock(&mutex, soon(CLOCK_REALTIME)))
MUTEX_CONTENDED(pthread_mutex_clocklock,
                pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
ALONE(pthread_mutex_unlock, LOCKED_MUTEX, {
    MUST(pthread_mutex_lock(&mutex));
    MUST(pthread_mutex_unlock(&mutex));
})

ALONE(pthread_cond_init, NEW_COND, { MUST(pthread_cond_init(&cond, &cond_kind)); })
ALONE(pthread_cond_destroy, COND, { MUST(pthread_cond_destroy(&cond)); })
SIGNALLED(pthread_cond_wait, COND, pthread_cond_wait(&cond, &mutex), pthread_cond_signal(&cond))
SIGNALLED(pthread_cond_timedwait, COND, pthread_cond_timedwait(&cond, &mutex, soon(CLOCK_REALTIME)),
          pthread_cond_broadcast(&cond))
SIGNALLED(pthread_cond_clockwait, COND,
          pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)),
          pthread_cond_signal(&cond))
ALONE(pthread_cond_signal, COND, { MUST(pthread_cond_signal(&cond)); })
ALONE(pthread_cond_broadcast, COND, { MUST(pthread_cond_broadcast(&cond)); })

ALONE(pthread_rwlock_init, NEW_RWLOCK, { MUST(pthread_rwlock_init(&rwlock, &rwlock_kind)); })
ALONE(pthread_rwlock_destroy, RWLOCK, { MUST(pthread_rwlock_destroy(&rwlock)); })
#define WRITE_CONTENDED(function, lock)                               \
    CONTENDED(function, RWLOCK, pthread_rwlock_wrlock(&rwlock), lock, \
              pthread_rwlock_unlock(&rwlock))
WRITE_CONTENDED(pthread_rwlock_rdlock, pthread_rwlock_rdlock(&rwlock))
WRITE_CONTENDED(pthread_rwlock_wrlock, pthread_rwlock_wrlock(&rwlock))
WRITE_CONTENDED(pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock(&rwlock))
WRITE_CONTENDED(pthread_rwlock_trywrlock, pthread_rwlock_trywrlock(&rwlock))
WRITE_CONTENDED(pthread_rwlock_timedrdlock,
                pthread_rwlock_timedrdlock(&rwlock, soon(CLOCK_REALTIME)))
WRITE_CONTENDED(pthread_rwlock_timedwrlock,
                pthread_rwlock_timedwrlock(&rwlock, soon(CLOCK_REALTIME)))
WRITE_CONTENDED(pthread_rwlock_clockrdlock,
                pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
WRITE_CONTENDED(pthread_rwlock_clockwrlock,
                pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
ALONE(pthread_rwlock_unlock, LOCKED_RWLOCK, {
    MUST(pthread_rwlock_wrlock(&rwlock));
    MUST(pthread_rwlock_unlock(&rwlock));
})

ALONE(sem_init, NEW_SEM, { MUST(sem_init(&sem, is_shared, 1)); })
ALONE(sem_destroy, SEM, { MUST(sem_destroy(&sem)); })
ALONE(sem_post, SEM, { MUST(sem_post(&sem)); })
ALONE(sem_getvalue, SEM, { MUST(sem_getvalue(&sem, &done)); })
#define SEM_CONTENDED(function, wait) CONTENDED(function, SEM, sem_wait(&sem), wait, sem_post(&sem))
SEM_CONTENDED(sem_wait, sem_wait(&sem))
SEM_CONTENDED(sem_trywait, sem_trywait(&sem))
SEM_CONTENDED(sem_timedwait, sem_timedwait(&sem, soon(CLOCK_REALTIME)))
SEM_CONTENDED(sem_clockwait, sem_clockwait(&sem, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))

ALONE(pthread_barrier_init, NEW_BARRIER,
      { MUST(pthread_barrier_init(&barrier, &barrier_kind, 2)); })
ALONE(pthread_barrier_destroy, BARRIER, { MUST(pthread_barrier_destroy(&barrier)); })
BOTH(pthread_barrier_wait, BARRIER, { pthread_barrier_wait(&barrier); })

ALONE(pthread_spin_init, NEW_SPIN, { MUST(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE)); })
ALONE(pthread_spin_destroy, SPIN, { MUST(pthread_spin_destroy(&spin)); })
ALONE(pthread_spin_unlock, LOCKED_SPIN, { MUST(pthread_spin_unlock(&spin)); })
CONTENDED(pthread_spin_lock, SPIN, pthread_spin_lock(&spin), pthread_spin_lock(&spin),
          pthread_spin_unlock(&spin))
CONTENDED(pthread_spin_trylock, SPIN, pthread_spin_trylock(&spin), pthread_spin_trylock(&spin),
          pthread_spin_unlock(&spin))

BOTH(pthread_once, ONCE, { MUST(pthread_once(&once, routine)); })

OPERATION(
    pthread_cancel, CANCELLED,
    {
        MUST(pthread_mutex_lock(&mutex));
        SET(stage, 1);
        for (;;) pthread_cond_wait(&cond, &mutex);
    },
    {
        UNTIL(GET(stage) == 1);
        pause_ms(10);
        MUST(pthread_cancel(threads[0]));
    })

#define JOINING(function, join)                                          \
    ALONE(function, ONCE, {                                              \
        pthread_t other;                                                 \
        MUST(pthread_create(&other, NULL, end_soon, NULL));              \
        UNTIL_HAD(join);                                                 \
    })
JOINING(pthread_join, pthread_join(other, NULL))
JOINING(pthread_timedjoin_np, pthread_timedjoin_np(other, NULL, soon(CLOCK_REALTIME)))
JOINING(pthread_clockjoin_np,
        pthread_clockjoin_np(other, NULL, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))

ALONE(pthread_setcanceltype, ONCE,
      { MUST(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL)); })

ALONE(mtx_init, NEW_C11, { MUST(mtx_init(&c11_mutex, mtx_timed)); })
ALONE(mtx_destroy, C11, { mtx_destroy(&c11_mutex); })
#define C11_CONTENDED(function, lock) \
    CONTENDED(function, C11, mtx_lock(&c11_mutex), lock, mtx_unlock(&c11_mutex))
C11_CONTENDED(mtx_lock, mtx_lock(&c11_mutex))
C11_CONTENDED(mtx_trylock, mtx_trylock(&c11_mutex))
C11_CONTENDED(mtx_timedlock, mtx_timedlock(&c11_mutex, soon(CLOCK_REALTIME)))
ALONE(mtx_unlock, LOCKED_C11, { MUST(mtx_unlock(&c11_mutex)); })
ALONE(cnd_init, NEW_C11, { MUST(cnd_init(&c11_cond)); })
ALONE(cnd_destroy, C11, { cnd_destroy(&c11_cond); })
ALONE(cnd_signal, C11, { MUST(cnd_signal(&c11_cond)); })
ALONE(cnd_broadcast, C11, { MUST(cnd_broadcast(&c11_cond)); })
#define C11_SIGNALLED(function, wait)                 \
    OPERATION(                                        \
        function, C11,                                \
        {                                             \
            MUST(mtx_lock(&c11_mutex));               \
            SET(stage, 1);                            \
            while (!done) wait;                       \
            MUST(mtx_unlock(&c11_mutex));             \
        },                                            \
        {                                             \
            UNTIL(GET(stage) == 1);                   \
            pause_ms(10);                             \
            MUST(mtx_lock(&c11_mutex));               \
            done = 1;                                 \
            MUST(cnd_signal(&c11_cond));              \
            MUST(mtx_unlock(&c11_mutex));             \
        })
C11_SIGNALLED(cnd_wait, cnd_wait(&c11_cond, &c11_mutex))
C11_SIGNALLED(cnd_timedwait, cnd_timedwait(&c11_cond, &c11_mutex, soon(CLOCK_REALTIME)))
BOTH(call_once, ONCE, { call_once(&c11_once, routine); })

#if defined __x86_64__
OPERATION(
    syscall, FUTEX,
    {
        while (!GET(word)) syscall(SYS_futex, &word, FUTEX_WAIT | futex_kind, 0, NULL);
    },
    {
        pause_ms(10);
        SET(word, 1);
        syscall(SYS_futex, &word, FUTEX_WAKE | futex_kind, 1);
    })

/* These are looked up but not called: the C library itself loads a library there (libgcc_s). */
ALONE(pthread_exit, ONCE, { if (GET(stage) < 0) pthread_exit(NULL); })
ALONE(thrd_exit, ONCE, { if (GET(stage) < 0) thrd_exit(0); })
#define JUMPS(function)                              \
    ALONE(function, ONCE, {                          \
        sigjmp_buf here;                             \
        if (sigsetjmp(here, 1) == 0) function(here, 1); \
    })
JUMPS(longjmp)
JUMPS(_longjmp)
JUMPS(siglongjmp)
JUMPS(__longjmp_chk)
/* Nothing catches it. */
#define RAISES(function)                                                         \
    ALONE(function, ONCE, {                                                      \
        static __thread struct _Unwind_Exception exception;                      \
        MUST(function(&exception) != _URC_END_OF_STACK);                         \
    })
RAISES(_Unwind_RaiseException)
RAISES(_Unwind_Resume_or_Rethrow)

ALONE(__pthread_mutex_init, NEW_MUTEX, { MUST(__pthread_mutex_init(&mutex, &mutex_kind)); })
ALONE(__pthread_mutex_destroy, MUTEX, { MUST(__pthread_mutex_destroy(&mutex)); })
MUTEX_CONTENDED(__pthread_mutex_lock, __pthread_mutex_lock(&mutex))
MUTEX_CONTENDED(__pthread_mutex_trylock, __pthread_mutex_trylock(&mutex))
ALONE(__pthread_mutex_unlock, LOCKED_MUTEX, {
    MUST(pthread_mutex_lock(&mutex));
    MUST(__pthread_mutex_unlock(&mutex));
})
ALONE(__pthread_rwlock_init, NEW_RWLOCK, { MUST(__pthread_rwlock_init(&rwlock, &rwlock_kind)); })
ALONE(__pthread_rwlock_destroy, RWLOCK, { MUST(__pthread_rwlock_destroy(&rwlock)); })
WRITE_CONTENDED(__pthread_rwlock_rdlock, __pthread_rwlock_rdlock(&rwlock))
WRITE_CONTENDED(__pthread_rwlock_wrlock, __pthread_rwlock_wrlock(&rwlock))
WRITE_CONTENDED(__pthread_rwlock_tryrdlock, __pthread_rwlock_tryrdlock(&rwlock))
WRITE_CONTENDED(__pthread_rwlock_trywrlock, __pthread_rwlock_trywrlock(&rwlock))
ALONE(__pthread_rwlock_unlock, LOCKED_RWLOCK, {
    MUST(pthread_rwlock_wrlock(&rwlock));
    MUST(__pthread_rwlock_unlock(&rwlock));
})
BOTH(__pthread_once, ONCE, { MUST(__pthread_once(&once, routine)); })
#endif
