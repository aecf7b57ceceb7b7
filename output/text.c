#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

static char nothing[1];

void tp_text_init(struct tp_text *text, struct tp_arena *arena, size_t limit)
{
    *text = (struct tp_text){.arena = arena, .bytes = nothing, .limit = limit};
}

/* Room for that many bytes and a NUL. */
static bool make_room(struct tp_text *text, size_t count)
{
    if (count > text->limit - text->used) {
        text->cut = true;
        return false;
    }
    if (count < text->capacity - text->used)
        return true;
    size_t capacity = text->capacity ? text->capacity : 4096;
    while (count >= capacity - text->used)
        capacity *= 2;
    char *bytes = tp_arena_alloc(text->arena, capacity);
    if (!bytes) {
        text->cut = true;
        return false;
    }
    memcpy(bytes, text->bytes, text->used);
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void tp_text_put(struct tp_text *text, const char *bytes, size_t count)
{
    if (!make_room(text, count))
        return;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    text->bytes[text->used] = 0;
}

void tp_text_fill(struct tp_text *text, char byte, size_t count)
{
    if (!make_room(text, count))
        return;
    memset(text->bytes + text->used, byte, count);
    text->used += count;
    text->bytes[text->used] = 0;
}

void tp_text_format(struct tp_text *text, const char *format, ...)
{
    char piece[1024];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (n > 0)
        tp_text_put(text, piece, (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
}

/* One character of a name: how many bytes of the name it takes, and what is printed for it. */
static size_t character(const char *name, size_t bytes, const char **ret_print, size_t *ret_bytes)
{
    unsigned char first = (unsigned char)*name;
    if (first < 0x20 || first == 0x7f) {
        *ret_print = "?";
        *ret_bytes = 1;
        return 1;
    }
    size_t length = tp_utf8_sequence((const unsigned char *)name, bytes);
    *ret_print = length ? name : "\xef\xbf\xbd";
    *ret_bytes = length ? length : 3;
    return length ? length : 1;
}

void tp_text_name(struct tp_text *text, const char *name, size_t bytes, size_t limit)
{
    for (size_t written = 0; bytes > 0 && written < limit; written++) {
        const char *print;
        size_t print_bytes, taken = character(name, bytes, &print, &print_bytes);
        tp_text_put(text, print, print_bytes);
        name += taken;
        bytes -= taken;
    }
}

size_t tp_text_columns(const char *name, size_t bytes)
{
    size_t columns = 0;
    while (bytes > 0) {
        const char *print;
        size_t print_bytes, taken = character(name, bytes, &print, &print_bytes);
        name += taken;
        bytes -= taken;
        columns++;
    }
    return columns;
}

const char *tp_text_after(const char *name, size_t bytes, size_t characters)
{
    for (; bytes > 0 && characters > 0; characters--) {
        const char *print;
        size_t print_bytes, taken = character(name, bytes, &print, &print_bytes);
        name += taken;
        bytes -= taken;
    }
    return name;
}

size_t tp_text_fixed(char *room, size_t size, double value, int decimals)
{
    int n = snprintf(room, size, "%.*f", decimals, value);
    size_t length = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
    /* The point is that of the program's locale, and may have several bytes. */
    size_t point = strspn(room, "-0123456789");
    size_t after = point + strcspn(room + point, "0123456789");
    if (after > point && after < length) {
        room[point] = '.';
        memmove(room + point + 1, room + after, length - after + 1);
        length -= after - point - 1;
    }
    return length;
}

size_t tp_text_time(char *room, size_t size, double microseconds)
{
    const char *unit = microseconds >= 1e6 ? "s" : microseconds >= 1e3 ? "ms" : "us";
    double value = microseconds >= 1e6 ? microseconds / 1e6 : microseconds >= 1e3 ? microseconds / 1e3 : microseconds;
    size_t length = tp_text_fixed(room, size - 2, value, 3);
    memcpy(room + length, unit, strlen(unit) + 1);
    return length + strlen(unit);
}
