/* A program without the library; with -DDESCRIPTION, one whose library is of the future. */
#ifdef DESCRIPTION
#include <stdint.h>

__attribute__((used, section(".waitword_debug"))) static struct {
    char magic[8];
    uint32_t format, count;
    char version[16], subject[32];
    void *address;
} description = {"waitword", 99, 0, "9.9.9", "waiter table", 0};
#endif

int main(void)
{
    return 0;
}
