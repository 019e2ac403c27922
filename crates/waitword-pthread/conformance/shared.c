/* Process-shared objects: between forked processes, and with processes that run another program,
 * with and without the drop-in. Sources: POSIX, pthread_mutexattr_setpshared(3p),
 * pthread_condattr_setpshared(3p), sem_init(3). */
#include "objects.h"

struct shared {
    pthread_mutex_t mutex;
    pthread_mutex_t recursive;
    pthread_mutex_t inheriting;
    pthread_cond_t cond, monotonic;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    pthread_spinlock_t spin;
    sem_t sem, done;
    int stage, turn, here;
    long counts[6];
};

static struct shared *make(char argument[16], int parties) {
    struct shared *shared = (struct shared *)memory_file(sizeof *shared, argument);
    pthread_rwlockattr_t rwlock;
    pthread_barrierattr_t barrier;
    init_mutex(&shared->mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, 0, 1);
    init_mutex(&shared->recursive, PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, 0, 1);
    init_mutex(&shared->inheriting, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 1);
    init_cond(&shared->cond, CLOCK_REALTIME, 1);
    init_cond(&shared->monotonic, CLOCK_MONOTONIC, 1);
    OK(pthread_rwlockattr_init(&rwlock));
    OK(pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED));
    OK(pthread_rwlock_init(&shared->rwlock, &rwlock));
    OK(pthread_barrierattr_init(&barrier));
    OK(pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED));
    OK(pthread_barrier_init(&shared->barrier, &barrier, (unsigned)parties));
    OK(pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED));
    OK(sem_init(&shared->sem, 1, 1));
    OK(sem_init(&shared->done, 1, 0));
    return shared;
}

enum { TURNS = 2000 };

/* Every process uses every object at once. */
static void work(struct shared *shared) {
    for (int turn = 0; turn < TURNS; turn++) {
        struct timespec later = after_ms(CLOCK_REALTIME, FAR_AWAY);
        OK(turn % 2 ? pthread_mutex_lock(&shared->mutex)
                    : pthread_mutex_timedlock(&shared->mutex, &later));
        *(volatile long *)&shared->counts[0] += 1;
        OK(pthread_mutex_unlock(&shared->mutex));
        OK(pthread_mutex_lock(&shared->recursive));
        OK(pthread_mutex_lock(&shared->recursive));
        *(volatile long *)&shared->counts[1] += 1;
        OK(pthread_mutex_unlock(&shared->recursive));
        OK(pthread_mutex_unlock(&shared->recursive));
        OK(pthread_mutex_lock(&shared->inheriting));
        *(volatile long *)&shared->counts[2] += 1;
        OK(pthread_mutex_unlock(&shared->inheriting));
        if (turn % 4 == 0) {
            OK(pthread_rwlock_wrlock(&shared->rwlock));
            *(volatile long *)&shared->counts[3] += 1;
        } else {
            OK(pthread_rwlock_rdlock(&shared->rwlock));
        }
        OK(pthread_rwlock_unlock(&shared->rwlock));
        OK(pthread_spin_lock(&shared->spin));
        *(volatile long *)&shared->counts[4] += 1;
        OK(pthread_spin_unlock(&shared->spin));
        OK(sem_wait(&shared->sem));
        *(volatile long *)&shared->counts[5] += 1;
        OK(sem_post(&shared->sem));
        if (turn % 100 == 0) pthread_barrier_wait(&shared->barrier);
    }
}

PART(work_too) { work((struct shared *)map_memory_file(sizeof(struct shared))); }

static void all_work(struct shared *shared, const pid_t *others, int how_many) {
    work(shared);
    for (int each = 0; each < how_many; each++) EQ(end_of(others[each]), 0);
    for (int each = 0; each < 6; each++)
        EQ(shared->counts[each], (how_many + 1) * TURNS / (each == 3 ? 4 : 1));
    OK(pthread_barrier_destroy(&shared->barrier));
    OK(pthread_rwlock_destroy(&shared->rwlock));
    OK(pthread_mutex_destroy(&shared->mutex));
    OK(sem_destroy(&shared->sem));
}

LONG_CASE(forked_processes_work, 60) {
    char argument[16];
    struct shared *shared = make(argument, 3);
    CHILD(first, work(shared));
    CHILD(second, work(shared));
    all_work(shared, (pid_t[]){first, second}, 2);
}

LONG_CASE(another_process_works, 60) {
    char argument[16];
    struct shared *shared = make(argument, 2);
    pid_t other = run_part("work_too", argument, 0);
    all_work(shared, &other, 1);
}

LONG_CASE(a_plain_process_works, 60) {
    char argument[16];
    struct shared *shared = make(argument, 2);
    pid_t other = run_part("work_too", argument, 1);
    all_work(shared, &other, 1);
}

LONG_CASE(one_of_each_works, 60) {
    char argument[16];
    struct shared *shared = make(argument, 3);
    pid_t others[] = {run_part("work_too", argument, 1), run_part("work_too", argument, 0)};
    all_work(shared, others, 2);
}

/* The environment turns the drop-in off: a process that understands only glibc's objects. */
LONG_CASE(one_that_is_off_works, 60) {
    char argument[16];
    struct shared *shared = make(argument, 2);
    setenv("WAITWORD", "off", 1);
    pid_t other = run_part("work_too", argument, 0);
    unsetenv("WAITWORD");
    all_work(shared, &other, 1);
}

/* ---- Waiting for each other ---- */

static void ping(struct shared *shared, int mine, int recursive) {
    pthread_mutex_t *mutex = recursive ? &shared->recursive : &shared->mutex;
    for (int turn = 0; turn < 500; turn++) {
        OK(pthread_mutex_lock(mutex));
        while (shared->turn != mine) {
            struct timespec later = after_ms(CLOCK_MONOTONIC, FAR_AWAY);
            pthread_cond_t *cond = mine ? &shared->cond : &shared->monotonic;
            if (turn % 3 == 0) OK(pthread_cond_wait(cond, mutex));
            if (turn % 3 == 1) OK(pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &later));
            if (turn % 3 == 2 && mine) later = after_ms(CLOCK_REALTIME, FAR_AWAY);
            if (turn % 3 == 2) OK(pthread_cond_timedwait(cond, mutex, &later));
        }
        shared->turn = !mine;
        OK(pthread_cond_signal(mine ? &shared->monotonic : &shared->cond));
        OK(pthread_mutex_unlock(mutex));
    }
}

PART(ping_there) { ping((struct shared *)map_memory_file(sizeof(struct shared)), 1, 0); }
PART(ping_there_recursive) { ping((struct shared *)map_memory_file(sizeof(struct shared)), 1, 1); }

static void ping_pong(const char *part, int plain) {
    char argument[16];
    struct shared *shared = make(argument, 2);
    pid_t other = run_part(part, argument, plain);
    ping(shared, 0, strcmp(part, "ping_there") != 0);
    EQ(end_of(other), 0);
    OK(pthread_cond_destroy(&shared->cond));
    OK(pthread_cond_destroy(&shared->monotonic));
}

CASE(ping_pong_with_another) { ping_pong("ping_there", 0); }
CASE(ping_pong_with_a_plain_one) { ping_pong("ping_there", 1); }
CASE(ping_pong_with_a_plain_one_recursive) { ping_pong("ping_there_recursive", 1); }

PART(wait_for_broadcast) {
    struct shared *shared = (struct shared *)map_memory_file(sizeof *shared);
    OK(pthread_mutex_lock(&shared->mutex));
    ADD(shared->here, 1);
    while (!shared->stage) OK(pthread_cond_wait(&shared->cond, &shared->mutex));
    OK(pthread_mutex_unlock(&shared->mutex));
    OK(sem_post(&shared->done));
}

CASE(broadcast_to_processes) {
    enum { MANY = 6 };
    char argument[16];
    struct shared *shared = make(argument, 2);
    pid_t others[MANY];
    for (int each = 0; each < MANY; each++)
        others[each] = run_part("wait_for_broadcast", argument, each % 2);
    UNTIL(GET(shared->here) == MANY);
    OK(pthread_mutex_lock(&shared->mutex));
    shared->stage = 1;
    OK(pthread_cond_broadcast(&shared->cond));
    OK(pthread_mutex_unlock(&shared->mutex));
    for (int each = 0; each < MANY; each++) OK(sem_wait(&shared->done));
    for (int each = 0; each < MANY; each++) EQ(end_of(others[each]), 0);
}

/* ---- kill -9 ---- */

PART(hold_everything) {
    struct shared *shared = (struct shared *)map_memory_file(sizeof *shared);
    OK(pthread_mutex_lock(&shared->mutex));
    OK(pthread_rwlock_wrlock(&shared->rwlock));
    OK(sem_wait(&shared->sem));
    SET(shared->stage, 1);
    for (;;) pause_ms(1000);
}

/* Non-robust objects stay locked; time limits hold; no other process is harmed. */
static void killed(int plain) {
    char argument[16];
    struct shared *shared = make(argument, 2);
    pid_t other = run_part("hold_everything", argument, plain);
    UNTIL(GET(shared->stage) == 1);
    OK(kill(other, SIGKILL));
    EQ(end_of(other), -SIGKILL);
    struct timespec soon = after_ms(CLOCK_REALTIME, 20);
    EQ(pthread_mutex_timedlock(&shared->mutex, &soon), ETIMEDOUT);
    EQ(pthread_mutex_trylock(&shared->mutex), EBUSY);
    EQ(pthread_rwlock_timedrdlock(&shared->rwlock, &soon), ETIMEDOUT);
    EQ(pthread_rwlock_timedwrlock(&shared->rwlock, &soon), ETIMEDOUT);
    EQ_ERRNO(sem_timedwait(&shared->sem, &soon), ETIMEDOUT);
    /* A semaphore has no owner: another process may post. */
    OK(sem_post(&shared->sem));
    OK(sem_wait(&shared->sem));
}

CASE(killed_with_locks) { killed(0); }
CASE(killed_plain_with_locks) { killed(1); }

PART(wait_until_killed) {
    struct shared *shared = (struct shared *)map_memory_file(sizeof *shared);
    OK(pthread_mutex_lock(&shared->mutex));
    ADD(shared->here, 1);
    while (!shared->stage) OK(pthread_cond_wait(&shared->cond, &shared->mutex));
    OK(pthread_mutex_unlock(&shared->mutex));
}

/* A waiter is killed: the others continue. A broadcast reaches all that are left. */
CASE(killed_waiters) {
    char argument[16];
    struct shared *shared = make(argument, 2);
    pid_t doomed = run_part("wait_until_killed", argument, 0);
    UNTIL(GET(shared->here) == 1);
    pid_t survivor = run_part("wait_until_killed", argument, 1);
    UNTIL(GET(shared->here) == 2);
    until_asleep_in(doomed, doomed);
    OK(kill(doomed, SIGKILL));
    EQ(end_of(doomed), -SIGKILL);
    until_asleep_in(survivor, survivor);
    OK(pthread_mutex_lock(&shared->mutex));
    shared->stage = 1;
    OK(pthread_cond_broadcast(&shared->cond));
    OK(pthread_mutex_unlock(&shared->mutex));
    EQ(end_of(survivor), 0);
}
