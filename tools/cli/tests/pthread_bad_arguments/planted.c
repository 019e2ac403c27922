// Preloaded in front of the drop-in. It adds one defect, which a macro selects.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#if defined WRITES_BEHIND || defined WRITES_BEFORE
int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    int answer = REAL(pthread_rwlock_tryrdlock)(lock);
#ifdef WRITES_BEHIND
    ((volatile char *)lock)[sizeof *lock] = 1;
#else
    ((volatile char *)lock)[-1] = 1;
#endif
    return answer;
}
#endif

#ifdef WRITES_ATTRIBUTES
int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    int answer = REAL(pthread_mutex_init)(mutex, attributes);
    if (attributes)
        *(volatile int *)attributes ^= 1;
    return answer;
}
#endif

#ifdef HANGS
int sem_trywait(sem_t *semaphore)
{
    (void)semaphore;
    for (;;)
        pause();
}
#endif

#ifdef ANSWERS
int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    REAL(pthread_spin_trylock)(lock);
    return 0;
}
#endif

#ifdef DIES
int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes,
                         unsigned count)
{
    if (count == 0)
        *(volatile int *)(long)count = 1;
    return REAL(pthread_barrier_init)(barrier, attributes, count);
}
#endif

#ifdef EXPORTS
int pthread_unheard_of(void)
{
    return 0;
}
#endif
