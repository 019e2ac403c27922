/* pthread_spin_*: answers, exclusion, and what oversubscription does. */
#include "served.h"

enum { THREADS = 8, ROUNDS = 20000 };

static pthread_spinlock_t *lock;
static volatile long count;

static void on_one_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void *work(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 8 == 0) {
            while (pthread_spin_trylock(lock) != 0)
                sched_yield();
        } else {
            pthread_spin_lock(lock);
        }
        count = count + 1;
        pthread_spin_unlock(lock);
    }
    return unused;
}

static void many(void)
{
    count = 0;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(work, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    GIVES((long)THREADS * ROUNDS, count);
}

static volatile int is_held, waits, has_it;

static void *take_it(void *unused)
{
    set(&waits);
    pthread_spin_lock(lock);
    set(&has_it);
    pthread_spin_unlock(lock);
    return unused;
}

static void *hold_it(void *unused)
{
    pthread_spin_lock(lock);
    set(&is_held);
    comes(&waits);
    /* Two seconds of CPU time, which a spinning waiter would not leave to this thread. */
    clockid_t own_time = CLOCK_THREAD_CPUTIME_ID;
    struct timespec end = in_ms(own_time, 2000);
    while (!has_come(own_time, end))
        ;
    pthread_spin_unlock(lock);
    return unused;
}

/* A waiter with real-time priority on its holder's CPU. glibc's waiter spins all the time and
 * leaves the holder only what the kernel's limit for real-time threads leaves, a twentieth of
 * the CPU. */
static void below_real_time(void)
{
    on_one_cpu();
    pthread_t holder = start(hold_it, NULL);
    GIVES(1, comes(&is_held));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    struct sched_param priority = {.sched_priority = 10};
    pthread_attr_setschedparam(&attributes, &priority);
    pthread_t waiter;
    if (pthread_create(&waiter, &attributes, take_it, NULL) != 0) {
        printf("spin: no real-time threads here\n");
        set(&waits);
        join(holder);
        return;
    }
    GIVES(1, comes(&has_it));
    join(waiter);
    join(holder);
}

int main(void)
{
    lock = shared_memory(4096);
    for (int shared = PTHREAD_PROCESS_PRIVATE; shared <= PTHREAD_PROCESS_SHARED; shared++) {
        *(volatile int *)lock = 77;
        ANSWERS(0, pthread_spin_init(lock, shared));
#if defined __x86_64__ || defined __i386__
        /* The C library's layout, since other processes may run without the drop-in. */
        GIVES(1, *(volatile int *)lock);
#else
        GIVES(0, *(volatile int *)lock);
#endif
        ANSWERS(0, pthread_spin_lock(lock));
        ANSWERS(EBUSY, pthread_spin_trylock(lock));
        ANSWERS(0, pthread_spin_unlock(lock));
        ANSWERS(0, pthread_spin_trylock(lock));
        ANSWERS(EBUSY, pthread_spin_trylock(lock));
        ANSWERS(0, pthread_spin_unlock(lock));
        ANSWERS(0, pthread_spin_destroy(lock));
    }

    ANSWERS(0, pthread_spin_init(lock, PTHREAD_PROCESS_SHARED));
    many();

    /* Another process unlocks with the C library's own code, which is a plain store; here by
     * hand. */
    int is_free = *(volatile int *)lock;
    ANSWERS(0, pthread_spin_lock(lock));
    pid_t child = fork_child();
    if (child == 0) {
        sleep_ms(20);
        __atomic_store_n((volatile int *)lock, is_free, __ATOMIC_RELEASE);
        end_of_child();
    }
    ANSWERS(0, pthread_spin_lock(lock));
    ANSWERS(0, pthread_spin_unlock(lock));
    wait_for_child(child);

    if (ours() || getenv("BELOW_REAL_TIME"))
        below_real_time();
    return report("spin");
}
