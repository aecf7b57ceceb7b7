/* keep.c: nothing is ever freed, so that no address is used for two things. Preloaded behind libtprof.so. */
#include <stdlib.h>

void free(void *memory)
{
    (void)memory;
}
