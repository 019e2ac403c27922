/* semaphore-work: four threads wait for work at a semaphore: idle, no contention. */
/* One job comes every 20 ms and takes 1 ms. There is no lock in the program. */
#include "truth.h"

#define WORKERS 4

static sem_t work;
static struct site idle_site = SITE("worker_waits_for_work");
static int ending;
static long jobs_done;

NAMED static void worker_waits_for_work(void) {
    check_call(WAITED(&idle_site, sem_wait(&work)), "sem_wait");
}

NAMED static void worker_does_a_job(void) {
    compute(MS);
    __atomic_fetch_add(&jobs_done, 1, __ATOMIC_RELAXED);
}

NAMED static void *worker_at_the_semaphore(void *nothing) {
    for (;;) {
        worker_waits_for_work();
        if (__atomic_load_n(&ending, __ATOMIC_SEQ_CST)) return nothing;
        worker_does_a_job();
    }
}

int main(int count, char **arguments) {
    pthread_t workers[WORKERS];
    start_run(count, arguments);
    check_call(sem_init(&work, 0, 0), "sem_init");
    for (int i = 0; i < WORKERS; i++) start(&workers[i], worker_at_the_semaphore, NULL);
    while (time_left()) {
        sleep_ns(20 * MS);
        check_call(sem_post(&work), "sem_post");
    }
    sleep_ns(20 * MS);
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < WORKERS; i++) check_call(sem_post(&work), "sem_post");
    step("join of the workers");
    for (int i = 0; i < WORKERS; i++) join(workers[i]);
    print_idle_site("semaphore", &idle_site);
    printf("answer jobs_done %ld\n", jobs_done);
    return 0;
}
