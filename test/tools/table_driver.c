/*
 * table_driver: rows on stdin, the printed table on stdout; for the comparison with torch's own (test_table_format.py).
 *
 * usage: table_driver SORT_BY ROW_LIMIT NAME_WIDTH [HEADER] < lines of "count total_ns self_ns flags name" (flags: a
 * asynchronous, u user annotation, - none)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/table.h"

/* One event a row would not do: count is its own. So the first event carries the times, and the others none. */
static int add(struct tp_averages *averages, const char *name, unsigned long long count, uint64_t total_ns,
               uint64_t self_ns, const char *flags)
{
    struct tp_event event = {.start_ns = 1, .end_ns = 1 + total_ns, .self_ns = self_ns, .name = name,
                             .name_bytes = (uint32_t)strlen(name), .parent = UINT64_MAX};
    if (strchr(flags, 'a'))
        event.flags = TP_EVENT_ASYNC;
    if (strchr(flags, 'u'))
        event.scope = TP_SCOPE_USER_SCOPE;
    for (; count > 0; count--) {
        if (tp_averages_segment(averages, &event, 1) < 0)
            return -1;
        event.end_ns = event.start_ns;
        event.self_ns = 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: table_driver SORT_BY ROW_LIMIT NAME_WIDTH [HEADER]\n");
        return 2;
    }
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct tp_averages *averages = tp_averages_new(&arena, 0);
    static char line[65536], flags[8];
    while (averages && fgets(line, sizeof line, stdin)) {
        unsigned long long count, total_ns, self_ns;
        int at = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%llu %llu %llu %7s%n", &count, &total_ns, &self_ns, flags, &at) != 4 || line[at] != ' ' ||
            add(averages, line + at + 1, count, total_ns, self_ns, flags) < 0) {
            fprintf(stderr, "table_driver: bad line: %s\n", line);
            return 2;
        }
    }
    struct tp_text text;
    tp_text_init(&text, &arena, 64u << 20);
    struct tp_table_options options = {.sort_by = argv[1], .row_limit = strtoll(argv[2], NULL, 10),
                                       .name_width_max = strtoul(argv[3], NULL, 10), .header = argv[4]};
    if (!averages || tp_averages_end(averages) < 0 || tp_table_render(&text, averages, &options) < 0)
        return 1;
    fwrite(text.bytes, 1, text.used, stdout);
    tp_arena_free(&arena);
    return 0;
}
