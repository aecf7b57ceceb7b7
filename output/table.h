/*
 * table.h: the printed table, character for character as torch's key_averages().table() prints it: in the log at the
 * end, and from files by the command. Columns come and go as torch's do: device times where a row has some of its own,
 * memory and FLOPs where they were recorded, shapes and stacks where rows are grouped by them.
 * (Source: torch/autograd/profiler_util.py of PyTorch 2.13, _build_table.)
 *
 * One thing is put right: with stacks and FLOPs torch swaps the values of these two columns.
 */
#ifndef TP_TABLE_H
#define TP_TABLE_H

#include "averages.h"
#include "text.h"
#include "writer.h"

#define TP_TABLE_DEFAULT_SORT "self_cpu_time_total"

enum tp_table_unit { TP_TABLE_UNIT_FITTING, TP_TABLE_UNIT_S, TP_TABLE_UNIT_MS, TP_TABLE_UNIT_US };

#define TP_TABLE_ANY_WIDTH SIZE_MAX

struct tp_table_options {
    const char *sort_by; /* torch's names; TP_TABLE_UNSORTED; NULL or unknown: the default */
    int64_t row_limit;   /* rows that are printed; negative: all */
    const char *header;  /* a line above, with a line of '=' on top; NULL: none */
    /* torch's max_..._column_width; 0: its default; at least 3 */
    size_t name_width_max, shapes_width_max, source_width_max;
    bool bare_lines;     /* without the blanks that torch leaves at the end of each line */
    bool top_level_only; /* rows whose first event lay in no other one */
    enum tp_table_unit unit;
    const char *device; /* "CUDA": what the columns of device times are called; NULL: there are none */
    bool memory, flops; /* were they recorded? */
};

#define TP_TABLE_UNSORTED "none"

/* What a table may be sorted by: the names of torch's attributes. */
bool tp_table_knows_sort(const char *sort_by);

/* Appends the table; nothing where there are no rows, as torch. 0, or -ENOMEM. */
int tp_table_render(struct tp_text *text, const struct tp_averages *averages, const struct tp_table_options *options);

/* Numbers 0 .. count - 1 in the order of the sort: falling, equal ones as they are. NULL: out of memory. */
uint32_t *tp_table_order(const struct tp_averages *averages, const char *sort_by, struct tp_arena *arena);

/* table.txt */
extern const struct tp_writer tp_table_writer;

#endif
