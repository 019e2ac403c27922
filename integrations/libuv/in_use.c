/* Linked into the program of libuv's tests: appends to the file $WAITWORD_COUNTS, at the end of
 * each process, how often it found locks held, slept and woke in libwaitword. One line a process,
 * written at once, since many processes end at the same time. A process that is killed, or calls
 * _exit, writes none. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <waitword.h>

__attribute__((constructor)) static void begin(void)
{
    ww_stats_enable();
}

__attribute__((destructor)) static void end(void)
{
    const char *name = getenv("WAITWORD_COUNTS");
    int file = name ? open(name, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    char line[80];
    int length = snprintf(line, sizeof line, "%llu %llu %llu\n",
                          (unsigned long long)ww_stats_count(WW_STATS_CONTENDED),
                          (unsigned long long)ww_stats_count(WW_STATS_SLEEPS),
                          (unsigned long long)ww_stats_count(WW_STATS_WAKES));
    if (write(file, line, (size_t)length) != length)
        perror(name);
    close(file);
}
