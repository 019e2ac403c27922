/* unfair: of two threads that share `lock`, `often` gets it exactly nine times as often. */
/* The threads take turns by semaphores: nine sections of the one, then one of the other. They do
 * contend: each lets the other come while it still holds the lock and sleeps 1 ms more. */
#include "truth.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site often_site = SITE("thread_that_locks_often");
static struct site seldom_site = SITE("thread_that_locks_seldom");
static sem_t seldom_may_come, often_may_come;
static long taken_often, taken_seldom;
static int ending;

NAMED static void *thread_that_locks_often(void *nothing) {
    while (time_left()) {
        for (int i = 1; i <= 9; i++) {
            locked(&often_site, &lock);
            taken_often++;
            if (i == 9) check_call(sem_post(&seldom_may_come), "sem_post");
            sleep_ns(MS);
            unlocked(&lock);
        }
        check_call(sem_wait(&often_may_come), "sem_wait");
    }
    ending = 1;
    check_call(sem_post(&seldom_may_come), "sem_post");
    return nothing;
}

NAMED static void *thread_that_locks_seldom(void *nothing) {
    for (;;) {
        check_call(sem_wait(&seldom_may_come), "sem_wait");
        if (ending) return nothing;
        locked(&seldom_site, &lock);
        taken_seldom++;
        check_call(sem_post(&often_may_come), "sem_post");
        sleep_ns(MS);
        unlocked(&lock);
    }
}

int main(int count, char **arguments) {
    pthread_t often, seldom;
    start_run(count, arguments);
    check_call(sem_init(&seldom_may_come, 0, 0), "sem_init");
    check_call(sem_init(&often_may_come, 0, 0), "sem_init");
    start(&often, thread_that_locks_often, NULL);
    start(&seldom, thread_that_locks_seldom, NULL);
    check(pthread_setname_np(often, "often"), "setname");
    check(pthread_setname_np(seldom, "seldom"), "setname");
    join(often);
    join(seldom);
    print_site(&often_site);
    print_site(&seldom_site);
    printf("answer taken often %ld\n", taken_often);
    printf("answer taken seldom %ld\n", taken_seldom);
    return 0;
}
