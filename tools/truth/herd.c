/* herd: each broadcast wakes 64 waiters, which then queue at `herd_lock`. */
/* The broadcaster keeps the lock for 2 ms after the broadcast, asleep. By then all 64 are awake and
 * sleep again, now at the lock, and get it one after the other. glibc moves no waiter from the
 * condition variable to the mutex, so each wakeup costs a thread two sleeps. */
#include "truth.h"

#define WAITERS 64

static pthread_mutex_t herd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t round_began = PTHREAD_COND_INITIALIZER;
static pthread_cond_t all_wait = PTHREAD_COND_INITIALIZER;
static struct site waiter_site = SITE("waiter_in_the_herd");
static struct site broadcaster_site = SITE("broadcaster");
static struct section sections;
static int waiting, ending;
static long rounds, wakeups, sleeps;
static long long broadcast_at, after_broadcast;

NAMED static void *waiter_in_the_herd(void *nothing) {
    struct rusage usage;
    locked(&waiter_site, &herd_lock);
    while (!ending) {
        long seen = rounds;
        if (++waiting == WAITERS) check(pthread_cond_signal(&all_wait), "cond_signal");
        while (rounds == seen) check(pthread_cond_wait(&round_began, &herd_lock), "cond_wait");
        after_broadcast += now_ns() - broadcast_at;
        wakeups++;
    }
    check_call(getrusage(RUSAGE_THREAD, &usage), "getrusage");
    sleeps += usage.ru_nvcsw;
    unlocked(&herd_lock);
    return nothing;
}

NAMED static void broadcaster_keeps_the_lock(void) {
    sleep_ns(2 * MS);
}

NAMED static void broadcaster(void) {
    while (!ending) {
        struct moment from;
        locked(&broadcaster_site, &herd_lock);
        while (waiting < WAITERS) check(pthread_cond_wait(&all_wait, &herd_lock), "cond_wait");
        waiting = 0;
        rounds++;
        ending = !time_left();
        broadcast_at = now_ns();
        check(pthread_cond_broadcast(&round_began), "cond_broadcast");
        from = moment();
        broadcaster_keeps_the_lock();
        add_section(&sections, from);
        unlocked(&herd_lock);
    }
}

int main(int count, char **arguments) {
    pthread_t waiters[WAITERS];
    start_run(count, arguments);
    for (int i = 0; i < WAITERS; i++) start(&waiters[i], waiter_in_the_herd, NULL);
    broadcaster();
    step("join of the waiters");
    for (int i = 0; i < WAITERS; i++) join(waiters[i]);
    print_site(&waiter_site);
    print_site(&broadcaster_site);
    printf("answer rounds %ld\n", rounds);
    printf("answer wakeups %ld\n", wakeups);
    printf("answer broadcast_to_return_ns %lld\n", after_broadcast);
    printf("answer sleeps_per_wakeup %.2f\n", (double)sleeps / (double)wakeups);
    print_section("broadcaster", &sections);
    return 0;
}
