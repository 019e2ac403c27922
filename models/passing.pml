/* Forwarding wake-ups: a waiter for many words may receive a wake that was meant for a word next to
 * its 8 or 16-bit word.
 *
 * The code: shared/forwarding.rs, futex/wait_any/kernel_words.rs.
 *
 * Two narrow waiters wait with futex_waitv, three times each, in the queue of 32 bits where a neighbour
 * waits, with a bitset, for another word. A waker wakes one thread that waits for that word, twice.
 * No word ever changes, so only wakes end a wait, and nothing shows that a wake must be forwarded
 * at once. With TWO_PROCESSES the narrow waiters are in different processes; with SAME_WORD one of them
 * waits for the neighbour's word too.
 *
 * Left out: changes of the word (they end a wait sooner), that a place serves several words, and
 * that it survives a fork (no thread relies on entries that are not of this word and this process).
 * Whether a forwarded wake is due is left open.
 *
 * What is shown:
 *   no wake is lost  a wake that was given to a narrow waiter of another word reaches the neighbour, if
 *                    the neighbour was queued at that time
 */
#define NEIGHBOUR 2                     /* 0 and 1 are the narrow waiters */
#define WAITERS 3
#define WAITS 3
#define WAKES 2

#ifdef SAME_WORD
#define WAITS_FOR_THE_SAME(who) (who == 1)
#else
#define WAITS_FOR_THE_SAME(who) false
#endif
#ifdef TWO_PROCESSES
#define PROCESS(who) who
#else
#define PROCESS(who) 0
#endif

/* The kernel's queue of the 32 bits, the oldest first. */
chan queue = [WAITERS] of { byte };
bool queued[WAITERS], woken[WAITERS];

bool owed;                              /* a narrow waiter got a wake meant for the neighbour */

bool taken[2];                          /* the place, in each process: a thread defers forwarding */
#define place taken[PROCESS(me)]

inline take_out(who) {
    queue ?? eval(who);
    queued[who] = false;
    if
    :: who == NEIGHBOUR -> owed = false
    :: else
    fi
}

/* The kernel's wake of all waiters. */
inline wake_all() {
    d_step {
        who = 0;
        do
        :: who == WAITERS -> break
#ifdef WAKES_OTHER_WORDS_ONLY
        :: who == NEIGHBOUR && WAITS_FOR_THE_SAME(me) -> who++
#endif
        :: else ->
            if
            :: queued[who] -> take_out(who); woken[who] = true
            :: else
            fi;
            who++
        od;
        who = 0
    }
}

active [2] proctype narrow_waiter() {
    byte me = _pid, who, waits;
    bool puts_off;

sleep:
    atomic { queue ! me; queued[me] = true };
end_asleep:
    atomic {
        if
        :: woken[me] -> woken[me] = false
        :: puts_off && !woken[me] -> take_out(me); goto due
        fi
    };
    if
    :: puts_off -> goto sleep                   /* not due yet */
    :: puts_off -> goto due                     /* as if something showed that it must */
    :: !puts_off -> goto pass                   /* it is due */
    :: !puts_off ->
        atomic {
            if
            :: place -> goto over               /* leaves it to the other thread */
            :: else ->
                place = true;
                puts_off = true
            fi
        };
#ifdef FORGETS_WHAT_IT_PUT_OFF
        place = false;
        puts_off = false;
        goto over
#else
        goto sleep
#endif
    fi;

due:
    puts_off = false;
#ifndef WAKES_BEFORE_IT_LEAVES
    place = false;
#endif
pass:
    wake_all();
#ifdef WAKES_BEFORE_IT_LEAVES
    place = false;
#endif
over:
    waits++;
    if
    :: waits < WAITS -> goto sleep
    :: else
    fi
}

active proctype neighbour() {
    byte waits;

    do
    :: waits == WAITS -> break
    :: else ->
        atomic { queue ! NEIGHBOUR; queued[NEIGHBOUR] = true };
end_asleep:
        atomic { woken[NEIGHBOUR] -> woken[NEIGHBOUR] = false };
        waits++
    od
}

active proctype waker() {
    byte who, wakes;

    do
    :: wakes == WAKES -> break
    :: else ->
        wakes++;
        /* The kernel's wake of one: it takes the oldest. The neighbour's bitset matches, and
         * narrow waiters always match. */
        atomic {
            if
            :: nempty(queue) ->
                queue ? <who>;
                if
                :: who != NEIGHBOUR && !WAITS_FOR_THE_SAME(who) && queued[NEIGHBOUR] -> owed = true
                :: else
                fi;
                take_out(who);
                woken[who] = true;
                who = 0
            :: empty(queue)
            fi
        }
    od
}

/* Runs when no other process can take a step. */
active proctype judge() {
end_judge:
    timeout -> assert(!owed)
}
