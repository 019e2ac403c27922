/* below-threshold: two threads meet at `lock` often, but nearly all waits are below 10 us. */
/* Sections take about 0.1 us, and the mutex is adaptive: a waiter spins instead of sleeping, and so
 * waits only for the rest of a section. A holder that loses its CPU would make a wait long. So the
 * threads work in bursts of 0.3 ms, at the same times, and sleep for the rest of each millisecond:
 * a thread that uses a third of a CPU is seldom preempted. What is left is printed: the waits above
 * the threshold, and how many calls of lock found the other thread in its section. */
#include "truth.h"

static pthread_mutex_t lock;
static struct site site = SITE("thread_with_short_waits");
static int in_section;
static long locks, met;

static void turns(int number) {
    for (volatile int i = 0; i < number; i++) {
    }
}

NAMED static void short_section(void) {
    __atomic_store_n(&in_section, 1, __ATOMIC_RELAXED);
    locks++;
    turns(50);
    __atomic_store_n(&in_section, 0, __ATOMIC_RELAXED);
}

NAMED static void *thread_with_short_waits(void *number) {
    long met_here = 0;
    long long next = run_end - run_length;
    bind_to_cpu((int)(long)number);
    while (time_left()) {
        struct timespec until;
        next += MS;
        if (now_ns() > next) continue;
        until.tv_sec = next / SECOND;
        until.tv_nsec = next % SECOND;
        check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), "clock_nanosleep");
        while (now_ns() < next + 300 * US) {
            met_here += __atomic_load_n(&in_section, __ATOMIC_RELAXED);
            locked(&site, &lock);
            short_section();
            unlocked(&lock);
            turns(500);
        }
    }
    __atomic_fetch_add(&met, met_here, __ATOMIC_RELAXED);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    pthread_mutexattr_t adaptive;
    start_run(count, arguments);
    check(pthread_mutexattr_init(&adaptive), "mutexattr_init");
    check(pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP), "settype");
    check(pthread_mutex_init(&lock, &adaptive), "mutex_init");
    for (long i = 0; i < 2; i++) start(&threads[i], thread_with_short_waits, (void *)i);
    for (int i = 0; i < 2; i++) join(threads[i]);
    print_site(&site);
    printf("answer locks %ld\n", locks);
    printf("answer met_the_other %ld\n", met);
    printf("answer waits_above_threshold %ld\n", site.count);
    printf("answer waits_above_threshold_per_million_locks %.0f\n",
           1e6 * (double)site.count / (double)locks);
    return 0;
}
