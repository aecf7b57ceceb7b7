/* table_json.h: rows of a table as JSON on stdout: the member "rows" of an object. */
#ifndef TP_TABLE_JSON_H
#define TP_TABLE_JSON_H

#include "../output/table.h"
#include "../output/trace_table.h"

/* 0 or -ENOMEM. */
int print_rows_json(const struct tp_averages *averages, const struct tp_trace_table_facts *facts,
                    const struct tp_table_options *options, struct tp_arena *arena);

#endif
