/* Cases that fail, each in its own way: for the test of the runner. */
#include "conformance.h"

CASE(holds) { EQ(1 + 1, 2); }
CASE(fails) { EQ(1 + 1, 3); }
CASE(crashes) { abort(); }
CASE(says_nothing) { _exit(0); }

CONFORMANCE_CASE(hangs, 1, 0) {
    sem_t sem;
    OK(sem_init(&sem, 0, 0));
    sem_wait(&sem);
}
