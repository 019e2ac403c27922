/* starved-writer: a writer waits in vain for `rwlock`: its readers overlap for the whole run. */
/* Two readers relieve each other: neither unlocks before the other has the lock too. So the lock is
 * never free, as long as a waiting writer does not keep readers out: glibc's default. The writer
 * gives up (ETIMEDOUT) after the run's length, and only then the readers end. */
#include "truth.h"

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static struct site writer_site = SITE("starved_writer");
static struct site reader_site = SITE("overlapping_reader");
static sem_t may_lock[2], may_unlock[2];
static int ending;
static long readings;

static void post(sem_t *semaphore) {
    check_call(sem_post(semaphore), "sem_post");
}

static void await(sem_t *semaphore) {
    check_call(sem_wait(semaphore), "sem_wait");
}

NAMED static void reader_sleeps_in_its_section(void) {
    sleep_ns(5 * MS);
}

NAMED static void *overlapping_reader(void *number) {
    long self = (long)number, other = 1 - self;
    int last = 0;
    while (!last) {
        await(&may_lock[self]);
        check(WAITED(&reader_site, pthread_rwlock_rdlock(&rwlock)), "rdlock");
        /* The very first reader has nobody to relieve. */
        if (__atomic_fetch_add(&readings, 1, __ATOMIC_SEQ_CST) > 0) post(&may_unlock[other]);
        reader_sleeps_in_its_section();
        last = __atomic_load_n(&ending, __ATOMIC_SEQ_CST);
        post(&may_lock[other]);
        if (!last) await(&may_unlock[self]);
        check(pthread_rwlock_unlock(&rwlock), "rwlock_unlock");
    }
    return NULL;
}

NAMED static int starved_writer(void) {
    struct timespec limit;
    long long end = clock_ns(CLOCK_REALTIME) + run_length;
    limit.tv_sec = end / SECOND;
    limit.tv_nsec = end % SECOND;
    return WAITED(&writer_site, pthread_rwlock_timedwrlock(&rwlock, &limit));
}

int main(int count, char **arguments) {
    pthread_t readers[2];
    int result;
    start_run(count, arguments);
    for (int i = 0; i < 2; i++) {
        check_call(sem_init(&may_lock[i], 0, 0), "sem_init");
        check_call(sem_init(&may_unlock[i], 0, 0), "sem_init");
    }
    post(&may_lock[0]);
    for (long i = 0; i < 2; i++) start(&readers[i], overlapping_reader, (void *)i);
    while (__atomic_load_n(&readings, __ATOMIC_SEQ_CST) < 2) sleep_ns(MS);
    result = starved_writer();
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    if (result == 0) check(pthread_rwlock_unlock(&rwlock), "unlock of the writer");
    step("join of the readers");
    for (int i = 0; i < 2; i++) join(readers[i]);
    print_site(&writer_site);
    print_site(&reader_site);
    printf("answer readings %ld\n", readings);
    printf("answer writer %s\n", result == ETIMEDOUT ? "ETIMEDOUT" : strerror(result));
    return 0;
}
