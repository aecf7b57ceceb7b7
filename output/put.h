/*
 * put.h: text for a writer's inner loop, into room that it has reserved (sink.h): every function writes at out and
 * returns where it ends.
 */
#ifndef TP_PUT_H
#define TP_PUT_H

#include <string.h>

#include "../agent/base.h"

static inline char *tp_put_text(char *out, const char *text, size_t bytes)
{
    memcpy(out, text, bytes);
    return out + bytes;
}

#define TP_PUT(out, literal) tp_put_text(out, literal, sizeof(literal) - 1)

static const char tp_two_digits[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

static inline char *tp_put_u64(char *out, uint64_t value)
{
    char text[20], *end = text + sizeof text, *begin = end;
    while (value >= 100) {
        begin -= 2;
        memcpy(begin, tp_two_digits + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        begin -= 2;
        memcpy(begin, tp_two_digits + value * 2, 2);
    } else {
        *--begin = (char)('0' + value);
    }
    return tp_put_text(out, begin, (size_t)(end - begin));
}

/* Microseconds with three decimals. */
static inline char *tp_put_us(char *out, uint64_t nanoseconds)
{
    unsigned rest = (unsigned)(nanoseconds % 1000);
    out = tp_put_u64(out, nanoseconds / 1000);
    *out++ = '.';
    *out++ = (char)('0' + rest / 100);
    return tp_put_text(out, tp_two_digits + rest % 100 * 2, 2);
}

#endif
