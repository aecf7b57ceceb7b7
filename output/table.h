/*
 * table.h: the printed table, character for character as torch's key_averages().table() prints it where there is CPU
 * time alone. (Source: torch/autograd/profiler_util.py of PyTorch 2.13, _build_table.)
 */
#ifndef TP_TABLE_H
#define TP_TABLE_H

#include "averages.h"
#include "text.h"
#include "writer.h"

#define TP_TABLE_DEFAULT_SORT "self_cpu_time_total"

struct tp_table_options {
    const char *sort_by; /* torch's names; NULL or unknown: the default */
    int64_t row_limit;   /* rows that are printed; negative: all */
    const char *header;  /* a line above, with a line of '=' on top; NULL: none */
    size_t name_width_max; /* torch's max_name_column_width; 0: its default, 55 */
    bool bare_lines;     /* without the blanks that torch leaves at the end of each line */
};

/* What a table may be sorted by. Memory, device time and FLOPs are accepted, as in torch, and are all zero yet. */
bool tp_table_knows_sort(const char *sort_by);

/* Appends the table; nothing where there are no rows, as torch. 0, or -ENOMEM. */
int tp_table_render(struct tp_text *text, const struct tp_averages *averages, const struct tp_table_options *options);

/* Numbers 0 .. count - 1 in the order of the sort: falling, equal ones as they are. NULL: out of memory. */
uint32_t *tp_table_order(const struct tp_averages *averages, const char *sort_by, struct tp_arena *arena);

/* table.txt */
extern const struct tp_writer tp_table_writer;

#endif
