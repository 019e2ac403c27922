/* deadlock-abba: three of 100 threads wait in a cycle: holders of A, B, C want B, C, A. */
/* A barrier closes the cycle: each thread has its first lock before any wants its second. 97 other
 * threads are harmless: they wait for work, or share a lock with short sections. Prints the threads
 * of the cycle and `ready` once all three sleep, and stays until SIGTERM, or until the watchdog
 * ends it with 70. */
#include "truth.h"

#define HARMLESS 97

struct cycle_thread {
    pthread_mutex_t *holds, *wants;
    long id;
};

static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock_c = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t harmless_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_comes = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all_hold;
static int about_to_wait;

static void pass_barrier(void) {
    int error = pthread_barrier_wait(&all_hold);
    check(error == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : error, "barrier_wait");
}

NAMED static void wants_the_next_lock(struct cycle_thread *self) {
    check(pthread_mutex_lock(self->wants), "second lock");
    fprintf(stderr, "the cycle did not close\n");
    _exit(1);
}

NAMED static void *thread_in_the_cycle(void *argument) {
    struct cycle_thread *self = (struct cycle_thread *)argument;
    check(pthread_mutex_lock(self->holds), "first lock");
    self->id = thread_id();
    pass_barrier();
    __atomic_fetch_add(&about_to_wait, 1, __ATOMIC_SEQ_CST);
    wants_the_next_lock(self);
    return NULL;
}

/* Nothing ever comes. */
NAMED static void *harmless_thread_waits_for_work(void *nothing) {
    check(pthread_mutex_lock(&harmless_lock), "lock");
    for (;;) check(pthread_cond_wait(&work_comes, &harmless_lock), "cond_wait");
    return nothing;
}

NAMED static void *harmless_thread_works(void *nothing) {
    for (;;) {
        check(pthread_mutex_lock(&harmless_lock), "lock");
        unlocked(&harmless_lock);
        sleep_ns(50 * MS);
    }
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t thread;
    struct cycle_thread cycle[] = {
        {&lock_a, &lock_b, 0}, {&lock_b, &lock_c, 0}, {&lock_c, &lock_a, 0}};
    start_run(count, arguments);
    check(pthread_barrier_init(&all_hold, NULL, 3), "barrier_init");
    for (int i = 0; i < HARMLESS; i++)
        start(&thread, i % 2 ? harmless_thread_works : harmless_thread_waits_for_work, NULL);
    for (int i = 0; i < 3; i++) start(&thread, thread_in_the_cycle, &cycle[i]);
    step("closing the cycle");
    while (__atomic_load_n(&about_to_wait, __ATOMIC_SEQ_CST) < 3) sleep_ns(MS);
    for (int i = 0; i < 3; i++) wait_until_asleep(cycle[i].id);
    printf("answer holds_a_wants_b %ld\n", cycle[0].id);
    printf("answer holds_b_wants_c %ld\n", cycle[1].id);
    printf("answer holds_c_wants_a %ld\n", cycle[2].id);
    printf("ready\n");
    fflush(stdout);
    step("the deadlock, as intended");
    for (;;) pause();
}
