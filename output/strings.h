/* strings.h: texts by number, each kept once; for one thread, without a limit but memory. */
#ifndef TP_STRINGS_H
#define TP_STRINGS_H

#include "../agent/arena.h"
#include "../agent/base.h"

struct tp_strings;

struct tp_strings *tp_strings_new(struct tp_arena *arena); /* NULL: out of memory */

/* Its number: 0, 1, ... in the order in which they came; or -ENOMEM. */
int64_t tp_strings_of(struct tp_strings *strings, const char *text, size_t bytes);
const char *tp_strings_text(const struct tp_strings *strings, uint32_t number, size_t *ret_bytes);

#endif
