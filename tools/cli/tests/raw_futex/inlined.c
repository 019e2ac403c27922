/* Calls futexes with its own `syscall` instructions, in two places, and through the C library's
 * `syscall`. */
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t word;

__attribute__((noinline)) static long inlined(uint32_t *at, int op, uint32_t value)
{
	long answer;
	register long none __asm__("r10") = 0;
	__asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_futex), "D"(at), "S"(op), "d"(value), "r"(none)
			 : "rcx", "r11", "memory");
	return answer;
}

__attribute__((noinline)) static long inlined_waitv(void)
{
	long answer;
	register long none __asm__("r10") = 0;
	__asm__ volatile("syscall" : "=a"(answer) : "a"(449), "D"(0L), "S"(0L), "d"(0L), "r"(none)
			 : "rcx", "r11", "memory");
	return answer;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return inlined_waitv() == 0;
	return inlined(&word, FUTEX_WAKE_PRIVATE, 1) +
	       syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
