/* holder-preempted: the waiter of `lock` waits for a holder without a CPU (preempted >= 80 %). */
/* The holder computes 10 ms in each section, on a CPU on which eleven processes of the same weight
 * compute too. So it gets a twelfth of that CPU. No call in the section sleeps. The waiter is on
 * another CPU, if there is one. Two sources say the same: run_delay in schedstat, and the clocks,
 * since wall time without CPU time is time without a CPU if nothing sleeps. */
#include "truth.h"

#define BUSY 11

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site holder_site = SITE("preempted_holder_of_lock");
static struct site waiter_site = SITE("waiter_of_lock");
static struct section sections;

static void busy_process(void) {
    bind_to_cpu(1);
    for (volatile int turn = 0;; turn = !turn) {
    }
}

NAMED static void holder_loses_its_cpu_in_its_section(void) {
    compute(10 * MS);
    KEEP_FRAME();
}

NAMED static void *preempted_holder_of_lock(void *nothing) {
    bind_to_cpu(1);
    while (goes_on(sections.count)) {
        struct moment from;
        locked(&holder_site, &lock);
        from = moment();
        holder_loses_its_cpu_in_its_section();
        add_section(&sections, from);
        unlocked(&lock);
        sleep_ns(2 * MS);
    }
    return nothing;
}

NAMED static void *waiter_of_lock(void *nothing) {
    bind_to_cpu(0);
    while (time_left()) {
        locked(&waiter_site, &lock);
        unlocked(&lock);
        sleep_ns(MS);
    }
    return nothing;
}

int main(int count, char **arguments) {
    pid_t busy[BUSY];
    pthread_t holder, waiter;
    start_run(count, arguments);
    for (int i = 0; i < BUSY; i++) busy[i] = start_child(busy_process);
    start(&holder, preempted_holder_of_lock, NULL);
    start(&waiter, waiter_of_lock, NULL);
    join(holder);
    join(waiter);
    for (int i = 0; i < BUSY; i++) end_child(busy[i]);
    print_site(&holder_site);
    print_site(&waiter_site);
    print_section("holder", &sections);
    printf("answer holder_without_cpu_percent %.1f\n",
           100 - 100.0 * (double)sections.sum.cpu / (double)sections.sum.wall);
    return 0;
}
