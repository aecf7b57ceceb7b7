/* utf8.h: what is a valid UTF-8 sequence (Unicode standard, table 3-7: no overlong form, no surrogate, at most
 * U+10FFFF). */
#ifndef TP_UTF8_H
#define TP_UTF8_H

#include "../agent/base.h"

/* Length of the valid sequence at text, which has that many bytes left (at least one); 0: there is none. */
static inline size_t tp_utf8_sequence(const unsigned char *text, size_t bytes)
{
    unsigned char lead = text[0], low = 0x80, high = 0xbf;
    size_t length;
    if (lead < 0x80) {
        return 1;
    } else if (lead >= 0xc2 && lead <= 0xdf) {
        length = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        length = 3;
        low = lead == 0xe0 ? 0xa0 : 0x80;  /* not overlong */
        high = lead == 0xed ? 0x9f : 0xbf; /* not a surrogate */
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        length = 4;
        low = lead == 0xf0 ? 0x90 : 0x80;
        high = lead == 0xf4 ? 0x8f : 0xbf; /* not above U+10FFFF */
    } else {
        return 0;
    }
    if (bytes < length || text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (text[i] < 0x80 || text[i] > 0xbf)
            return 0;
    return length;
}

#endif
