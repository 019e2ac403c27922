/* chain: A waits for `lock_1`, whose holder B waits for `lock_2`, whose holder C sleeps. */
/* C sleeps 20 ms in each of its sections and stays out for 4 ms. B locks both locks in turn and
 * does nothing with them, so whenever B keeps lock_1 for long, it waits for lock_2. A's waits must
 * be charged to C: it holds lock_2 and sleeps in clock_nanosleep. */
#include "truth.h"

static pthread_mutex_t lock_1 = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock_2 = PTHREAD_MUTEX_INITIALIZER;
static struct site a_site = SITE("a_waits_for_lock_1");
static struct site b_first_site = SITE("b_holds_lock_1");
static struct site b_site = SITE("b_waits_for_lock_2");
static struct site c_site = SITE("c_holds_lock_2");
static struct section b_sections, c_sections;

NAMED static void c_sleeps_in_its_section(void) {
    sleep_ns(20 * MS);
}

NAMED static void *c_holds_lock_2(void *nothing) {
    while (goes_on(c_sections.count)) {
        struct moment from;
        locked(&c_site, &lock_2);
        from = moment();
        c_sleeps_in_its_section();
        add_section(&c_sections, from);
        unlocked(&lock_2);
        sleep_ns(4 * MS);
    }
    return nothing;
}

NAMED static void b_waits_for_lock_2(void) {
    locked(&b_site, &lock_2);
    unlocked(&lock_2);
}

NAMED static void *b_holds_lock_1(void *nothing) {
    while (goes_on(b_sections.count)) {
        struct moment from;
        locked(&b_first_site, &lock_1);
        from = moment();
        b_waits_for_lock_2();
        add_section(&b_sections, from);
        unlocked(&lock_1);
        sleep_ns(MS);
    }
    return nothing;
}

NAMED static void *a_waits_for_lock_1(void *nothing) {
    while (time_left()) {
        locked(&a_site, &lock_1);
        unlocked(&lock_1);
        sleep_ns(MS);
    }
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t a, b, c;
    start_run(count, arguments);
    start(&c, c_holds_lock_2, NULL);
    start(&b, b_holds_lock_1, NULL);
    start(&a, a_waits_for_lock_1, NULL);
    join(a);
    join(b);
    join(c);
    print_site(&a_site);
    print_site(&b_first_site);
    print_site(&b_site);
    print_site(&c_site);
    print_section("b", &b_sections);
    printf("answer b_waiting_for_lock_2_percent %.1f\n",
           100.0 * (double)b_site.nanoseconds / (double)b_sections.sum.wall);
    print_section("c", &c_sections);
    return 0;
}
