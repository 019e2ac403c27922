/* join: a thread waits in pthread_join for one that computes: a join, no contention. */
/* The computing thread ends with the run. There is no lock in the program. */
#include "truth.h"

static struct site join_site = SITE("joiner_waits_for_the_result");
static struct section computation;
static pthread_t computing;

NAMED static void *computing_thread(void *nothing) {
    struct moment from = moment();
    while (time_left()) compute(MS);
    add_section(&computation, from);
    return nothing;
}

NAMED static void *joiner_waits_for_the_result(void *nothing) {
    check(WAITED(&join_site, pthread_join(computing, NULL)), "join of the computing thread");
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t joiner;
    start_run(count, arguments);
    start(&computing, computing_thread, NULL);
    start(&joiner, joiner_waits_for_the_result, NULL);
    step("join of the joiner");
    join(joiner);
    print_idle_site("join", &join_site);
    print_section("computing", &computation);
    return 0;
}
