/* ww_rwlock_t: every function, every error, both preferences and scopes. */
#define _GNU_SOURCE

#include "threads.h"

#include <waitword.h>

/* The lock, and the data that it protects: two numbers that are always equal. */
struct pair {
    ww_rwlock_t rwlock;
    long first, second;
};

static struct pair *pair;

static void *is_written(void *unused)
{
    ANSWERS(EBUSY, ww_rwlock_tryrdlock(&pair->rwlock));
    ANSWERS(EBUSY, ww_rwlock_trywrlock(&pair->rwlock));
    ANSWERS(EBUSY, ww_rwlock_destroy(&pair->rwlock));
    TIMES_OUT(ww_rwlock_timedrdlock, ww_rwlock_clockrdlock, &pair->rwlock);
    return unused;
}

static void *cannot_write(void *unused)
{
    ANSWERS(EBUSY, ww_rwlock_trywrlock(&pair->rwlock));
    ANSWERS(EBUSY, ww_rwlock_destroy(&pair->rwlock));
    TIMES_OUT(ww_rwlock_timedwrlock, ww_rwlock_clockwrlock, &pair->rwlock);
    return unused;
}

static void *can_read(void *unused)
{
    ANSWERS(0, ww_rwlock_tryrdlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_rdlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_timedrdlock(&pair->rwlock, NULL)); /* not checked */
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_clockrdlock(&pair->rwlock, CLOCK_MONOTONIC, &past));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    return unused;
}

static void *can_write(void *unused)
{
    ANSWERS(0, ww_rwlock_trywrlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_wrlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_timedwrlock(&pair->rwlock, &too_many_ns));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_clockwrlock(&pair->rwlock, CLOCK_REALTIME, &past));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    return unused;
}

static void alone(void)
{
    struct timespec late = never(CLOCK_REALTIME);
    ANSWERS(EPERM, ww_rwlock_unlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_wrlock(&pair->rwlock));
    elsewhere(is_written, NULL);
    elsewhere(cannot_write, NULL);
    ANSWERS(EDEADLK, ww_rwlock_wrlock(&pair->rwlock));
    ANSWERS(EDEADLK, ww_rwlock_rdlock(&pair->rwlock));
    ANSWERS(EDEADLK, ww_rwlock_timedwrlock(&pair->rwlock, &late));
    ANSWERS(EDEADLK, ww_rwlock_timedrdlock(&pair->rwlock, &late));
    ANSWERS(EBUSY, ww_rwlock_trywrlock(&pair->rwlock));
    ANSWERS(EBUSY, ww_rwlock_tryrdlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    elsewhere(can_write, NULL);

    ANSWERS(0, ww_rwlock_rdlock(&pair->rwlock));
    ANSWERS(0, ww_rwlock_tryrdlock(&pair->rwlock));
    elsewhere(can_read, NULL);
    elsewhere(cannot_write, NULL);
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    elsewhere(cannot_write, NULL);
    ANSWERS(ETIMEDOUT, ww_rwlock_timedwrlock(&pair->rwlock, &past)); /* deadlock not detected */
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    elsewhere(can_write, NULL);
    ANSWERS(EPERM, ww_rwlock_unlock(&pair->rwlock));
}

#define CLOCKED(clock, time) ww_rwlock_upgradable_clocklock(&pair->rwlock, clock, time)

/* Run while another thread holds the lock upgradably. */
static void *can_but_read(void *unused)
{
    ANSWERS(EBUSY, ww_rwlock_upgradable_trylock(&pair->rwlock));
    ANSWERS(ETIMEDOUT, CLOCKED(CLOCK_MONOTONIC, &past));
    ANSWERS(ETIMEDOUT, CLOCKED(CLOCK_REALTIME, &past));
    ANSWERS(EINVAL, CLOCKED(CLOCK_MONOTONIC, NULL));
    ANSWERS(EINVAL, CLOCKED(CLOCK_MONOTONIC, &too_many_ns));
    ANSWERS(EINVAL, CLOCKED(CLOCK_BOOTTIME, &past));
    cannot_write(NULL);
    return can_read(unused);
}

static void upgrade(void)
{
    ww_rwlock_t *rwlock = &pair->rwlock;
    ANSWERS(EPERM, ww_rwlock_upgradable_unlock(rwlock));
    ANSWERS(EPERM, ww_rwlock_upgrade(rwlock));
    ANSWERS(EPERM, ww_rwlock_tryupgrade(rwlock));
    ANSWERS(EPERM, ww_rwlock_clockupgrade(rwlock, CLOCK_MONOTONIC, &past));
    ANSWERS(EPERM, ww_rwlock_downgrade(rwlock));
    ANSWERS(EPERM, ww_rwlock_downgrade_to_upgradable(rwlock));
    ANSWERS(EPERM, ww_rwlock_upgradable_downgrade(rwlock));

    ANSWERS(0, ww_rwlock_upgradable_lock(rwlock));
    elsewhere(can_but_read, NULL);
    ANSWERS(0, ww_rwlock_upgrade(rwlock));
    elsewhere(is_written, NULL);
    ANSWERS(EDEADLK, ww_rwlock_wrlock(rwlock));
    ANSWERS(EPERM, ww_rwlock_upgrade(rwlock));
    ANSWERS(0, ww_rwlock_downgrade_to_upgradable(rwlock));
    elsewhere(can_but_read, NULL);

    ANSWERS(0, ww_rwlock_rdlock(rwlock)); /* on behalf of another thread */
    ANSWERS(EBUSY, ww_rwlock_tryupgrade(rwlock));
    ANSWERS(ETIMEDOUT, ww_rwlock_clockupgrade(rwlock, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_rwlock_clockupgrade(rwlock, CLOCK_MONOTONIC, NULL));
    ANSWERS(EINVAL, ww_rwlock_clockupgrade(rwlock, CLOCK_BOOTTIME, &past));
    elsewhere(can_but_read, NULL);
    ANSWERS(0, ww_rwlock_unlock(rwlock));
    ANSWERS(0, ww_rwlock_tryupgrade(rwlock));
    ANSWERS(0, ww_rwlock_downgrade(rwlock));
    elsewhere(can_read, NULL);
    elsewhere(cannot_write, NULL);
    ANSWERS(0, ww_rwlock_upgradable_trylock(rwlock)); /* alongside a reader */
    ANSWERS(0, ww_rwlock_unlock(rwlock));
    ANSWERS(0, ww_rwlock_clockupgrade(rwlock, CLOCK_REALTIME, &past)); /* not checked */
    ANSWERS(0, ww_rwlock_unlock(rwlock));

    ANSWERS(0, ww_rwlock_upgradable_clocklock(rwlock, CLOCK_REALTIME, NULL)); /* not checked */
    ANSWERS(0, ww_rwlock_upgradable_downgrade(rwlock));
    elsewhere(can_read, NULL);
    ANSWERS(EPERM, ww_rwlock_upgradable_unlock(rwlock));
    ANSWERS(0, ww_rwlock_unlock(rwlock));
    ANSWERS(0, ww_rwlock_upgradable_lock(rwlock));
    ANSWERS(0, ww_rwlock_upgradable_unlock(rwlock));
    elsewhere(can_write, NULL);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *use(void *number)
{
    for (intptr_t i = (intptr_t)number; i < ROUNDS + (intptr_t)number; i++) {
        if (i % 4 == 0) {
            struct timespec late = never(CLOCK_MONOTONIC);
            if (i % 8 ? ww_rwlock_wrlock(&pair->rwlock)
                      : ww_rwlock_clockwrlock(&pair->rwlock, CLOCK_MONOTONIC, &late))
                GIVES(0, i);
            pair->first++;
            if (i % 64 == 0)
                sched_yield();
            pair->second++;
        } else {
            struct timespec late = never(CLOCK_REALTIME);
            if (i % 8 != 1 ? ww_rwlock_rdlock(&pair->rwlock)
                           : ww_rwlock_timedrdlock(&pair->rwlock, &late))
                GIVES(0, i);
            if (pair->first != pair->second)
                GIVES(pair->first, pair->second);
            if (i % 32 == 2) { /* upgrade and downgrade; no other thread writes meanwhile */
                ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
                ANSWERS(0, ww_rwlock_upgradable_lock(&pair->rwlock));
                long seen = pair->first;
                ANSWERS(0, ww_rwlock_upgrade(&pair->rwlock));
                GIVES(seen, pair->first);
                pair->first++;
                pair->second++;
                ANSWERS(0, ww_rwlock_downgrade_to_upgradable(&pair->rwlock));
                GIVES(seen + 1, pair->second);
                ANSWERS(0, ww_rwlock_upgrade(&pair->rwlock));
                pair->first--;
                pair->second--;
                ANSWERS(0, ww_rwlock_downgrade(&pair->rwlock));
            }
        }
        if (ww_rwlock_unlock(&pair->rwlock) != 0)
            GIVES(0, i);
    }
    return NULL;
}

static void among_threads(void)
{
    pthread_t threads[THREADS];
    pair->first = pair->second = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        threads[i] = start(use, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    GIVES(THREADS * ROUNDS / 4, pair->first);
    GIVES(THREADS * ROUNDS / 4, pair->second);
}

static void among_processes(void)
{
    pair->first = pair->second = 0;
    pid_t child = fork_child();
    use((void *)(intptr_t)(child == 0));
    if (child == 0)
        end_of_child();
    wait_for_child(child);
    GIVES(2 * ROUNDS / 4, pair->first);
}

static void bad_input(void)
{
    ww_rwlock_t rwlock;
    ww_rwlock_t *odd = (ww_rwlock_t *)((char *)&rwlock + 4);
    static const ww_rwlock_t zeros, readers = WW_RWLOCK_INITIALIZER,
                                    writers = WW_WRITER_RWLOCK_INITIALIZER;
    ANSWERS(0, ww_rwlock_init(&rwlock, WW_RWLOCK_PREFER_READER));
    GIVES(0, memcmp(&rwlock, &zeros, sizeof rwlock));
    GIVES(0, memcmp(&rwlock, &readers, sizeof rwlock));
    ANSWERS(0, ww_rwlock_init(&rwlock, WW_RWLOCK_PREFER_WRITER));
    GIVES(0, memcmp(&rwlock, &writers, sizeof rwlock));
    static const ww_rwlock_t shared = WW_RWLOCK_INITIALIZER_WITH(WW_PROCESS_SHARED),
                             shared_writers = WW_RWLOCK_INITIALIZER_WITH(WW_RWLOCK_PREFER_WRITER |
                                                                         WW_PROCESS_SHARED);
    ANSWERS(0, ww_rwlock_init(&rwlock, WW_PROCESS_SHARED));
    GIVES(0, memcmp(&rwlock, &shared, sizeof rwlock));
    ANSWERS(0, ww_rwlock_init(&rwlock, WW_PROCESS_SHARED | WW_RWLOCK_PREFER_WRITER));
    GIVES(0, memcmp(&rwlock, &shared_writers, sizeof rwlock));
    ANSWERS(EINVAL, ww_rwlock_init(&rwlock, 2));
    ANSWERS(EINVAL, ww_rwlock_init(&rwlock, WW_PRIVATE));
    ANSWERS(EINVAL, ww_rwlock_init(NULL, 0));
    ANSWERS(EINVAL, ww_rwlock_init(odd, 0));
    ANSWERS(EINVAL, ww_rwlock_destroy(NULL));
    ANSWERS(EINVAL, ww_rwlock_rdlock(NULL));
    ANSWERS(EINVAL, ww_rwlock_rdlock(odd));
    ANSWERS(EINVAL, ww_rwlock_tryrdlock(NULL));
    ANSWERS(EINVAL, ww_rwlock_timedrdlock(NULL, &past));
    ANSWERS(EINVAL, ww_rwlock_clockrdlock(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_rwlock_wrlock(NULL));
    ANSWERS(EINVAL, ww_rwlock_wrlock(odd));
    ANSWERS(EINVAL, ww_rwlock_trywrlock(NULL));
    ANSWERS(EINVAL, ww_rwlock_timedwrlock(NULL, &past));
    ANSWERS(EINVAL, ww_rwlock_clockwrlock(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_rwlock_unlock(NULL));
    ANSWERS(EINVAL, ww_rwlock_upgradable_lock(NULL));
    ANSWERS(EINVAL, ww_rwlock_upgradable_lock(odd));
    ANSWERS(EINVAL, ww_rwlock_upgradable_trylock(NULL));
    ANSWERS(EINVAL, ww_rwlock_upgradable_clocklock(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_rwlock_upgradable_unlock(NULL));
    ANSWERS(EINVAL, ww_rwlock_upgrade(NULL));
    ANSWERS(EINVAL, ww_rwlock_tryupgrade(odd));
    ANSWERS(EINVAL, ww_rwlock_clockupgrade(NULL, CLOCK_MONOTONIC, &past));
    ANSWERS(EINVAL, ww_rwlock_downgrade(NULL));
    ANSWERS(EINVAL, ww_rwlock_downgrade_to_upgradable(NULL));
    ANSWERS(EINVAL, ww_rwlock_upgradable_downgrade(odd));
}

static void *gives_up_reading(void *unused)
{
    ANSWERS(ETIMEDOUT, ww_rwlock_timedrdlock(&pair->rwlock, &past));
    return unused;
}

static void *waits_to_write(void *unused)
{
    ANSWERS(0, ww_rwlock_wrlock(&pair->rwlock));
    elsewhere(gives_up_reading, NULL);
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    return unused;
}

/* Regression: destroying an unused process-shared lock returned EBUSY after threads had timed
 * out. */
static void destroyed_after_some_gave_up(unsigned flags)
{
    ANSWERS(0, ww_rwlock_init(&pair->rwlock, flags));
    ANSWERS(0, ww_rwlock_wrlock(&pair->rwlock));
    pthread_t writer = start(waits_to_write, NULL);
    usleep(50000); /* by now it probably sleeps */
    ANSWERS(0, ww_rwlock_unlock(&pair->rwlock));
    join(writer);
    ANSWERS(0, ww_rwlock_destroy(&pair->rwlock));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that a hang keeps earlier output */
    bad_input();
    pair = shared_memory(sizeof *pair);
    for (unsigned scope = 0; scope <= WW_PROCESS_SHARED; scope += WW_PROCESS_SHARED) {
        for (unsigned preference = 0; preference <= WW_RWLOCK_PREFER_WRITER; preference++) {
            unsigned flags = scope | preference;
            printf("flags %#x\n", flags);
            ANSWERS(0, ww_rwlock_init(&pair->rwlock, flags));
            alone();
            upgrade();
            among_threads();
            if (scope)
                among_processes();
            alone(); /* again, with what the lock has learnt */
            upgrade();
            ANSWERS(0, ww_rwlock_destroy(&pair->rwlock));
            destroyed_after_some_gave_up(flags);
        }
    }
    return report("rwlock");
}
