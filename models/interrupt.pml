/* A sleep that another thread may end before the notice: needed by pthread_cancel.
 *
 * The code: park/interrupt.rs, park/mod.rs (park), lock/interrupter.rs.
 *
 * A sleeper waits for a notice, in a parker. An interrupter requests it to end and wakes it where
 * it sleeps. A waker gives the notice. Both may come at any time. The sleeper waits twice, the
 * second time in another parker, if it was not requested to end. (A call that comes too late for
 * the first wait reaches an unrelated thread: wait_wake.pml.)
 *
 * Memory is sequentially consistent here: the two fences are in fences.pml.
 *
 * What is shown:
 *   a request is always seen  a sleeper that was requested to end does so, with or without a notice
 *   no notice is lost         a sleeper without a request ends by its notice
 */
mtype = { AWAKE, ASLEEP, GIVEN }

#define NOBODY 2                        /* parkers are 0 and 1 */

mtype notice = AWAKE;
bool requested;
byte parker = NOBODY;                   /* the parker that it sleeps in */
byte calls;                             /* both parkers are in one group */
bool sleeps[2];

inline futex_wait(p) {
    atomic {
        if
        :: calls == seen -> sleeps[p] = true
        :: else
        fi
    }
    !sleeps[p]
}

inline futex_wake(p) {
#ifndef CALL_IS_NOT_COUNTED             /* MUTANT */
    calls++;
#endif
    sleeps[p] = false
}

/* Two waits, each for a notice. */
active proctype sleeper() {
    byte seen, p, notices;
again:
#ifndef ASKS_BEFORE_IT_CAN_BE_FOUND
    parker = p;                         /* (followed by a fence) */
#endif
#ifdef SEEN_TOO_LATE
    if                                  /* MUTANT: checks for the request before it reads `calls` */
    :: requested -> goto asked
    :: else
    fi;
#endif
    seen = calls;
    atomic {                            /* one compare-and-swap */
        if
        :: notice == GIVEN -> goto noticed
        :: else -> notice = ASLEEP
        fi
    }
    do
    ::
#ifndef SEEN_TOO_LATE
       if
       :: requested -> goto asked
       :: else
       fi;
#endif
#ifdef ASKS_BEFORE_IT_CAN_BE_FOUND
       parker = p;                      /* MUTANT */
#endif
       futex_wait(p);
       if
       :: notice == GIVEN -> goto noticed
       :: else -> seen = calls
       fi;
       if
       :: notice == GIVEN -> goto noticed
       :: else
       fi
    od;
noticed:
    parker = NOBODY;
    notices++;
    if
    :: notices == 1 && !requested ->
       atomic { notice = AWAKE; p = 1 } /* another wait, in the other parker, without a notice */
       goto again
    :: else
    fi;
asked:
    parker = NOBODY
}

active proctype waker() {
    bool was_asleep;
    atomic { was_asleep = (notice == ASLEEP); notice = GIVEN }
    if
    :: was_asleep -> futex_wake(0)
    :: else
    fi
}

active proctype interrupter() {
    byte p;
    requested = true;                   /* (followed by a fence) */
    p = parker;
    if
    :: p != NOBODY -> futex_wake(p)
    :: else
    fi
}
