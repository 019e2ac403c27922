/* holder-reads: the waiters of `lock` wait for a holder asleep in read, from a pipe (>= 90 %). */
/* In each section the holder asks a child process and reads the answer, which comes 20 ms later. It
 * cannot come early, since the child answers one question at a time. */
#include "truth.h"

#define WAITERS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site holder_site = SITE("holder_of_lock");
static struct site waiter_site = SITE("waiter_of_lock");
static struct section sections;
static int questions[2], answers[2];

static void slow_process(void) {
    char byte;
    check_call(close(questions[1]), "close");
    while (read(questions[0], &byte, 1) == 1) {
        sleep_ns(20 * MS);
        check_call(write(answers[1], &byte, 1), "write");
    }
}

NAMED static void holder_reads_in_its_section(void) {
    char byte = '?';
    check_call(write(questions[1], &byte, 1), "write");
    if (read(answers[0], &byte, 1) != 1) check(EIO, "read");
}

NAMED static void *holder_of_lock(void *nothing) {
    while (goes_on(sections.count)) {
        struct moment from;
        locked(&holder_site, &lock);
        from = moment();
        holder_reads_in_its_section();
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
    pid_t slow;
    pthread_t holder, waiters[WAITERS];
    start_run(count, arguments);
    check_call(pipe(questions), "pipe");
    check_call(pipe(answers), "pipe");
    slow = start_child(slow_process);
    start(&holder, holder_of_lock, NULL);
    for (int i = 0; i < WAITERS; i++) start(&waiters[i], waiter_of_lock, NULL);
    join(holder);
    for (int i = 0; i < WAITERS; i++) join(waiters[i]);
    end_child(slow);
    print_site(&holder_site);
    print_site(&waiter_site);
    print_section("holder", &sections);
    return 0;
}
