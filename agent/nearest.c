#include "nearest.h"

#include <ctype.h>
#include <string.h>

#define LONGEST 48

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, replacements and swaps of neighbours that make b of a. */
static unsigned distance(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b);
    unsigned table[3][LONGEST + 1];
    if (rows > LONGEST || columns > LONGEST)
        return UINT32_MAX;
    for (size_t j = 0; j <= columns; j++)
        table[0][j] = (unsigned)j;
    for (size_t i = 1; i <= rows; i++) {
        unsigned *before = table[(i + 2) % 3], *row = table[i % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= columns; j++) {
            unsigned least = before[j - 1] + !same(a[i - 1], b[j - 1]);
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            if (before[j] + 1 < least)
                least = before[j] + 1;
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
                unsigned swapped = table[(i + 1) % 3][j - 2] + 1;
                least = swapped < least ? swapped : least;
            }
            row[j] = least;
        }
    }
    return table[rows % 3][columns];
}

void tp_nearest_init(struct tp_nearest *nearest, const char *word)
{
    *nearest = (struct tp_nearest){.word = word, .distance = (unsigned)(2 + strlen(word) / 4)};
}

void tp_nearest_offer(struct tp_nearest *nearest, const char *candidate)
{
    unsigned d = distance(nearest->word, candidate);
    if (d < nearest->distance) {
        nearest->distance = d;
        nearest->found = candidate;
    }
}
