/* Neither a signal handler nor a cancellation request ends these waits: rwlocks, barriers, once,
 * mutexes. None of them is a cancellation point. The request takes effect at the next one. */
#include "served.h"

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile int is_running, has_got, is_in_routine, may_end, handled;

static void handler(int number)
{
    (void)number;
    set(&handled);
}

static int read_it(void)
{
    return pthread_rwlock_rdlock(&rwlock);
}

static int write_it(void)
{
    return pthread_rwlock_wrlock(&rwlock);
}

static int read_it_in_time(void)
{
    struct timespec later = never(CLOCK_REALTIME);
    return pthread_rwlock_timedrdlock(&rwlock, &later);
}

static int write_it_in_time(void)
{
    struct timespec later = never(CLOCK_MONOTONIC);
    return pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &later);
}

static int arrive(void)
{
    int answer = pthread_barrier_wait(&barrier);
    return answer == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : answer;
}

static void routine(void)
{
    set(&is_in_routine);
    comes(&may_end);
}

static int call_once_more(void)
{
    return pthread_once(&once, abort);
}

static int lock_it(void)
{
    return pthread_mutex_lock(&mutex);
}

static void *call_routine(void *unused)
{
    pthread_once(&once, routine);
    return unused;
}

static void unlock_rwlock(void *unused)
{
    (void)unused;
    GIVES(0, pthread_rwlock_unlock(&rwlock));
}

static void unlock_mutex(void *unused)
{
    (void)unused;
    GIVES(0, pthread_mutex_unlock(&mutex));
}

static void nothing(void *unused)
{
    (void)unused;
}

struct wait {
    int (*wait)(void);
    void (*clean)(void *);
};

static void *run(void *argument)
{
    struct wait *wait = argument;
    set(&is_running);
    GIVES(0, wait->wait());
    set(&has_got);
    pthread_cleanup_push(wait->clean, NULL);
    pthread_testcancel();
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    struct wait waits[] = {
        {read_it, unlock_rwlock},  {write_it, unlock_rwlock}, {read_it_in_time, unlock_rwlock},
        {write_it_in_time, unlock_rwlock}, {arrive, nothing},  {call_once_more, nothing},
        {lock_it, unlock_mutex},
    };
    for (unsigned i = 0; i < 2 * sizeof waits / sizeof *waits; i++) {
        struct wait *wait = &waits[i / 2];
        bool cancel = i % 2;
        is_running = has_got = is_in_routine = may_end = handled = 0;
        GIVES(0, pthread_rwlock_wrlock(&rwlock));
        GIVES(0, pthread_mutex_lock(&mutex));
        GIVES(0, pthread_barrier_init(&barrier, NULL, 2));
        once = PTHREAD_ONCE_INIT;
        pthread_t caller = start(call_routine, NULL);
        comes(&is_in_routine);
        pthread_t thread = start(run, wait);
        comes(&is_running);
        for (int signal = 0; signal < 5; signal++) {
            sleep_ms(4);
            handled = 0;
            GIVES(0, pthread_kill(thread, SIGUSR1));
            GIVES(true, comes(&handled));
        }
        if (cancel)
            GIVES(0, pthread_cancel(thread));
        sleep_ms(20);
        GIVES(0, has_got);
        GIVES(0, pthread_rwlock_unlock(&rwlock));
        GIVES(0, pthread_mutex_unlock(&mutex));
        set(&may_end);
        if (wait->wait == arrive)
            arrive();
        void *result;
        GIVES(0, pthread_join(thread, &result));
        GIVES(cancel ? PTHREAD_CANCELED : NULL, result);
        GIVES(1, has_got);
        join(caller);
        GIVES(0, pthread_barrier_destroy(&barrier));
    }
    return report("not_ended_early");
}
