/* holder-computes: the waiters of `lock` wait for a holder that runs (>= 90 %). */
/* The waiters sleep, so the holder has a CPU of its own, also beside one busy process if there are
 * two CPUs: nothing is bound, and the scheduler finds the free one. Its sections are 1 ms of CPU
 * time, less than the usual slice, and it sleeps twice as long between them: it asks for less than
 * half a CPU, so that even on busy CPUs it is seldom preempted. */
#include "truth.h"

#define WAITERS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site holder_site = SITE("holder_of_lock");
static struct site waiter_site = SITE("waiter_of_lock");
static struct section sections;

NAMED static void holder_computes_in_its_section(void) {
    compute(MS);
    KEEP_FRAME();
}

NAMED static void *holder_of_lock(void *nothing) {
    while (goes_on(sections.count)) {
        struct moment from;
        locked(&holder_site, &lock);
        from = moment();
        holder_computes_in_its_section();
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
        sleep_ns(200 * US);
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
