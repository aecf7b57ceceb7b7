/*
 * text.h: text that is laid out before it is written: a bounded buffer on an arena. What passes the limit, or finds no
 * memory, is left out, and `cut` says so; the buffer is always NUL-terminated.
 *
 * Columns are counted in characters, not bytes. Names come from the program: bytes that are no valid UTF-8 become
 * U+FFFD, control characters '?', so that a line stays one line and a terminal stays as it was. Numbers have a decimal
 * point, whatever the program's locale says.
 */
#ifndef TP_TEXT_H
#define TP_TEXT_H

#include "../agent/arena.h"
#include "../agent/base.h"

struct tp_text {
    struct tp_arena *arena;
    char *bytes; /* never NULL */
    size_t used, capacity, limit;
    bool cut;
};

void tp_text_init(struct tp_text *text, struct tp_arena *arena, size_t limit);
void tp_text_put(struct tp_text *text, const char *bytes, size_t count);
void tp_text_fill(struct tp_text *text, char byte, size_t count);
/* At most 1023 bytes a call. */
void tp_text_format(struct tp_text *text, const char *format, ...) TP_PRINTF(2, 3);

/* At most limit characters of a name, made safe to print. */
void tp_text_name(struct tp_text *text, const char *name, size_t bytes, size_t limit);
/* Characters of the whole name. */
size_t tp_text_columns(const char *name, size_t bytes);
/* Where the name goes on behind that many characters. */
const char *tp_text_after(const char *name, size_t bytes, size_t characters);

/* As printf's "%.*f"; returns the length. The room must do. */
size_t tp_text_fixed(char *room, size_t size, double value, int decimals);

/* As torch prints a time: "12.345us", "12.345ms", "12.345s". */
size_t tp_text_time(char *room, size_t size, double microseconds);

#endif
