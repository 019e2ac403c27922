/* A signal handler that wakes, at any instruction of the thread that it interrupts, even inside a
 * bucket.
 *
 * The code: private/inside.rs, private/section.rs, futex/private.rs (wake).
 *
 * A thread goes through two sections of a bucket. Two handlers may interrupt it, and the second may
 * also interrupt the first. Each posts a token, for which two other threads wait in the same
 * bucket. A handler that finds its thread inside a section leaves a note, and the thread delivers
 * it when it leaves the section. There is room for one note; on overflow, all waiters are woken.
 *
 * An interrupted thread does not run until its handler is done: `provided`.
 *
 * What is shown:
 *   no wake-up is lost  both waiters get their token
 *   no deadlock         a handler never waits for a lock that its own thread holds
 *   nothing is left     at the end there are no notes, no counts and no waiters
 */
#define ROOM 1

byte tokens, count, notes, ended;
bool locked, inside, noticed[2];
byte handling;                          /* running handler; 0: none; 2: alone or inside 1 */
chan queue = [2] of { byte };

inline lock()   { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

inline claim() {
    d_step {
        if
        :: queue?[node] -> queue?node; count--; noticed[node] = true; node = 0
        :: else
        fi
    }
}

proctype waiter(byte me) {
    do
    :: atomic { tokens > 0 -> tokens-- }; break
    :: else ->
       count++;
       lock();
       if
       :: tokens > 0 -> count--; unlock()
       :: else -> queue!me; unlock(); noticed[me]; noticed[me] = false
       fi
    od;
    ended++
}

inline enter() {
#ifndef LOCKS_BEFORE_IT_SAYS_SO
    inside = true; lock()
#else
    lock(); inside = true               /* MUTANT */
#endif
}

inline leave() {
    unlock();
#ifdef LOOKS_BEFORE_IT_IS_OUT
    left = notes;                       /* MUTANT: a note left now waits for the next section */
    inside = false;
#else
    inside = false;
    left = notes;
#endif
}

/* Delivers what handlers have left meanwhile. Each wake is a section of its own. */
inline deliver() {
    do
    :: left > 0 ->
       if
#ifndef FORGETS_WHAT_HAS_NO_ROOM
       :: left > ROOM -> notes = 0; all = true
#endif
       :: else -> notes = (left > ROOM -> ROOM : left) - 1; all = false     /* MUTANT: 1 note */
       fi;
       if
       :: count > 0 ->
          enter();
          claim();
          if
          :: all -> claim()
          :: else
          fi;
          leave()
       :: else -> left = notes
       fi
    :: else -> all = false; break
    od
}

/* The interrupted thread. The work inside its sections does not matter here. */
proctype thread() provided (handling == 0) {
    byte node, left, sections;
    bool all;
    do
    :: sections < 2 -> sections++; enter(); leave(); deliver()
    :: else -> break
    od;
    ended++
}

inline post() {
    byte node, left;
    bool all;
    tokens++;
    if
    :: count == 0
    :: else ->
#ifndef WAKES_INSIDE
       if
       :: inside -> notes++
       :: else -> enter(); claim(); leave(); deliver()
       fi
#else
       lock(); claim(); unlock()        /* MUTANT: waits for a lock of its own thread */
#endif
    fi
}

proctype first_handler() provided (handling <= 1) {
    atomic { handling == 0 -> handling = 1 }
    post();
    atomic { handling = 0; ended++ }
}

proctype second_handler() {
    byte interrupted;
    atomic { interrupted = handling; handling = 2 }
    post();
    atomic { handling = interrupted; ended++ }
}

init {
    atomic { run waiter(0); run waiter(1); run thread(); run first_handler(); run second_handler() }
    ended == 5;
    assert(tokens == 0 && count == 0 && notes == 0 && empty(queue) && !locked && !inside)
}
