/* Reads pthread calls from stdin, one per line, makes them, and writes the answer to each.
 *
 * A line is THREAD CALL OBJECT ARGUMENT. `.` ends a sequence; after it, all objects are new. Three
 * threads make the calls, one at a time. A call that would wait is made only with a time that has
 * passed. Calls that POSIX and glibc leave undefined (an unlock by a thread that has not locked, a
 * second init) are skipped, with the answer `-`. Threads get their orders through pipes, so that
 * nothing but the requested calls touches a lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, OBJECTS = 2, SKIPPED = -1000 };

static struct objects {
    pthread_mutex_t mutex[OBJECTS];
    pthread_rwlock_t rwlock[OBJECTS];
    pthread_cond_t cond[OBJECTS];
    sem_t sem[OBJECTS];
    pthread_barrier_t barrier[OBJECTS];
    pthread_spinlock_t spin[OBJECTS];
    pthread_once_t once[OBJECTS];
} *all;

/* The objects' states, as the answers so far imply. */
static struct known {
    struct mutex {
        bool live, checked, inherits, robust, dead;
        int held[THREADS];
    } mutex[OBJECTS];
    struct rwlock {
        bool live;
        int reads[THREADS], writes[THREADS];
    } rwlock[OBJECTS];
    struct {
        bool live;
    } cond[OBJECTS], sem[OBJECTS];
    struct {
        bool live;
        unsigned count;
    } barrier[OBJECTS];
    struct {
        bool live;
        int holder; /* plus 1 */
    } spin[OBJECTS];
} known;

static int times_once;
static void once_routine(void)
{
    times_once++;
}

static const struct timespec times[] = {{1, 0},          {0, 0},  {-1, 0},
                                        {1, 1000000000}, {1, -1}, {-1, -1}};
static const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, 77};
static const struct timespec *time_of(int argument)
{
    return &times[argument % 6];
}
static int clock_of(int argument)
{
    return clocks[argument / 6 % 3];
}

static int make_mutex(struct mutex *about, pthread_mutex_t *mutex, int argument)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    pthread_mutexattr_t attributes;
    int type = types[argument % 4];
    bool inherits = argument / 4 % 2, robust = argument / 8 % 2, shared = argument / 16 % 2;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setprotocol(&attributes, inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
    pthread_mutexattr_setrobust(&attributes, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
    pthread_mutexattr_setpshared(&attributes, shared);
    int answer = pthread_mutex_init(mutex, &attributes);
    *about = (struct mutex){
        .live = answer == 0,
        .checked = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK,
        .inherits = inherits,
        .robust = robust,
    };
    return answer;
}

static bool is_held(const int *held)
{
    return held[0] || held[1] || held[2];
}

/* Records the answer to a lock call. */
static int locked(struct mutex *about, int me, int answer)
{
    if (answer == 0 || answer == EOWNERDEAD)
        about->held[me]++;
    if (answer == EOWNERDEAD)
        about->dead = true;
    return answer;
}

static int on_mutex(int me, const char *call, int which, int argument)
{
    pthread_mutex_t *mutex = &all->mutex[which];
    struct mutex *about = &known.mutex[which];
    if (strcmp(call, "init") == 0)
        return about->live ? SKIPPED : make_mutex(about, mutex, argument);
    if (!about->live)
        return SKIPPED;
    if (strcmp(call, "destroy") == 0) {
        if (is_held(about->held) || about->dead)
            return SKIPPED;
        int answer = pthread_mutex_destroy(mutex);
        about->live = answer != 0;
        return answer;
    }
    if (strcmp(call, "trylock") == 0)
        return locked(about, me, pthread_mutex_trylock(mutex));
    if (strcmp(call, "timedlock") == 0)
        return locked(about, me, pthread_mutex_timedlock(mutex, time_of(argument)));
    if (strcmp(call, "clocklock") == 0)
        return locked(about, me,
                      pthread_mutex_clocklock(mutex, clock_of(argument), time_of(argument)));
    if (strcmp(call, "lock") == 0) {
        int others = is_held(about->held) && !about->held[me];
        if (others || (about->held[me] && !about->checked))
            return SKIPPED;
        return locked(about, me, pthread_mutex_lock(mutex));
    }
    if (strcmp(call, "consistent") == 0) {
        if (!about->robust || !about->held[me])
            return SKIPPED;
        int answer = pthread_mutex_consistent(mutex);
        about->dead = about->dead && answer != 0;
        return answer;
    }
    /* unlock */
    if (!about->held[me] && !about->checked)
        return SKIPPED;
    int answer = pthread_mutex_unlock(mutex);
    if (answer == 0 && about->held[me])
        about->held[me]--;
    /* No thread can lock it any longer. In glibc 2.36, a trylock that reports this leaves the mutex
     * locked, and a lock then hangs. */
    if (about->dead && !is_held(about->held))
        about->live = false;
    return answer;
}

static int on_rwlock(int me, const char *call, int which, int argument)
{
    pthread_rwlock_t *rwlock = &all->rwlock[which];
    struct rwlock *about = &known.rwlock[which];
    if (strcmp(call, "init") == 0) {
        if (about->live)
            return SKIPPED;
        pthread_rwlockattr_t attributes;
        pthread_rwlockattr_init(&attributes);
        pthread_rwlockattr_setkind_np(&attributes, argument % 3);
        pthread_rwlockattr_setpshared(&attributes, argument / 3 % 2);
        int answer = pthread_rwlock_init(rwlock, &attributes);
        *about = (struct rwlock){.live = answer == 0};
        return answer;
    }
    if (!about->live)
        return SKIPPED;
    int answer, *held = about->reads;
    if (strcmp(call, "destroy") == 0) {
        if (is_held(about->reads) || is_held(about->writes))
            return SKIPPED;
        answer = pthread_rwlock_destroy(rwlock);
        about->live = answer != 0;
        return answer;
    } else if (strcmp(call, "unlock") == 0) {
        held = about->reads[me] ? about->reads : about->writes;
        if (!held[me])
            return SKIPPED;
        answer = pthread_rwlock_unlock(rwlock);
        held[me] -= answer == 0;
        return answer;
    } else if (strcmp(call, "tryrdlock") == 0) {
        answer = pthread_rwlock_tryrdlock(rwlock);
    } else if (strcmp(call, "timedrdlock") == 0) {
        answer = pthread_rwlock_timedrdlock(rwlock, time_of(argument));
    } else if (strcmp(call, "clockrdlock") == 0) {
        answer = pthread_rwlock_clockrdlock(rwlock, clock_of(argument), time_of(argument));
    } else {
        held = about->writes;
        if (strcmp(call, "trywrlock") == 0)
            answer = pthread_rwlock_trywrlock(rwlock);
        else if (strcmp(call, "timedwrlock") == 0)
            answer = pthread_rwlock_timedwrlock(rwlock, time_of(argument));
        else
            answer = pthread_rwlock_clockwrlock(rwlock, clock_of(argument), time_of(argument));
    }
    held[me] += answer == 0;
    return answer;
}

static int on_cond(int me, const char *call, int which, int argument)
{
    pthread_cond_t *cond = &all->cond[which];
    bool *live = &known.cond[which].live;
    if (strcmp(call, "init") == 0) {
        if (*live)
            return SKIPPED;
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, argument % 2);
        pthread_condattr_setpshared(&attributes, argument / 2 % 2);
        int answer = pthread_cond_init(cond, &attributes);
        *live = answer == 0;
        return answer;
    }
    if (!*live)
        return SKIPPED;
    if (strcmp(call, "destroy") == 0) {
        int answer = pthread_cond_destroy(cond);
        *live = answer != 0;
        return answer;
    }
    if (strcmp(call, "signal") == 0)
        return pthread_cond_signal(cond);
    if (strcmp(call, "broadcast") == 0)
        return pthread_cond_broadcast(cond);
    /* With the mutex of the same number, locked once. */
    struct mutex *about = &known.mutex[which];
    pthread_mutex_t *mutex = &all->mutex[which];
    if (!about->live || about->held[me] != 1 || about->dead)
        return SKIPPED;
    if (strcmp(call, "timedwait") == 0)
        return pthread_cond_timedwait(cond, mutex, time_of(argument));
    return pthread_cond_clockwait(cond, mutex, clock_of(argument), time_of(argument));
}

static int in_errno(int answer)
{
    return answer == -1 ? errno : answer;
}

static int on_sem(const char *call, int which, int argument)
{
    sem_t *sem = &all->sem[which];
    bool *live = &known.sem[which].live;
    static const unsigned values[] = {0, 1, 2, SEM_VALUE_MAX, SEM_VALUE_MAX + 1u};
    int value = 0, answer;
    if (strcmp(call, "init") == 0) {
        if (*live)
            return SKIPPED;
        answer = in_errno(sem_init(sem, argument / 5 % 2, values[argument % 5]));
        *live = answer == 0;
        return answer;
    }
    if (!*live)
        return SKIPPED;
    if (strcmp(call, "destroy") == 0) {
        answer = in_errno(sem_destroy(sem));
        *live = answer != 0;
        return answer;
    }
    if (strcmp(call, "post") == 0)
        return in_errno(sem_post(sem));
    if (strcmp(call, "trywait") == 0)
        return in_errno(sem_trywait(sem));
    if (strcmp(call, "timedwait") == 0)
        return in_errno(sem_timedwait(sem, time_of(argument)));
    if (strcmp(call, "clockwait") == 0)
        return in_errno(sem_clockwait(sem, clock_of(argument), time_of(argument)));
    answer = in_errno(sem_getvalue(sem, &value));
    return answer ? answer : 10000 + (value > 100 ? 100 : value);
}

static int on_others(int me, const char *call, int which, int argument)
{
    if (strcmp(call, "once") == 0) {
        int answer = pthread_once(&all->once[which], once_routine);
        return answer ? answer : 10000 + times_once;
    }
    if (strcmp(call, "barrier_init") == 0) {
        if (known.barrier[which].live)
            return SKIPPED;
        int answer = pthread_barrier_init(&all->barrier[which], NULL, argument % 3);
        known.barrier[which].live = answer == 0;
        known.barrier[which].count = argument % 3;
        return answer;
    }
    if (strncmp(call, "barrier", 7) == 0) {
        if (!known.barrier[which].live)
            return SKIPPED;
        if (strcmp(call, "barrier_wait") == 0)
            return known.barrier[which].count == 1 ? pthread_barrier_wait(&all->barrier[which])
                                                   : SKIPPED;
        int answer = pthread_barrier_destroy(&all->barrier[which]);
        known.barrier[which].live = answer != 0;
        return answer;
    }
    int *holder = &known.spin[which].holder;
    if (strcmp(call, "spin_init") == 0) {
        if (known.spin[which].live)
            return SKIPPED;
        known.spin[which].live = true;
        return pthread_spin_init(&all->spin[which], argument % 2);
    }
    if (!known.spin[which].live)
        return SKIPPED;
    if (strcmp(call, "spin_trylock") == 0) {
        int answer = pthread_spin_trylock(&all->spin[which]);
        if (answer == 0)
            *holder = me + 1;
        return answer;
    }
    if (*holder != me + 1)
        return SKIPPED;
    *holder = 0;
    return pthread_spin_unlock(&all->spin[which]);
}

/* Threads. */

struct order {
    char call[32];
    int which, argument;
};

static int orders[THREADS][2], answers[2];
static pthread_t threads[THREADS];

static int obey(int me, const struct order *order)
{
    const char *call = order->call;
    if (strncmp(call, "mutex_", 6) == 0)
        return on_mutex(me, call + 6, order->which, order->argument);
    if (strncmp(call, "rwlock_", 7) == 0)
        return on_rwlock(me, call + 7, order->which, order->argument);
    if (strncmp(call, "cond_", 5) == 0)
        return on_cond(me, call + 5, order->which, order->argument);
    if (strncmp(call, "sem_", 4) == 0)
        return on_sem(call + 4, order->which, order->argument);
    return on_others(me, call, order->which, order->argument);
}

static void transfer(ssize_t moved, size_t wanted)
{
    if (moved != (ssize_t)wanted)
        _exit(3);
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    for (;;) {
        struct order order;
        transfer(read(orders[me][0], &order, sizeof order), sizeof order);
        if (strcmp(order.call, "exit") == 0)
            return NULL;
        int answer = obey(me, &order);
        transfer(write(answers[1], &answer, sizeof answer), sizeof answer);
    }
}

static void start(int me)
{
    if (pthread_create(&threads[me], NULL, work, (void *)(long)me))
        _exit(3);
}

/* Ends the thread and starts another in its place. Robust mutexes that it held are then dead. */
static int ends(int me, const struct order *order)
{
    for (int i = 0; i < OBJECTS; i++) {
        struct mutex *about = &known.mutex[i];
        struct rwlock *rwlock = &known.rwlock[i];
        bool held = rwlock->reads[me] || rwlock->writes[me] || known.spin[i].holder == me + 1;
        if (held || (about->held[me] && !about->robust))
            return SKIPPED;
    }
    transfer(write(orders[me][1], order, sizeof *order), sizeof *order);
    pthread_join(threads[me], NULL);
    for (int i = 0; i < OBJECTS; i++) {
        known.mutex[i].dead |= known.mutex[i].held[me] != 0;
        known.mutex[i].held[me] = 0;
    }
    start(me);
    return 0;
}

static void start_over(void)
{
    /* The old objects are leaked: threads may still hold them. */
    all = calloc(1, sizeof *all);
    memset(&known, 0, sizeof known);
    times_once = 0;
}

int main(void)
{
    char line[128];
    if (pipe(answers))
        return 3;
    start_over();
    for (int me = 0; me < THREADS; me++) {
        if (pipe(orders[me]))
            return 3;
        start(me);
    }
    while (fgets(line, sizeof line, stdin)) {
        struct order order = {0};
        int me, answer;
        if (line[0] == '.') {
            start_over();
            printf(".\n");
            fflush(stdout);
            continue;
        }
        if (sscanf(line, "%d %31s %d %d", &me, order.call, &order.which, &order.argument) != 4)
            return 4;
        if (strcmp(order.call, "exit") == 0) {
            answer = ends(me, &order);
        } else {
            transfer(write(orders[me][1], &order, sizeof order), sizeof order);
            transfer(read(answers[0], &answer, sizeof answer), sizeof answer);
        }
        if (answer == SKIPPED)
            printf("-\n");
        else
            printf("%d\n", answer);
    }
    return 0;
}
