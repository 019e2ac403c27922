/* A signal handler that wakes, at any instruction of the thread that it has interrupted, also inside a bucket.
 *
 * The code: private/section.rs, futex/private.rs (wake).
 *
 * A thread goes through two sections of a bucket. Two handlers may interrupt it, the second also the first; each posts a token, for
 * which two other threads wait in the same bucket. A handler that finds its thread inside leaves a note; the thread
 * delivers it as it comes out. There is room for one note; if that is not enough, everybody is woken.
 *
 * An interrupted thread does not run until its handler is done: `provided`.
 *
 * What is shown:
 *   no wake-up is lost         both waiters get their token
 *   no deadlock                a handler never waits for a lock that its own thread holds
 *   nothing is left            at the end no note, no count, no waiter
 */
#define ROOM 1

byte tokens, count, notes, ended;
bool locked, inside, noticed[2];
byte handling;                          /* which handler runs: 0, 1, or 2 in the middle of 1 or by itself */
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
    left = notes;                       /* MUTANT: a note that is left now waits for the next section */
    inside = false;
#else
    inside = false;
    left = notes;
#endif
}

/* What was left meanwhile, by handlers: each wake is a section of its own. */
inline deliver() {
    do
    :: left > 0 ->
       if
#ifndef FORGETS_WHAT_HAS_NO_ROOM
       :: left > ROOM -> notes = 0; all = true
#endif
       :: else -> notes = (left > ROOM -> ROOM : left) - 1; all = false     /* MUTANT: one note, whatever was left */
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

/* The interrupted thread. What it does in its sections does not matter here. */
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
       lock(); claim(); unlock()        /* MUTANT: waits for the lock, whoever has it */
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
