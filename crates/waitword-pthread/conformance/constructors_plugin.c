/* A library that, while it is loaded, starts two threads that run the operation in
 * CONFORMANCE_OPERATION, and joins them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#define GET(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define SET(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)
#define UNTIL(condition) \
    while (!(condition)) pause_ms(1)

#define MUST(call)                                                              \
    do {                                                                        \
        int must_answer = (call);                                               \
        if (must_answer != 0) {                                                 \
            fprintf(stderr, "%s gave %d, errno %d\n", #call, must_answer, errno); \
            abort();                                                            \
        }                                                                       \
    } while (0)

/* Calls functions that do not wait, or not for long, again until they succeed. */
#define UNTIL_HAD(call)                                                         \
    for (;;) {                                                                  \
        int had_answer = (call);                                                \
        if (had_answer == 0) break;                                             \
        if (!is_not_yet(had_answer)) MUST(had_answer);                          \
        pause_ms(1);                                                            \
    }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutexattr_t mutex_kind;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_condattr_t cond_kind;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlockattr_t rwlock_kind;
static pthread_barrier_t barrier;
static pthread_barrierattr_t barrier_kind;
static sem_t sem;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static mtx_t c11_mutex;
static cnd_t c11_cond;
static once_flag c11_once = ONCE_FLAG_INIT;
static int word, futex_kind, is_shared, is_inheriting, stage, done;
static pthread_t threads[2];

static void pause_ms(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static const struct timespec *soon(clockid_t clock) {
    static __thread struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += 2000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec += 1;
    }
    return &time;
}

/* C11's result numbers do not collide with error numbers that these functions return. */
static int is_not_yet(int answer) {
    if (answer == -1) return errno == EAGAIN || errno == ETIMEDOUT;
    return answer == EBUSY || answer == ETIMEDOUT || answer == thrd_busy || answer == thrd_timedout;
}

static void routine(void) { pause_ms(10); }

#if defined __x86_64__
/* Names that only programs linked long ago ask for. */
#define OLD(result, name, ...)       \
    extern result name(__VA_ARGS__); \
    __asm__(".symver " #name ", " #name "@GLIBC_2.2.5")
/* The name of `longjmp` with `_FORTIFY_SOURCE`. */
extern void __longjmp_chk(struct __jmp_buf_tag *, int) __attribute__((noreturn));
OLD(int, __pthread_mutex_init, pthread_mutex_t *, const pthread_mutexattr_t *);
OLD(int, __pthread_mutex_destroy, pthread_mutex_t *);
OLD(int, __pthread_mutex_lock, pthread_mutex_t *);
OLD(int, __pthread_mutex_trylock, pthread_mutex_t *);
OLD(int, __pthread_mutex_unlock, pthread_mutex_t *);
OLD(int, __pthread_rwlock_init, pthread_rwlock_t *, const pthread_rwlockattr_t *);
OLD(int, __pthread_rwlock_destroy, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_rdlock, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_tryrdlock, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_wrlock, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_trywrlock, pthread_rwlock_t *);
OLD(int, __pthread_rwlock_unlock, pthread_rwlock_t *);
OLD(int, __pthread_once, pthread_once_t *, void (*)(void));
#endif

/* ---- Preparations: they do not use the function under test ---- */

static void make_NEW_MUTEX(void) {
    MUST(pthread_mutexattr_init(&mutex_kind));
    MUST(pthread_mutexattr_setpshared(&mutex_kind, is_shared));
    MUST(pthread_mutexattr_setprotocol(&mutex_kind,
                                       is_inheriting ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE));
}

static void make_MUTEX(void) {
    make_NEW_MUTEX();
    MUST(pthread_mutex_init(&mutex, &mutex_kind));
}

/* Locking has been used before, on another object, and unlocking has not. */
static void make_LOCKED_MUTEX(void) {
    static pthread_mutex_t other;
    make_MUTEX();
    MUST(pthread_mutex_init(&other, &mutex_kind));
    MUST(pthread_mutex_lock(&other));
}

static void make_NEW_COND(void) {
    MUST(pthread_condattr_init(&cond_kind));
    MUST(pthread_condattr_setpshared(&cond_kind, is_shared));
}

static void make_COND(void) {
    make_LOCKED_MUTEX();
    make_NEW_COND();
    MUST(pthread_cond_init(&cond, &cond_kind));
}

static void *end_soon(void *unused) {
    pause_ms(10);
    return unused;
}

static void *wait_to_end(void *unused) {
    for (;;) pause();
    return unused;
}

/* glibc looks for the unwinder when a thread is cancelled for the first time, and needs the
 * loader for that. So one is cancelled by glibc's own function first. */
static void make_CANCELLED(void) {
    int (*cancel)(pthread_t);
    pthread_t thread;
    *(void **)&cancel = dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "pthread_cancel");
    MUST(pthread_create(&thread, NULL, wait_to_end, NULL));
    MUST(cancel(thread));
    MUST(pthread_join(thread, NULL));
    make_COND();
}

static void make_NEW_RWLOCK(void) {
    MUST(pthread_rwlockattr_init(&rwlock_kind));
    MUST(pthread_rwlockattr_setpshared(&rwlock_kind, is_shared));
}

static void make_RWLOCK(void) {
    make_NEW_RWLOCK();
    MUST(pthread_rwlock_init(&rwlock, &rwlock_kind));
}

static void make_LOCKED_RWLOCK(void) {
    static pthread_rwlock_t other;
    make_RWLOCK();
    MUST(pthread_rwlock_init(&other, &rwlock_kind));
    MUST(pthread_rwlock_wrlock(&other));
}

static void make_NEW_SEM(void) {}
static void make_SEM(void) { MUST(sem_init(&sem, is_shared, 1)); }

static void make_NEW_BARRIER(void) {
    MUST(pthread_barrierattr_init(&barrier_kind));
    MUST(pthread_barrierattr_setpshared(&barrier_kind, is_shared));
}

static void make_BARRIER(void) {
    make_NEW_BARRIER();
    MUST(pthread_barrier_init(&barrier, &barrier_kind, 2));
}

static void make_NEW_SPIN(void) {}
static void make_SPIN(void) { MUST(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE)); }
static void make_LOCKED_SPIN(void) {
    make_SPIN();
    MUST(pthread_spin_lock(&spin));
}

static void make_NEW_C11(void) {}
static void make_C11(void) { MUST(mtx_init(&c11_mutex, mtx_timed)); }
static void make_LOCKED_C11(void) {
    make_C11();
    MUST(mtx_lock(&c11_mutex));
}

static void make_ONCE(void) {}
static void make_FUTEX(void) { futex_kind = is_shared ? 0 : FUTEX_PRIVATE_FLAG; }

/* ---- The operations ---- */

#define OPERATION(function, kind, first, second)      \
    static void *function##_first(void *unused) {     \
        first;                                        \
        return unused;                                \
    }                                                 \
    static void *function##_second(void *unused) {    \
        second;                                       \
        return unused;                                \
    }
#include "constructors.h"
#undef OPERATION

static const struct operation {
    const char *name;
    void (*make)(void);
    void *(*run[2])(void *);
} operations[] = {
#define OPERATION(function, kind, first, second) \
    {#function, make_##kind, {function##_first, function##_second}},
#include "constructors.h"
};

__attribute__((constructor)) static void at_load(void) {
    const char *wanted = getenv("CONFORMANCE_OPERATION");
    if (wanted == NULL) return;
    const char *library = getenv("CONFORMANCE_SERVED_BY");
    Dl_info found;
    MUST(dladdr((void *)pthread_mutex_lock, &found) == 0);
    if (library != NULL) MUST(strstr(found.dli_fname, library) == NULL);
    const char *objects = strrchr(wanted, '_') + 1;
    is_shared = strcmp(objects, "shared") == 0;
    is_inheriting = strcmp(objects, "inheriting") == 0;
    size_t length = (size_t)(objects - 1 - wanted);
    for (const struct operation *each = operations;
         each < operations + sizeof operations / sizeof *operations; each++) {
        if (strlen(each->name) != length || memcmp(each->name, wanted, length) != 0) continue;
        each->make();
        for (int thread = 0; thread < 2; thread++)
            MUST(pthread_create(&threads[thread], NULL, each->run[thread], NULL));
        for (int thread = 0; thread < 2; thread++) MUST(pthread_join(threads[thread], NULL));
        setenv("CONFORMANCE_WORKED", wanted, 1);
    }
}
