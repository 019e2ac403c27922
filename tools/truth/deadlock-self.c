/* deadlock-self: a thread waits for ever for `lock`, a normal mutex that it holds itself. */
/* Prints the thread and `ready` once it sleeps in its second pthread_mutex_lock, and stays until
 * SIGTERM, or until the watchdog ends it with 70. */
#include "truth.h"

static pthread_mutex_t lock;
static long waiting_thread;

NAMED static void locks_what_it_holds(void) {
    check(pthread_mutex_lock(&lock), "second lock");
    fprintf(stderr, "the second lock did not wait\n");
    _exit(1);
}

NAMED static void *thread_that_locks_twice(void *nothing) {
    check(pthread_mutex_lock(&lock), "first lock");
    __atomic_store_n(&waiting_thread, thread_id(), __ATOMIC_SEQ_CST);
    locks_what_it_holds();
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t thread;
    pthread_mutexattr_t normal;
    long id;
    start_run(count, arguments);
    check(pthread_mutexattr_init(&normal), "mutexattr_init");
    check(pthread_mutexattr_settype(&normal, PTHREAD_MUTEX_NORMAL), "settype");
    check(pthread_mutex_init(&lock, &normal), "mutex_init");
    start(&thread, thread_that_locks_twice, NULL);
    step("closing the cycle");
    while ((id = __atomic_load_n(&waiting_thread, __ATOMIC_SEQ_CST)) == 0) sleep_ns(MS);
    wait_until_asleep(id);
    printf("answer holds_and_wants %ld\n", id);
    printf("ready\n");
    fflush(stdout);
    step("the deadlock, as intended");
    for (;;) pause();
}
