/* Passing on: a waiter of many words may be given a wake that was meant for the neighbour of its 8 or 16-bit word.
 *
 * The code: shared/passing.rs, futex/wait_any/kernel_words.rs.
 *
 * Two bystanders wait by futex_waitv, three times each, in the queue of the 32 bits where a neighbour waits, with a bitset, for another word.
 * A waker wakes one who waits for that word, twice. No word ever changes, so only wakes end a wait, and nothing speaks for a pass.
 * With TWO_PROCESSES the bystanders are not of one process; with SAME_WORD one of them waits for the neighbour's word, too.
 *
 * Left out: changes (they end a wait sooner), and that a place serves several words and outlives a fork (what is found there that is not
 * this word's and this process's is relied on by nobody). Whether a pass is due is left open.
 *
 * What is shown:
 *   no wake is lost            a wake that was given to a bystander of another word reaches the neighbour, if that was queued then
 */
#define NEIGHBOUR 2                     /* 0 and 1 are the bystanders */
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

bool owed;                              /* a wake that was meant for the neighbour was given to another */

bool taken[2];                          /* the place, in each process: somebody puts off a pass */
#define place taken[PROCESS(me)]

inline take_out(who) {
    queue ?? eval(who);
    queued[who] = false;
    if
    :: who == NEIGHBOUR -> owed = false
    :: else
    fi
}

/* The kernel's wake of all. */
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

active [2] proctype bystander() {
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
    :: puts_off -> goto sleep                   /* for a while yet */
    :: puts_off -> goto due                     /* as if something spoke for it */
    :: !puts_off -> goto pass                   /* it is due */
    :: !puts_off ->
        atomic {
            if
            :: place -> goto over               /* left to another */
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
        /* The kernel's wake of one: of the oldest, since the neighbour's bitset matches, and bystanders match always. */
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

/* When nobody can do anything any more. */
active proctype judge() {
end_judge:
    timeout -> assert(!owed)
}
