/* convoy: sixteen threads queue at `lock` nearly all the time; its holders run. */
/* Each thread computes 50 us inside the lock and 10 us outside. Two threads would fill the lock;
 * of sixteen, about fourteen wait at any time. `queue_length` is their mean number. */
#include "truth.h"

#define THREADS 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site site = SITE("thread_in_the_convoy");
static long passed;
static long long thread_time;

NAMED static void section_of_the_convoy(void) {
    compute(50 * US);
    passed++;
}

NAMED static void outside_the_convoy(void) {
    compute(10 * US);
    KEEP_FRAME();
}

NAMED static void *thread_in_the_convoy(void *nothing) {
    long long from = now_ns();
    while (time_left()) {
        locked(&site, &lock);
        section_of_the_convoy();
        unlocked(&lock);
        outside_the_convoy();
    }
    __atomic_fetch_add(&thread_time, now_ns() - from, __ATOMIC_RELAXED);
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    start_run(count, arguments);
    for (int i = 0; i < THREADS; i++) start(&threads[i], thread_in_the_convoy, NULL);
    for (int i = 0; i < THREADS; i++) join(threads[i]);
    print_site(&site);
    printf("answer passed %ld\n", passed);
    printf("answer waiting_percent %.1f\n",
           100.0 * (double)site.nanoseconds / (double)thread_time);
    printf("answer queue_length %.1f\n", (double)site.nanoseconds / (double)run_length);
    return 0;
}
