/* holder-ended: a thread waits for ever for `lock`, whose holder ended without unlocking it. */
/* The main thread joins the holder before it starts the waiter. Prints both threads and `ready`
 * once the waiter sleeps, and stays until SIGTERM, or until the watchdog ends it with 70. */
#include "truth.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long ended_thread, waiting_thread;

NAMED static void *holder_ends_without_unlock(void *nothing) {
    check(pthread_mutex_lock(&lock), "lock of the holder");
    ended_thread = thread_id();
    return nothing;
}

NAMED static void *waiter_of_ended_holder(void *nothing) {
    __atomic_store_n(&waiting_thread, thread_id(), __ATOMIC_SEQ_CST);
    check(pthread_mutex_lock(&lock), "lock of the waiter");
    fprintf(stderr, "the waiter got the lock\n");
    _exit(1);
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t holder, waiter;
    long id;
    start_run(count, arguments);
    start(&holder, holder_ends_without_unlock, NULL);
    join(holder);
    start(&waiter, waiter_of_ended_holder, NULL);
    step("waiting for the waiter");
    while ((id = __atomic_load_n(&waiting_thread, __ATOMIC_SEQ_CST)) == 0) sleep_ns(MS);
    wait_until_asleep(id);
    printf("answer ended_holder %ld\n", ended_thread);
    printf("answer waiter %ld\n", id);
    printf("ready\n");
    fflush(stdout);
    step("the wait without end, as intended");
    for (;;) pause();
}
