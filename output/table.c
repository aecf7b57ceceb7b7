#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH_MAX 55
#define WIDTH 12
#define COLUMNS 6 /* besides the name */
/* Room for the widest table of a full set of rows. */
#define TEXT_LIMIT (16u << 20)

enum sort_key { SORT_SELF, SORT_TOTAL, SORT_AVERAGE, SORT_COUNT, SORT_NAME, SORT_NONE };

static const struct {
    const char *name;
    enum sort_key key;
} sorts[] = {
    {"self_cpu_time_total", SORT_SELF},
    {"cpu_time_total", SORT_TOTAL},
    {"cpu_time", SORT_AVERAGE},
    {"count", SORT_COUNT},
    {"key", SORT_NAME},
    {"flops", SORT_NONE},
    {"cpu_memory_usage", SORT_NONE},
    {"self_cpu_memory_usage", SORT_NONE},
    {"device_time", SORT_NONE},
    {"device_time_total", SORT_NONE},
    {"self_device_time_total", SORT_NONE},
    {"device_memory_usage", SORT_NONE},
    {"self_device_memory_usage", SORT_NONE},
};

/* Equal, where torch reads the name of a device as "device". */
static bool names_sort(const char *given, const char *name)
{
    static const char *const devices[] = {"cuda", "xpu", "privateuse1"};
    const char *device = strstr(name, "device");
    if (strcmp(given, name) == 0)
        return true;
    for (size_t i = 0; device && i < TP_COUNT(devices); i++) {
        size_t before = (size_t)(device - name), length = strlen(devices[i]);
        if (strncmp(given, name, before) == 0 && strncmp(given + before, devices[i], length) == 0 &&
            strcmp(given + before + length, device + strlen("device")) == 0)
            return true;
    }
    return false;
}

static int find_sort(const char *sort_by)
{
    for (size_t i = 0; sort_by && i < TP_COUNT(sorts); i++)
        if (names_sort(sort_by, sorts[i].name))
            return (int)sorts[i].key;
    return -1;
}

bool tp_table_knows_sort(const char *sort_by)
{
    return find_sort(sort_by) >= 0;
}

static double average_us(const struct tp_average *row)
{
    return row->count ? (double)row->total_ns / 1000.0 / (double)row->count : 0;
}

/* True if row a comes before row b. */
static bool before(const struct tp_averages *averages, enum sort_key key, uint32_t a, uint32_t b)
{
    const struct tp_average *x = tp_averages_row(averages, a), *y = tp_averages_row(averages, b);
    int order = 0;
    double u, v;
    switch (key) {
    case SORT_SELF:
        order = (x->self_ns > y->self_ns) - (x->self_ns < y->self_ns);
        break;
    case SORT_TOTAL:
        order = (x->total_ns > y->total_ns) - (x->total_ns < y->total_ns);
        break;
    case SORT_AVERAGE:
        u = average_us(x);
        v = average_us(y);
        order = (u > v) - (u < v);
        break;
    case SORT_COUNT:
        order = (x->count > y->count) - (x->count < y->count);
        break;
    case SORT_NAME:
        order = memcmp(x->name, y->name, (x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes) + 1u);
        break;
    case SORT_NONE:
        break;
    }
    return order ? order > 0 : a < b;
}

/* A heap sort: in place, and nothing of the C library's that may use the heap. */
static void sink(const struct tp_averages *averages, enum sort_key key, uint32_t *rows, size_t count, size_t at)
{
    uint32_t row = rows[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(averages, key, rows[child], rows[child + 1]))
            child++;
        if (!before(averages, key, row, rows[child]))
            break;
        rows[at] = rows[child];
    }
    rows[at] = row;
}

uint32_t *tp_table_order(const struct tp_averages *averages, const char *sort_by, struct tp_arena *arena)
{
    int key = find_sort(sort_by);
    if (key < 0)
        key = SORT_SELF;
    size_t count = tp_averages_count(averages);
    uint32_t *rows = tp_arena_alloc(arena, count * sizeof *rows);
    if (!rows)
        return NULL;
    for (size_t i = 0; i < count; i++)
        rows[i] = (uint32_t)i;
    for (size_t i = count / 2; i-- > 0;)
        sink(averages, (enum sort_key)key, rows, count, i);
    for (size_t i = count; i-- > 1;) {
        uint32_t last = rows[0];
        rows[0] = rows[i];
        rows[i] = last;
        sink(averages, (enum sort_key)key, rows, i, 0);
    }
    return rows;
}

struct layout {
    struct tp_text *text;
    size_t name_width, name_width_max;
    bool bare;
};

static void end_line(struct layout *layout)
{
    struct tp_text *text = layout->text;
    if (layout->bare)
        while (text->used > 0 && text->bytes[text->used - 1] == ' ')
            text->used--;
    tp_text_put(text, "\n", 1);
}

static void put_cell(struct layout *layout, const char *cell)
{
    size_t length = strlen(cell);
    tp_text_fill(layout->text, ' ', length < WIDTH ? WIDTH - length : 0);
    tp_text_put(layout->text, cell, length);
    tp_text_put(layout->text, "  ", 2);
}

static void put_name(struct layout *layout, const char *name, size_t bytes)
{
    size_t columns = tp_text_columns(name, bytes);
    bool cut = columns >= layout->name_width_max - 3;
    size_t printed = cut ? layout->name_width_max : columns;
    tp_text_fill(layout->text, ' ', printed < layout->name_width ? layout->name_width - printed : 0);
    tp_text_name(layout->text, name, bytes, cut ? layout->name_width_max - 3 : columns);
    tp_text_put(layout->text, cut ? "...  " : "  ", cut ? 5 : 2);
}

static void put_separator(struct layout *layout)
{
    tp_text_fill(layout->text, '-', layout->name_width);
    for (int i = 0; i < COLUMNS; i++)
        tp_text_put(layout->text, "  ------------", 2 + WIDTH);
    tp_text_put(layout->text, "  ", 2);
    end_line(layout);
}

static void put_share(struct layout *layout, double part_us, double whole_us)
{
    char cell[40];
    if (whole_us == 0) {
        put_cell(layout, "NaN");
        return;
    }
    size_t length = tp_text_fixed(cell, sizeof cell - 1, part_us * 100.0 / whole_us, 2);
    memcpy(cell + length, "%", 2);
    put_cell(layout, cell);
}

static void put_time(struct layout *layout, double us)
{
    char cell[40];
    tp_text_time(cell, sizeof cell, us);
    put_cell(layout, cell);
}

static void put_row(struct layout *layout, const struct tp_average *row, double whole_us)
{
    double self_us = (double)row->self_ns / 1000.0, total_us = (double)row->total_ns / 1000.0;
    char count[24];
    snprintf(count, sizeof count, "%llu", (unsigned long long)row->count);
    put_name(layout, row->name, row->name_bytes);
    put_share(layout, self_us, whole_us);
    put_time(layout, self_us);
    if (row->async)
        put_cell(layout, "0"); /* torch's form */
    else
        put_share(layout, total_us, whole_us);
    put_time(layout, total_us);
    put_time(layout, average_us(row));
    put_cell(layout, count);
    end_line(layout);
}

int tp_table_render(struct tp_text *text, const struct tp_averages *averages, const struct tp_table_options *options)
{
    static const char *const titles[COLUMNS] = {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                                                "# of Calls"};
    size_t count = tp_averages_count(averages);
    if (count == 0)
        return 0;
    uint32_t *order = tp_table_order(averages, options->sort_by, text->arena);
    if (!order)
        return -ENOMEM;
    struct layout layout = {.text = text, .bare = options->bare_lines, .name_width_max = NAME_WIDTH_MAX};
    if (options->name_width_max > 3)
        layout.name_width_max = options->name_width_max;
    double whole_us = 0; /* added up as torch does, in this order, so that the last digit is the same */
    for (size_t i = 0; i < count; i++) {
        const struct tp_average *row = tp_averages_row(averages, order[i]);
        size_t width = tp_text_columns(row->name, row->name_bytes) + 4;
        if (layout.name_width < width)
            layout.name_width = width;
        whole_us += (double)row->self_ns / 1000.0;
    }
    if (layout.name_width > layout.name_width_max)
        layout.name_width = layout.name_width_max;
    if (options->header) {
        tp_text_fill(text, '=', layout.name_width + COLUMNS * (WIDTH + 2));
        tp_text_format(text, "\n%s\n", options->header);
    }
    put_separator(&layout);
    tp_text_fill(text, ' ', layout.name_width > 4 ? layout.name_width - 4 : 0);
    tp_text_put(text, "Name  ", 6);
    for (size_t i = 0; i < COLUMNS; i++)
        put_cell(&layout, titles[i]);
    end_line(&layout);
    put_separator(&layout);
    for (size_t i = 0; i < count && (options->row_limit < 0 || i < (uint64_t)options->row_limit); i++)
        put_row(&layout, tp_averages_row(averages, order[i]), whole_us);
    put_separator(&layout);
    char total[40];
    tp_text_time(total, sizeof total, whole_us);
    tp_text_format(text, "Self CPU time total: %s\n", total);
    return text->cut ? -ENOMEM : 0;
}

/* The file. */

struct table_file {
    const struct tp_cycle_report *report;
    struct tp_sink *sink;
    struct tp_arena *arena;
    struct tp_averages *averages;
};

static void *table_begin(const struct tp_cycle_report *report, const struct tp_writer_file *file)
{
    struct table_file *table = tp_arena_alloc(file->arena, sizeof *table);
    if (!table)
        return NULL;
    *table = (struct table_file){report, file->sink, file->arena, tp_averages_begin(report, file->arena)};
    return table->averages ? table : NULL;
}

static int table_segment(void *state, const struct tp_event *events, size_t count)
{
    struct table_file *table = state;
    return tp_averages_segment(table->averages, events, count);
}

static int table_end(void *state, const struct tp_model_counts *counts)
{
    (void)counts;
    struct table_file *table = state;
    int status = tp_averages_end(table->averages);
    if (status < 0)
        return status;
    struct tp_text text;
    tp_text_init(&text, table->arena, TEXT_LIMIT);
    const struct tp_settings *settings = table->report->settings;
    status =
        tp_table_render(&text, table->averages,
                        &(struct tp_table_options){.sort_by = settings->sort_by, .row_limit = settings->row_limit});
    if (status < 0)
        return status;
    tp_sink_put(table->sink, text.bytes, text.used);
    return tp_sink_status(table->sink);
}

const struct tp_writer tp_table_writer = {
    .name = "table",
    .suffix = "table.txt",
    .begin = table_begin,
    .segment = table_segment,
    .end = table_end,
};
