/* priority-inversion: a thread waits for one of greater niceness without a CPU (at least 80 %). */
/* The holder computes 1 ms in each section, on a CPU on which a process of niceness 0 computes
 * too. That process has seventy times the holder's weight, so it runs in place of the holder, and
 * the waiter waits, which is as urgent as that process. The waiter is on another CPU, if there is
 * one. */
#include "truth.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site holder_site = SITE("less_urgent_holder");
static struct site waiter_site = SITE("more_urgent_waiter");
static struct section sections;

static void busy_process(void) {
    bind_to_cpu(1);
    for (volatile int turn = 0;; turn = !turn) {
    }
}

NAMED static void holder_is_not_urgent_in_its_section(void) {
    compute(MS);
    KEEP_FRAME();
}

NAMED static void *less_urgent_holder(void *nothing) {
    bind_to_cpu(1);
    /* Of this thread, on Linux. */
    check_call(setpriority(PRIO_PROCESS, 0, 19), "setpriority");
    while (goes_on(sections.count)) {
        struct moment from;
        locked(&holder_site, &lock);
        from = moment();
        holder_is_not_urgent_in_its_section();
        add_section(&sections, from);
        unlocked(&lock);
        sleep_ns(2 * MS);
    }
    return nothing;
}

NAMED static void *more_urgent_waiter(void *nothing) {
    bind_to_cpu(0);
    while (time_left()) {
        locked(&waiter_site, &lock);
        unlocked(&lock);
        sleep_ns(MS);
    }
    return nothing;
}

int main(int count, char **arguments) {
    pid_t busy;
    pthread_t holder, waiter;
    start_run(count, arguments);
    busy = start_child(busy_process);
    start(&holder, less_urgent_holder, NULL);
    start(&waiter, more_urgent_waiter, NULL);
    join(holder);
    join(waiter);
    end_child(busy);
    print_site(&holder_site);
    print_site(&waiter_site);
    print_section("holder", &sections);
    return 0;
}
