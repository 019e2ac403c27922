/* A wait and a wake: counting, check, queue, notice, sleep, and the deadline that ends a wait.
 *
 * The code: futex/private.rs (wait, wake), private/bucket.rs, private/node.rs, park/mod.rs,
 * park/notice.rs.
 *
 * Why: a lost wake-up shows once in 10^9 runs. Here every interleaving of these steps is explored.
 *
 * W waiters take one token each; as many posters add one token each and wake one waiter. A waiter
 * may time out once, and then starts over: its node, which lies on the stack, is a different one
 * from then on. Parkers are taken from a pool for one wait, so a late wake call may reach an
 * unrelated thread.
 *
 * Step for step as in the code, with sequentially consistent memory. The fences are modelled in
 * fences.pml.
 *
 * What is shown:
 *   no wake-up is lost  no thread sleeps forever: an end state in which not all have ended is an
 *                       error
 *   nodes               a waker touches a node only from its claim to its notice, on a stack that
 *                       still exists
 *   exact counts        the wakes report as many woken waiters as return as woken
 *   nothing is left     at the end the bucket is empty, its count is 0, and all parkers are free
 *
 * Mutants (scripts/models defines one at a time, and expects an error): see each #ifdef.
 */
#ifndef W
#define W 2
#endif
#define POSTS W

mtype = { AWAKE, ASLEEP, GIVEN }        /* a notice */

byte tokens;                            /* the word: threads wait while it is 0 */

/* The bucket. */
bool locked;
byte count;                             /* waiters, counted before they lock the bucket */
chan queue = [W] of { byte };

/* The node of each waiter. */
bool alive[W];                          /* it is on its thread's stack */
bool claimed[W];
mtype notice[W];
byte parker[W];

/* The group of parkers, and its sleepers in the kernel. */
byte calls;
bool taken[W];
bool sleeps[W];

byte said_woken, were_woken, ended;

inline lock()   { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* FUTEX_WAIT(calls, seen, bit of p), with a deadline or without. */
inline futex_wait(p, until) {
    atomic {
        timed_out = false;
        if
        :: calls != seen
        :: else -> sleeps[p] = true
        fi
    }
    atomic {
        if
        :: !sleeps[p]
        :: sleeps[p] && until -> sleeps[p] = false; timed_out = true
        fi
    }
}

/* Sleeps until the notice is given or, if it may time out, until it does. */
inline park(p, until) {
#ifndef SEEN_TOO_LATE
    seen = calls;
#endif
    atomic {                            /* one compare-and-swap */
        timed_out = false;
        if
        :: notice[me] != GIVEN -> notice[me] = ASLEEP
        :: else -> goto parked          /* before it slept */
        fi
    }
    do
    ::
#ifdef SEEN_TOO_LATE
       seen = calls;                    /* MUTANT: misses a call since the announcement */
#endif
       futex_wait(p, until);
       if
#ifdef BELIEVES_THE_KERNEL
       :: true -> break                 /* MUTANT: takes any wake-up for its own */
#endif
       :: notice[me] == GIVEN -> timed_out = false; break
       :: notice[me] != GIVEN && timed_out -> break
       :: notice[me] != GIVEN && !timed_out -> seen = calls
       fi;
       if
       :: notice[me] == GIVEN -> break
       :: else
       fi
    od;
parked:
    seen = 0
}

proctype waiter(byte me) {
    byte p, seen;
    bool may_time_out, timed_out;
    if                                  /* once; or it waits forever, if no thread wakes it */
    :: may_time_out = true
    :: may_time_out = false
    fi;
again:
    atomic {
        if
        :: tokens > 0 -> tokens--; goto done
        :: else
        fi
    }
    /* A parker, any that is free, and a node. */
    atomic {
        if
        :: !taken[0] -> p = 0
        :: !taken[1] -> p = 1
#if W > 2
        :: !taken[2] -> p = 2
#endif
        fi;
        taken[p] = true;
        alive[me] = true; claimed[me] = false; notice[me] = AWAKE; parker[me] = p
    }
#ifdef CHECKS_FIRST
    if                                  /* MUTANT: the check outside the bucket's lock */
    :: tokens > 0 -> goto left
    :: else
    fi;
#endif
    count++;                            /* register: count, (fence,) lock */
    lock();
#ifndef CHECKS_FIRST
    if
    :: tokens > 0 -> count--; unlock(); goto left
    :: else
    fi;
#endif
    queue!me;
    unlock();

    park(p, may_time_out);
    if
    :: !timed_out -> were_woken++
    :: else ->
       may_time_out = false;
#ifndef LEAVES_ITS_NODE
       lock();                          /* withdraw */
       if
       :: queue??[eval(me)] -> queue??eval(me); count--; unlock()
       :: else ->
          /* Claimed: the waker has counted it, and gives notice soon. */
          unlock();
#ifndef DOES_NOT_WAIT_FOR_NOTICE
          park(p, false);
#endif
          were_woken++
       fi
#endif                                  /* MUTANTS: it returns while it is queued, or claimed */
    fi;
left:
    atomic { alive[me] = false; notice[me] = 0; taken[p] = false; p = 0 }
    goto again;
done:
    ended++
}

/* The last accesses to a node by its waker. */
#define touch(node) assert(alive[node] && claimed[node] && notice[node] != GIVEN)

proctype poster() {
    byte node, p;
    bool was_asleep;
    tokens++;
    if                                  /* (fence,) any waiter counted? */
    :: count == 0 -> goto done
    :: else
    fi;
    lock();
    if
    :: queue?[node] -> queue?node; claimed[node] = true; count--
    :: else -> unlock(); goto done
    fi;
    unlock();
    said_woken++;
    atomic { touch(node); p = parker[node] }
    atomic {                            /* one swap; the last access */
        touch(node);
        was_asleep = (notice[node] == ASLEEP);
        notice[node] = GIVEN
    }
#ifdef TOUCHES_AFTER_NOTICE
    assert(alive[node] && claimed[node]);   /* MUTANT: reads the parker from the node only now */
#endif
    if
    :: was_asleep ->
#ifndef CALL_IS_NOT_COUNTED
       calls++;                         /* MUTANT: a thread about to sleep misses the call */
#endif
       sleeps[p] = false                /* FUTEX_WAKE, perhaps of an unrelated thread by now */
    :: else
    fi;
done:
    ended++
}

init {
    byte i;
    atomic {
        for (i : 0 .. W - 1) { run waiter(i) }
        for (i : 1 .. POSTS) { run poster() }
    }
    /* If a waiter sleeps while there is a token, or forever, the search ends here with "invalid end
     * state". */
    ended == W + POSTS;
    assert(tokens == 0 && count == 0 && len(queue) == 0 && !locked);
    assert(!taken[0] && !taken[1] && said_woken == were_woken)
}
