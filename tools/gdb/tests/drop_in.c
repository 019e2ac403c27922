/* A program of pthread in a known state, to be run with the drop-in: thread `holder` holds locks,
 * and each other thread waits for something else. */
#include "threads.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <stdint.h>
#include <threads.h>

pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t inherited, sturdy, between_processes, destroyed;
pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
pthread_cond_t shared_cond;
pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t shared_book;
sem_t tokens, shared_tokens;
pthread_barrier_t meeting, shared_meeting;
pthread_once_t settings = PTHREAD_ONCE_INIT;
mtx_t c11_mutex;
cnd_t c11_cond;
once_flag c11_once = ONCE_FLAG_INIT;
uint32_t word32 = 32;
pthread_t joined;

static void hold(void) { syscall(SYS_futex, &word32, FUTEX_WAIT_PRIVATE, 32, NULL, NULL, 0); }

static void holder(void)
{
    joined = pthread_self();
    pthread_mutex_lock(&plain);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&checking);
    pthread_mutex_lock(&inherited);
    pthread_mutex_lock(&sturdy);
    pthread_rwlock_wrlock(&book);
    pthread_once(&settings, hold);
}

static void at_plain(void) { pthread_mutex_lock(&plain); }
static void at_recursive(void) { pthread_mutex_lock(&recursive); }
static void at_inherited(void) { pthread_mutex_lock(&inherited); }
static void at_sturdy(void) { pthread_mutex_lock(&sturdy); }
static void reader(void) { pthread_rwlock_rdlock(&book); }
static void at_tokens(void) { sem_wait(&tokens); }
static void at_meeting(void) { pthread_barrier_wait(&meeting); }
static void at_settings(void) { pthread_once(&settings, hold); }
static void joins(void) { pthread_join(joined, NULL); }

static void at_filled(void)
{
    pthread_mutex_lock(&queue_lock);
    pthread_cond_wait(&filled, &queue_lock);
}

static void init(pthread_mutex_t *mutex, int protocol, int robust, int shared)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutexattr_setpshared(&attributes, shared);
    pthread_mutex_init(mutex, &attributes);
}

int main(int arguments, char *argument[])
{
    pthread_condattr_t cond_attributes;
    pthread_rwlockattr_t rwlock_attributes;
    pthread_barrierattr_t barrier_attributes;
    pthread_condattr_init(&cond_attributes);
    pthread_condattr_setpshared(&cond_attributes, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_init(&rwlock_attributes);
    pthread_rwlockattr_setpshared(&rwlock_attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_init(&barrier_attributes);
    pthread_barrierattr_setpshared(&barrier_attributes, PTHREAD_PROCESS_SHARED);
    init(&inherited, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE);
    init(&sturdy, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_PRIVATE);
    init(&between_processes, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_SHARED);
    init(&destroyed, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE);
    pthread_mutex_destroy(&destroyed);
    pthread_cond_init(&shared_cond, &cond_attributes);
    pthread_rwlock_init(&shared_book, &rwlock_attributes);
    pthread_barrier_init(&shared_meeting, &barrier_attributes, 2);
    pthread_barrier_init(&meeting, NULL, 3);
    sem_init(&tokens, 0, 0);
    sem_init(&shared_tokens, 1, 5);
    mtx_init(&c11_mutex, mtx_plain);
    mtx_lock(&c11_mutex);
    cnd_init(&c11_cond);
    begin("holder", holder);
    begin("B", at_plain);
    begin("C", at_recursive);
    begin("D", at_inherited);
    begin("E", at_sturdy);
    begin("F", at_filled);
    begin("reader", reader);
    begin("sem", at_tokens);
    begin("barrier", at_meeting);
    begin("once", at_settings);
    begin("joins", joins);
    (void)argument;
    known_state(arguments);
    return 0;
}
