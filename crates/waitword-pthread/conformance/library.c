/* A library that locks while it is loaded and unloaded, before and after any code of the program
 * runs. `loading.c` is linked against it, and loads it again under another name. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;
static int ready, ran;

int library_works(void);

#define MUST(call) \
    if ((call) != 0) abort()

static void run(void) { ran++; }

static void *other(void *unused) {
    (void)unused;
    MUST(pthread_mutex_lock(&mutex));
    ready = 1;
    MUST(pthread_cond_signal(&condition));
    MUST(pthread_mutex_unlock(&mutex));
    MUST(sem_wait(&sem));
    return NULL;
}

/* Whether everything works; 42 if so. */
int library_works(void) {
    pthread_t thread;
    ready = 0;
    MUST(sem_init(&sem, 0, 0));
    MUST(pthread_once(&once, run));
    MUST(pthread_mutex_lock(&recursive));
    MUST(pthread_mutex_lock(&recursive));
    MUST(pthread_rwlock_wrlock(&rwlock));
    MUST(pthread_mutex_lock(&mutex));
    MUST(pthread_create(&thread, NULL, other, NULL));
    while (!ready) MUST(pthread_cond_wait(&condition, &mutex));
    MUST(pthread_mutex_unlock(&mutex));
    MUST(sem_post(&sem));
    MUST(pthread_join(thread, NULL));
    MUST(pthread_rwlock_unlock(&rwlock));
    MUST(pthread_mutex_unlock(&recursive));
    MUST(pthread_mutex_unlock(&recursive));
    return ran == 1 ? 42 : 0;
}

__attribute__((constructor)) static void at_load(void) {
    alarm(60);
    if (library_works() != 42) abort();
}

__attribute__((destructor)) static void at_unload(void) {
    if (library_works() != 42) abort();
}
