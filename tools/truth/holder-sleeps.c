/* holder-sleeps: the waiters of `lock` wait for a holder asleep in clock_nanosleep (>= 90 %). */
/* The holder's section is one nanosleep of 20 ms, in glibc the system call clock_nanosleep. The
 * waiters' sections are empty, and the holder stays out for 2 ms, so that each waiter gets in. */
#include "truth.h"

#define WAITERS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site holder_site = SITE("holder_of_lock");
static struct site waiter_site = SITE("waiter_of_lock");
static struct section sections;

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
    pthread_t holder, waiters[WAITERS];
    start_run(count, arguments);
    start(&holder, holder_of_lock, NULL);
    for (int i = 0; i < WAITERS; i++) start(&waiters[i], waiter_of_lock, NULL);
    join(holder);
    for (int i = 0; i < WAITERS; i++) join(waiters[i]);
    print_site(&holder_site);
    print_site(&waiter_site);
    print_section("holder", &sections);
    return 0;
}
