/* uncontended: `busy_lock` is locked a million times a second and never waited for; `lock` is. */
/* Only one thread ever touches busy_lock: a thousand times in each millisecond, by absolute times,
 * so that it catches up if it is late. A report must not contain it. At `lock`, a waiter
 * waits for a holder that sleeps, as in holder-sleeps.c. */
#include "truth.h"

static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site holder_site = SITE("holder_of_lock");
static struct site waiter_site = SITE("waiter_of_lock");
static struct section sections;
static long uncontended;

NAMED static void locks_without_a_rival(void) {
    for (int i = 0; i < 1000; i++) {
        check(pthread_mutex_lock(&busy_lock), "busy_lock");
        uncontended++;
        unlocked(&busy_lock);
    }
}

NAMED static void *only_user_of_busy_lock(void *nothing) {
    for (long long next = run_end - run_length; next < run_end; next += MS) {
        struct timespec until;
        until.tv_sec = next / SECOND;
        until.tv_nsec = next % SECOND;
        check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), "clock_nanosleep");
        locks_without_a_rival();
    }
    return nothing;
}

NAMED static void holder_sleeps_in_its_section(void) {
    sleep_ns(20 * MS);
}

NAMED static void *holder_of_lock(void *nothing) {
    while (goes_on(sections.count)) {
        struct moment from;
        locked(&holder_site, &lock);
        from = moment();
        holder_sleeps_in_its_section();
        add_section(&sections, from);
        unlocked(&lock);
        sleep_ns(2 * MS);
    }
    return nothing;
}

NAMED static void *waiter_of_lock(void *nothing) {
    while (time_left()) {
        locked(&waiter_site, &lock);
        unlocked(&lock);
        sleep_ns(MS);
    }
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t busy, holder, waiter;
    start_run(count, arguments);
    start(&busy, only_user_of_busy_lock, NULL);
    start(&holder, holder_of_lock, NULL);
    start(&waiter, waiter_of_lock, NULL);
    join(busy);
    join(holder);
    join(waiter);
    print_site(&holder_site);
    print_site(&waiter_site);
    print_section("holder", &sections);
    printf("answer uncontended_locks %ld\n", uncontended);
    printf("answer uncontended_locks_per_second %.0f\n",
           (double)uncontended * SECOND / (double)run_length);
    return 0;
}
