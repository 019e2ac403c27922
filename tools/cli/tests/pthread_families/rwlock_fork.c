/* A forked child has a rwlock as its parent had it, and may release what the forking thread
 * held. The parent's waiters are not in the child. */
#include "served.h"

static pthread_rwlock_t lock;
static volatile int is_held, may_leave;

static void *write_in_the_end(void *unused)
{
    set(&is_held);
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *hold_for_writing(void *unused)
{
    pthread_rwlock_wrlock(&lock);
    set(&is_held);
    comes(&may_leave);
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void)
{
    GIVES(0, pthread_rwlock_init(&lock, NULL));

    /* The forking thread writes, and another thread waits. */
    GIVES(0, pthread_rwlock_wrlock(&lock));
    pthread_t waiter = start(write_in_the_end, NULL);
    comes(&is_held);
    sleep_ms(20);
    pid_t child = fork_child();
    if (child == 0) {
        GIVES(EBUSY, pthread_rwlock_trywrlock(&lock));
        /* (The child's thread has another number than the thread that forked, so glibc does not
         * recognise it as the owner.) */
        if (ours()) {
            GIVES(EDEADLK, pthread_rwlock_wrlock(&lock));
            GIVES(0, pthread_rwlock_unlock(&lock));
            GIVES(0, pthread_rwlock_wrlock(&lock));
            GIVES(0, pthread_rwlock_unlock(&lock));
            GIVES(0, pthread_rwlock_rdlock(&lock));
            GIVES(0, pthread_rwlock_unlock(&lock));
            GIVES(0, pthread_rwlock_destroy(&lock));
        }
        end_of_child();
    }
    wait_for_child(child);
    GIVES(0, pthread_rwlock_unlock(&lock));
    join(waiter);

    /* The forking thread reads. */
    GIVES(0, pthread_rwlock_rdlock(&lock));
    child = fork_child();
    if (child == 0) {
        GIVES(EBUSY, pthread_rwlock_trywrlock(&lock));
        GIVES(0, pthread_rwlock_unlock(&lock));
        GIVES(0, pthread_rwlock_trywrlock(&lock));
        GIVES(0, pthread_rwlock_unlock(&lock));
        end_of_child();
    }
    wait_for_child(child);
    GIVES(0, pthread_rwlock_unlock(&lock));

    /* Another thread writes. No thread in the child can release the lock, but the child can
     * initialise it again. */
    is_held = 0;
    pthread_t holder = start(hold_for_writing, NULL);
    comes(&is_held);
    child = fork_child();
    if (child == 0) {
        struct timespec soon = in_ms(CLOCK_REALTIME, 30);
        GIVES(ETIMEDOUT, pthread_rwlock_timedrdlock(&lock, &soon));
        GIVES(0, pthread_rwlock_init(&lock, NULL));
        GIVES(0, pthread_rwlock_wrlock(&lock));
        GIVES(0, pthread_rwlock_unlock(&lock));
        end_of_child();
    }
    wait_for_child(child);
    set(&may_leave);
    join(holder);
    GIVES(0, pthread_rwlock_destroy(&lock));
    return report("rwlock_fork");
}
