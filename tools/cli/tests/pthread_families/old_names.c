/* Names and versions that only programs linked long ago use. */
#include "served.h"
#include <dlfcn.h>

#define OLD(result, name, version, ...)    \
    extern result old_##name(__VA_ARGS__); \
    __asm__(".symver old_" #name ", " #name "@" version)

#if defined __x86_64__
#define FIRST "GLIBC_2.2.5"
OLD(int, __pthread_mutex_init, FIRST, pthread_mutex_t *, const pthread_mutexattr_t *);
OLD(int, __pthread_mutex_destroy, FIRST, pthread_mutex_t *);
OLD(int, __pthread_mutex_lock, FIRST, pthread_mutex_t *);
OLD(int, __pthread_mutex_trylock, FIRST, pthread_mutex_t *);
OLD(int, __pthread_mutex_unlock, FIRST, pthread_mutex_t *);
OLD(int, __pthread_mutexattr_init, FIRST, pthread_mutexattr_t *);
OLD(int, __pthread_mutexattr_settype, FIRST, pthread_mutexattr_t *, int);
OLD(int, __pthread_mutexattr_destroy, FIRST, pthread_mutexattr_t *);
OLD(int, __pthread_rwlock_init, FIRST, pthread_rwlock_t *, const pthread_rwlockattr_t *);
OLD(int, __pthread_rwlock_destroy, FIRST, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_rdlock, FIRST, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_tryrdlock, FIRST, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_wrlock, FIRST, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_trywrlock, FIRST, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_unlock, FIRST, pthread_rwlock_t *);
OLD(int, __pthread_once, FIRST, pthread_once_t *, void (*)(void));
OLD(int, pthread_mutex_consistent_np, "GLIBC_2.4", pthread_mutex_t *);
OLD(int, pthread_mutexattr_setrobust_np, "GLIBC_2.4", pthread_mutexattr_t *, int);
OLD(int, pthread_mutexattr_setkind_np, FIRST, pthread_mutexattr_t *, int);
OLD(int, pthread_mutex_trylock, FIRST, pthread_mutex_t *);
OLD(int, pthread_rwlock_wrlock, FIRST, pthread_rwlock_t *);
OLD(int, pthread_rwlock_clockrdlock, "GLIBC_2.30", pthread_rwlock_t *, clockid_t,
    const struct timespec *);
OLD(int, pthread_once, FIRST, pthread_once_t *, void (*)(void));
OLD(int, pthread_barrier_wait, FIRST, pthread_barrier_t *);
OLD(int, pthread_spin_lock, FIRST, pthread_spinlock_t *);
OLD(int, mtx_lock, "GLIBC_2.28", void *);
OLD(void, call_once, "GLIBC_2.28", void *, void (*)(void));

/* Checks which library the code at this address belongs to. */
static void is_served(const char *name, void *address)
{
    Dl_info info;
    GIVES(true, dladdr(address, &info) != 0);
    bool of_waitword = strstr(info.dli_fname, "waitword_pthread") != NULL;
    if (of_waitword == alone())
        printf("%s is from %s\n", name, info.dli_fname);
    GIVES(!alone(), of_waitword);
}

#define IS_SERVED(name) is_served(#name, (void *)old_##name)

static int runs;

static void run(void)
{
    runs++;
}

static void *take_and_end(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

int main(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    GIVES(0, old___pthread_mutex_lock(&mutex));
    GIVES(EBUSY, pthread_mutex_trylock(&mutex));
    GIVES(EBUSY, old_pthread_mutex_trylock(&mutex));
    GIVES(0, pthread_mutex_unlock(&mutex));
    GIVES(0, pthread_mutex_lock(&mutex));
    GIVES(EBUSY, old___pthread_mutex_trylock(&mutex));
    GIVES(0, old___pthread_mutex_unlock(&mutex));
    GIVES(0, old___pthread_mutex_destroy(&mutex));

    pthread_mutexattr_t attributes;
    GIVES(0, old___pthread_mutexattr_init(&attributes));
    GIVES(0, old___pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE));
    GIVES(0, old___pthread_mutex_init(&mutex, &attributes));
    GIVES(0, pthread_mutex_lock(&mutex));
    GIVES(0, old___pthread_mutex_lock(&mutex));
    GIVES(0, old___pthread_mutex_unlock(&mutex));
    GIVES(0, pthread_mutex_unlock(&mutex));
    GIVES(EINVAL, old_pthread_mutex_consistent_np(&mutex));
    GIVES(0, old_pthread_mutexattr_setkind_np(&attributes, PTHREAD_MUTEX_ERRORCHECK));
    GIVES(0, old_pthread_mutexattr_setrobust_np(&attributes, PTHREAD_MUTEX_ROBUST));
    GIVES(0, pthread_mutex_destroy(&mutex));
    GIVES(0, pthread_mutex_init(&mutex, &attributes));
    GIVES(0, old___pthread_mutexattr_destroy(&attributes));
    elsewhere(take_and_end, &mutex);
    GIVES(EOWNERDEAD, pthread_mutex_lock(&mutex));
    GIVES(0, old_pthread_mutex_consistent_np(&mutex));
    GIVES(0, pthread_mutex_unlock(&mutex));
    GIVES(0, pthread_mutex_destroy(&mutex));

    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    GIVES(0, old___pthread_rwlock_rdlock(&lock));
    GIVES(EBUSY, pthread_rwlock_trywrlock(&lock));
    GIVES(0, old___pthread_rwlock_tryrdlock(&lock));
    GIVES(0, pthread_rwlock_unlock(&lock));
    GIVES(0, old___pthread_rwlock_unlock(&lock));
    GIVES(0, pthread_rwlock_wrlock(&lock));
    GIVES(EDEADLK, old___pthread_rwlock_wrlock(&lock));
    GIVES(EBUSY, old___pthread_rwlock_trywrlock(&lock));
    GIVES(0, old___pthread_rwlock_unlock(&lock));
    GIVES(0, old___pthread_rwlock_destroy(&lock));
    GIVES(0, old___pthread_rwlock_init(&lock, NULL));
    GIVES(0, old_pthread_rwlock_wrlock(&lock));
    GIVES(EDEADLK, old_pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &past));
    GIVES(0, pthread_rwlock_unlock(&lock));

    static pthread_once_t once;
    GIVES(0, old___pthread_once(&once, run));
    GIVES(0, pthread_once(&once, run));
    GIVES(1, runs);

    IS_SERVED(__pthread_mutex_lock);
    IS_SERVED(__pthread_mutex_init);
    IS_SERVED(__pthread_rwlock_rdlock);
    IS_SERVED(__pthread_rwlock_unlock);
    IS_SERVED(__pthread_once);
    IS_SERVED(pthread_mutex_trylock);
    IS_SERVED(pthread_rwlock_wrlock);
    IS_SERVED(pthread_rwlock_clockrdlock);
    IS_SERVED(pthread_once);
    IS_SERVED(pthread_barrier_wait);
    IS_SERVED(pthread_spin_lock);
    IS_SERVED(mtx_lock);
    IS_SERVED(call_once);
    return report("old_names");
}
#else
int main(void)
{
    printf("old_names: other versions on this machine\n");
    return 0;
}
#endif
