/* Loads a library, which runs its constructors. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    if (count == 2 && dlopen(arguments[1], RTLD_NOW) != NULL)
        return 0;
    puts(dlerror());
    return 1;
}
