/* idle-workers: nobody waits for `queue_lock`; the workers are idle in pthread_cond_wait. */
/* One job comes every 20 ms, takes 50 us and wakes one of eight workers. The signal comes after the
 * unlock, so that the lock is free for the worker. At the end each worker gets a job of its own
 * that ends it, since a broadcast would make them contend. */
#include "truth.h"

#define WORKERS 8

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct site worker_site = SITE("idle_worker");
static struct site producer_site = SITE("producer_adds_a_job");
static struct site idle_site = SITE("idle_worker_waits_for_a_job");
static long jobs, jobs_done;
static int ending;

NAMED static void idle_worker_waits_for_a_job(void) {
    check(WAITED(&idle_site, pthread_cond_wait(&queue_filled, &queue_lock)), "cond_wait");
}

NAMED static void *idle_worker(void *nothing) {
    for (;;) {
        int last;
        locked(&worker_site, &queue_lock);
        while (jobs == 0) idle_worker_waits_for_a_job();
        jobs--;
        jobs_done++;
        last = ending;
        unlocked(&queue_lock);
        if (last) return nothing;
        compute(50 * US);
    }
}

NAMED static void producer_adds_a_job(int last) {
    locked(&producer_site, &queue_lock);
    jobs++;
    ending = last;
    unlocked(&queue_lock);
    check(pthread_cond_signal(&queue_filled), "cond_signal");
}

int main(int count, char **arguments) {
    pthread_t workers[WORKERS];
    start_run(count, arguments);
    for (int i = 0; i < WORKERS; i++) start(&workers[i], idle_worker, NULL);
    while (time_left()) {
        sleep_ns(20 * MS);
        producer_adds_a_job(0);
    }
    for (int i = 0; i < WORKERS; i++) {
        sleep_ns(5 * MS);
        producer_adds_a_job(1);
    }
    step("join of the workers");
    for (int i = 0; i < WORKERS; i++) join(workers[i]);
    print_site(&worker_site);
    print_site(&producer_site);
    print_idle_site("condvar", &idle_site);
    printf("answer jobs_done %ld\n", jobs_done);
    return 0;
}
