// Overrides one function of the library with a defective one. A macro selects the defect.

#include <errno.h>
#include <unistd.h>
#include <waitword.h>

#if defined WRITES_BEHIND || defined WRITES_BEFORE
int ww_rwlock_tryrdlock(ww_rwlock_t *rwlock)
{
#ifdef WRITES_BEHIND
    ((volatile char *)rwlock)[sizeof *rwlock] = 1;
#else
    ((volatile char *)rwlock)[-1] = 1;
#endif
    return EBUSY;
}
#endif

#ifdef WRITES_REFUSED
int ww_rwlock_clockrdlock(ww_rwlock_t *rwlock, int clock, const struct timespec *deadline)
{
    (void)clock;
    (void)deadline;
    *(volatile char *)rwlock ^= 1;
    return EINVAL;
}
#endif

#ifdef HANGS
int ww_sem_trywait(ww_sem_t *sem)
{
    (void)sem;
    for (;;)
        pause();
}
#endif

#if defined ANSWERS || defined ANSWERS_ODDLY
int ww_mutex_trylock(ww_mutex_t *mutex)
{
    (void)mutex;
#ifdef ANSWERS
    return 0;
#else
    return 4711;
#endif
}
#endif
