#!/usr/bin/env bash
# Compiles the programs, runs them and checks that each has the answer that its first line states.
#
#     tools/truth/check.sh [FACTOR]     FACTOR: of the length of a run, 2 seconds; 0.5 if missing
#
# Everything is built and run twice: with frame pointers and without. An answer that is a share of
# time can fail on a busy machine, so each program gets three tries. CC, CXX and RUSTC name the
# compilers.
set -u
cd "$(dirname "$0")" || exit 1
factor=${1:-0.5}
limit=30 # Seconds for one run.
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
child= # The program that hangs on purpose, while it runs.
failed=

# Ends the check of one program, which is a subshell.
fail() {
    echo "FAILED: $*"
    [[ -n $child ]] && kill "$child"
    exit 1
}

# The values in the output of the last run: `answer KEY VALUE`, and the nanoseconds of `wait SITE`.
answer() { awk -v key="$1" '$1 == "answer" && $2 == key { print $NF }' "$bin/out"; }
waited() { awk -v site="$1" '$1 == "wait" && $2 == site { print $NF }' "$bin/out"; }

# is WHAT VALUE OPERATOR BOUND FACTOR-OF-BOUND: notes a problem if the relation does not hold.
is() {
    awk -v a="$2" -v b="$4" -v f="${5:-1}" "BEGIN { exit !(a != \"\" && a + 0 $3 b * f) }" ||
        problem+=" $1 is '$2', which is not $3 $4${5:+ * $5};"
}
answer_is() { is "$1" "$(answer "$1")" "${@:2}"; }
wait_is() { is "the wait at $1" "$(waited "$1")" "${@:2}"; }

# What the holder did, and that the waiters, whose number is $2, waited for most of it.
holder_is() {
    answer_is "holder_$1_percent" '>=' "$2"
    wait_is waiter_of_lock '>=' "$(answer holder_section_ns)" 0.5
}
holder_slept() {
    holder_is asleep 90
    answer_is holder_sleeps '>=' "$(answer holder_sections)"
}

check_answer() {
    local length
    length=$(awk -v f="$factor" 'BEGIN { printf "%.0f", f * 2e9 }')
    case $1 in
    holder-sleeps | holder-reads) holder_slept ;;
    holder-computes) holder_is running 90 ;;
    holder-preempted)
        holder_is preempted 80
        answer_is holder_without_cpu_percent '>=' 80
        answer_is holder_preemptions '>=' "$(answer holder_sections)" ;;
    priority-inversion)
        answer_is holder_preempted_percent '>=' 80
        wait_is more_urgent_waiter '>=' "$(answer holder_section_ns)" 0.5 ;;
    chain)
        answer_is c_asleep_percent '>=' 90
        answer_is b_asleep_percent '>=' 90
        answer_is b_waiting_for_lock_2_percent '>=' 90
        wait_is a_waits_for_lock_1 '>=' "$(answer b_section_ns)" 0.5 ;;
    idle-workers)
        answer_is condvar_wait_ns '>=' "$length" 4
        wait_is idle_worker '<=' "$(answer condvar_wait_ns)" 0.01
        wait_is producer_adds_a_job '<=' "$length" 0.01 ;;
    convoy)
        answer_is waiting_percent '>=' 75
        answer_is queue_length '>=' 10 ;;
    starved-writer)
        wait_is starved_writer '>=' "$length"
        [[ $(answer writer) == ETIMEDOUT ]] || problem+=" the writer got the lock;" ;;
    herd)
        answer_is wakeups '==' "$(answer rounds)" 64
        answer_is broadcast_to_return_ns '>=' "$(answer wakeups)" 2e6
        answer_is sleeps_per_wakeup '>=' 1.8 ;;
    uncontended)
        holder_slept
        answer_is uncontended_locks_per_second '>=' 950000 ;;
    unfair)
        is taken "$(awk '/taken often/ { print $4 }' "$bin/out")" '==' \
            "$(awk '/taken seldom/ { print $4 }' "$bin/out")" 9
        wait_is thread_that_locks_seldom '>' 0 ;;
    below-threshold)
        answer_is met_the_other '>' 0
        answer_is waits_above_threshold_per_million_locks '<=' 1000 ;;
    semaphore-work) answer_is semaphore_wait_ns '>=' "$length" 2 ;;
    join)
        answer_is join_wait_ns '>=' "$length" 0.9
        answer_is computing_asleep_percent '<=' 1 ;;
    inlined)
        answer_is audit_asleep_percent '>=' 90
        wait_is 'truth::Ledger::deposit<int>' '>=' "$(answer audit_section_ns)" 0.5
        # Ledger::take has no code of its own.
        nm -C "$bin/$1" | grep -q 'Ledger::deposit<int>' || problem+=" no deposit<int>;"
        nm -C "$bin/$1" | grep -q 'Ledger::take' && problem+=" Ledger::take is not inlined;" ;;
    std_locks)
        wait_is std_locks::waiter_of_pthread_mutex '>=' "$length" 0.5
        wait_is std_locks::waiter_of_std_mutex '>=' "$length" 0.5 ;;
    *) problem+=" check.sh does not know its answer;" ;;
    esac
}

# For a program that ends by itself.
run() {
    local try status
    for try in 1 2 3; do
        problem=
        timeout "$limit" "$bin/$1" "$factor" >"$bin/out"
        status=$?
        ((status == 124)) && fail "$1 took longer than $limit s"
        ((status == 0)) || fail "$1 ended with $status"
        check_answer "$1"
        [[ -z $problem ]] && { echo "ok $1"; return; }
        echo "try $try of $1:$problem"
    done
    fail "$1 has not the answer that it states"
}

# State and number of sleeps and preemptions of a thread of the program.
thread_state() { grep -E '^State|ctxt_switches' "/proc/$child/task/$1/status"; }

# For a program that hangs on purpose: the threads that it names sleep, and never run.
run_hanging() {
    local before id
    "$bin/$1" >"$bin/out" &
    child=$!
    for ((i = 0; i < limit * 10; i++)); do
        grep -q '^ready' "$bin/out" && break
        sleep 0.1
    done
    grep -q '^ready' "$bin/out" || fail "$1 was not ready after $limit s"
    [[ $1 == holder-ended && -e /proc/$child/task/$(answer ended_holder) ]] &&
        fail "the holder of $1 did not end"
    for id in $(awk '$1 == "answer" && $2 != "ended_holder" { print $3 }' "$bin/out"); do
        before=$(thread_state "$id")
        sleep 0.3
        [[ $before == *sleeping* && $before == "$(thread_state "$id")" ]] ||
            fail "thread $id of $1 does not hang"
    done
    kill "$child"
    wait "$child" 2>/dev/null
    (($? == 143)) || fail "$1 did not end by SIGTERM"
    child=
    echo "ok $1"
}

# Each function marked NAMED in a source has to have a symbol of just that name.
check_names() {
    local name
    for name in $(sed -n 's/^NAMED static .*[ *]\([a-z_0-9]*\)(.*{$/\1/p' "$1"); do
        nm "$bin/$2" | grep -q " $name\$" || fail "$2 has no symbol $name"
    done
}

compile() {
    local flags=(-O2 -g -Wall -Wextra -Werror -pthread "-f$frames") pointers=no
    [[ $frames == no-* ]] && pointers=yes
    case $1 in
    *.c) "${CC:-gcc}" "${flags[@]}" "$1" -o "$2" ;;
    *.cpp) "${CXX:-g++}" "${flags[@]}" "$1" -o "$2" ;;
    *.rs)
        "${RUSTC:-rustc}" -O -g -C force-frame-pointers=$pointers --edition 2024 "$1" -o "$2" ;;
    esac
}

check_source() {
    local program=${1%.*}
    compile "$1" "$bin/$program" || fail "$1 does not compile"
    check_names "$1" "$program"
    case $program in
    deadlock-* | holder-ended) run_hanging "$program" ;;
    *) run "$program" ;;
    esac
}

for frames in no-omit-frame-pointer omit-frame-pointer; do
    echo "-f$frames"
    for source in *.c *.cpp *.rs; do
        (check_source "$source") || failed+=" $source (-f$frames)"
    done
done
[[ -z $failed ]] || { echo "FAILED:$failed"; exit 1; }
echo "all answers hold"
