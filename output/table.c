#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH_MAX 55
#define SHAPES_WIDTH_MAX 80
#define SOURCE_WIDTH_MAX 75
#define WIDTH 12
#define COLUMNS_MOST 24
/* Room for the widest table of a full set of rows. */
#define TEXT_LIMIT (16u << 20)

enum sort_key {
    SORT_SELF,
    SORT_TOTAL,
    SORT_AVERAGE,
    SORT_COUNT,
    SORT_NAME,
    SORT_FLOPS,
    SORT_MEMORY,
    SORT_MEMORY_SELF,
    SORT_DEVICE_AVERAGE,
    SORT_DEVICE_TOTAL,
    SORT_DEVICE_SELF,
    SORT_DEVICE_MEMORY,
    SORT_DEVICE_MEMORY_SELF,
    SORT_ASYNC,
    SORT_ANNOTATION,
    SORT_SHAPES,
    SORT_STACK,
    SORT_NONE,
};

static const struct {
    const char *name;
    enum sort_key key;
} sorts[] = {
    {"self_cpu_time_total", SORT_SELF},
    {"cpu_time_total", SORT_TOTAL},
    {"cpu_time", SORT_AVERAGE},
    {"count", SORT_COUNT},
    {"key", SORT_NAME},
    {"flops", SORT_FLOPS},
    {"cpu_memory_usage", SORT_MEMORY},
    {"self_cpu_memory_usage", SORT_MEMORY_SELF},
    {"device_time", SORT_DEVICE_AVERAGE},
    {"device_time_total", SORT_DEVICE_TOTAL},
    {"self_device_time_total", SORT_DEVICE_SELF},
    {"device_memory_usage", SORT_DEVICE_MEMORY},
    {"self_device_memory_usage", SORT_DEVICE_MEMORY_SELF},
    {"is_async", SORT_ASYNC},
    {"is_user_annotation", SORT_ANNOTATION},
    {"input_shapes", SORT_SHAPES},
    {"stack", SORT_STACK},
    /* The same for all rows of a file. */
    {"node_id", SORT_NONE},
    {"is_remote", SORT_NONE},
    {"is_legacy", SORT_NONE},
    {"overload_name", SORT_NONE},
    {TP_TABLE_UNSORTED, SORT_NONE},
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

static double average_us(int64_t total_ns, uint64_t count)
{
    return count ? (double)total_ns / 1000.0 / (double)count : 0;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_averages(int64_t a_ns, uint64_t a_count, int64_t b_ns, uint64_t b_count)
{
    double a = average_us(a_ns, a_count), b = average_us(b_ns, b_count);
    return (a > b) - (a < b);
}

static int compare_texts(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    int order = a && b ? memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes) : 0;
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* The next bracket or number of a list's text; false at its end. */
static bool next_token(const char **at, char *ret_bracket, int64_t *ret_number)
{
    *at += strspn(*at, ", ");
    const char *c = *at;
    *ret_bracket = *c == '[' || *c == ']' ? *c : 0;
    if (*ret_bracket) {
        *at = c + 1;
        return true;
    }
    bool negative = *c == '-';
    uint64_t value = 0;
    for (c += negative; *c >= '0' && *c <= '9'; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    *ret_number = (int64_t)(negative ? 0 - value : value);
    bool any = c > *at + negative;
    *at = c;
    return any;
}

/* As Python compares lists: by the first numbers that differ; one that ends there comes first. */
static int compare_lists(const char *a, const char *b)
{
    char a_bracket, b_bracket;
    int64_t a_number = 0, b_number = 0;
    while (next_token(&a, &a_bracket, &a_number)) {
        if (!next_token(&b, &b_bracket, &b_number))
            return 1;
        if (a_bracket != b_bracket)
            return a_bracket == ']' ? -1 : 1;
        if (!a_bracket && a_number != b_number)
            return compare_numbers(a_number, b_number);
    }
    return next_token(&b, &b_bracket, &b_number) ? -1 : 0;
}

static int compare(const struct tp_average *x, const struct tp_average *y, enum sort_key key)
{
    switch (key) {
    case SORT_SELF:
        return compare_numbers(x->self_ns, y->self_ns);
    case SORT_TOTAL:
        return compare_numbers(x->total_ns, y->total_ns);
    case SORT_AVERAGE:
        return compare_averages(x->total_ns, x->count, y->total_ns, y->count);
    case SORT_COUNT:
        return (x->count > y->count) - (x->count < y->count);
    case SORT_NAME:
        return compare_texts(x->name, x->name_bytes, y->name, y->name_bytes);
    case SORT_FLOPS:
        return (x->flops > y->flops) - (x->flops < y->flops);
    case SORT_MEMORY:
        return compare_numbers(x->memory, y->memory);
    case SORT_MEMORY_SELF:
        return compare_numbers(x->memory_self, y->memory_self);
    case SORT_DEVICE_AVERAGE:
        return compare_averages(x->device_total_ns, x->count, y->device_total_ns, y->count);
    case SORT_DEVICE_TOTAL:
        return compare_numbers(x->device_total_ns, y->device_total_ns);
    case SORT_DEVICE_SELF:
        return compare_numbers(x->device_self_ns, y->device_self_ns);
    case SORT_DEVICE_MEMORY:
        return compare_numbers(x->device_memory, y->device_memory);
    case SORT_DEVICE_MEMORY_SELF:
        return compare_numbers(x->device_memory_self, y->device_memory_self);
    case SORT_ASYNC:
        return x->async - y->async;
    case SORT_ANNOTATION:
        return x->annotation - y->annotation;
    case SORT_SHAPES:
        return compare_lists(x->shapes ? x->shapes : "", y->shapes ? y->shapes : "");
    case SORT_STACK:
        return compare_texts(x->stack, x->stack_bytes, y->stack, y->stack_bytes);
    case SORT_NONE:
        break;
    }
    return 0;
}

/* True if row a comes before row b. */
static bool before(const struct tp_averages *averages, enum sort_key key, uint32_t a, uint32_t b)
{
    int order = compare(tp_averages_row(averages, a), tp_averages_row(averages, b), key);
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

/* Cells and lines. */

struct column {
    const char *title;
    size_t width;
    bool left; /* aligned to the left, else to the right */
};

struct layout {
    struct tp_text *text;
    const struct tp_table_options *options;
    struct column columns[COLUMNS_MOST];
    size_t count, at; /* columns; the next cell's */
    size_t name_width_max;
    bool device_times, device_memory, shapes, stacks, flops;
    double flops_scale;
    double whole_us, device_us; /* what shares are of */
};

static void end_line(struct layout *layout)
{
    struct tp_text *text = layout->text;
    if (layout->options->bare_lines)
        while (text->used > 0 && text->bytes[text->used - 1] == ' ')
            text->used--;
    tp_text_put(text, "\n", 1);
    layout->at = 0;
}

/* Bytes from outside, at most `most` characters of them, and what comes behind them. */
static void put_text(struct layout *layout, const char *bytes, size_t count, size_t most, const char *behind)
{
    const struct column *column = &layout->columns[layout->at++];
    size_t columns = tp_text_columns(bytes, count), blanks;
    if (columns > most)
        columns = most;
    columns += strlen(behind);
    blanks = columns < column->width ? column->width - columns : 0;
    if (!column->left)
        tp_text_fill(layout->text, ' ', blanks);
    tp_text_name(layout->text, bytes, count, most);
    tp_text_put(layout->text, behind, strlen(behind));
    tp_text_fill(layout->text, ' ', (column->left ? blanks : 0) + 2);
}

static void put_cell(struct layout *layout, const char *cell)
{
    put_text(layout, cell, strlen(cell), SIZE_MAX, "");
}

static void put_name(struct layout *layout, const char *name, size_t bytes)
{
    bool cut = layout->name_width_max != TP_TABLE_ANY_WIDTH &&
               tp_text_columns(name, bytes) >= layout->name_width_max - 3;
    put_text(layout, name, bytes, cut ? layout->name_width_max - 3 : SIZE_MAX, cut ? "..." : "");
}

static void put_separator(struct layout *layout)
{
    for (size_t i = 0; i < layout->count; i++) {
        tp_text_fill(layout->text, '-', layout->columns[i].width);
        tp_text_put(layout->text, "  ", 2);
    }
    end_line(layout);
}

static size_t line_length(const struct layout *layout)
{
    size_t length = 0;
    for (size_t i = 0; i < layout->count; i++)
        length += layout->columns[i].width + 2;
    return length - 2;
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

static void format_time(const struct layout *layout, char *room, size_t size, double us)
{
    static const char *const units[] = {[TP_TABLE_UNIT_S] = "s", [TP_TABLE_UNIT_MS] = "ms", [TP_TABLE_UNIT_US] = "us"};
    enum tp_table_unit unit = layout->options->unit;
    if (unit == TP_TABLE_UNIT_FITTING) {
        tp_text_time(room, size, us);
        return;
    }
    double value = unit == TP_TABLE_UNIT_S ? us / 1e6 : unit == TP_TABLE_UNIT_MS ? us / 1e3 : us;
    size_t length = tp_text_fixed(room, size - 2, value, 3);
    strcpy(room + length, units[unit]);
}

static void put_time(struct layout *layout, double us)
{
    char cell[40];
    format_time(layout, cell, sizeof cell, us);
    put_cell(layout, cell);
}

static void put_memory(struct layout *layout, int64_t bytes)
{
    static const struct {
        uint64_t bytes;
        const char *unit;
    } units[] = {{UINT64_C(1) << 30, " GB"}, {UINT64_C(1) << 20, " MB"}, {UINT64_C(1) << 10, " KB"}};
    char cell[48];
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    for (size_t i = 0; i < TP_COUNT(units); i++)
        if (size >= units[i].bytes) {
            size_t length = tp_text_fixed(cell, sizeof cell - 4, (double)bytes / (double)units[i].bytes, 2);
            strcpy(cell + length, units[i].unit);
            put_cell(layout, cell);
            return;
        }
    snprintf(cell, sizeof cell, "%lld B", (long long)bytes);
    put_cell(layout, cell);
}

static void put_flops(struct layout *layout, uint64_t flops)
{
    char cell[48];
    if (flops == 0)
        strcpy(cell, "--");
    else
        tp_text_fixed(cell, sizeof cell, (double)flops * layout->flops_scale, 3);
    put_cell(layout, cell);
}

/* The end of a frame, as long as the column: that says more than its beginning. */
static void put_frame(struct layout *layout, const char *frame, size_t bytes)
{
    size_t width = layout->columns[layout->at].width, columns = tp_text_columns(frame, bytes);
    if (columns <= width) {
        put_text(layout, frame, bytes, SIZE_MAX, "");
        return;
    }
    size_t dots = width > 3 ? 3 : 0;
    const char *at = tp_text_after(frame, bytes, columns - width + dots);
    tp_text_put(layout->text, "...", dots);
    tp_text_name(layout->text, at, bytes - (size_t)(at - frame), SIZE_MAX);
    tp_text_put(layout->text, "  ", 2);
    layout->at++;
}

static size_t frame_length(const char *stack, size_t bytes)
{
    const char *end = memchr(stack, ';', bytes);
    return end ? (size_t)(end - stack) : bytes;
}

/* Frames after the first one: a line each, and an empty one behind them. */
static void put_stack(struct layout *layout, const struct tp_average *row)
{
    size_t source = 0;
    while (!layout->columns[source].left)
        source++;
    size_t at = row->stack_bytes ? frame_length(row->stack, row->stack_bytes) + 1 : 0;
    for (bool last = false; !last;) {
        last = at >= row->stack_bytes;
        while (layout->at < source)
            put_cell(layout, "");
        size_t length = last ? 0 : frame_length(row->stack + at, row->stack_bytes - at);
        put_frame(layout, last ? "" : row->stack + at, length);
        while (layout->at < layout->count)
            put_cell(layout, "");
        end_line(layout);
        at += length + 1;
    }
}

static void put_row(struct layout *layout, const struct tp_average *row)
{
    const struct tp_table_options *options = layout->options;
    double self_us = (double)row->self_ns / 1000.0, total_us = (double)row->total_ns / 1000.0;
    double device_self_us = (double)row->device_self_ns / 1000.0;
    char count[24];
    snprintf(count, sizeof count, "%llu", (unsigned long long)row->count);
    put_name(layout, row->name, row->name_bytes);
    put_share(layout, self_us, layout->whole_us);
    put_time(layout, self_us);
    if (row->async)
        put_cell(layout, "0"); /* torch's form */
    else
        put_share(layout, total_us, layout->whole_us);
    put_time(layout, total_us);
    put_time(layout, average_us(row->total_ns, row->count));
    if (layout->device_times) {
        put_time(layout, device_self_us);
        put_share(layout, device_self_us, layout->device_us);
        put_time(layout, (double)row->device_total_ns / 1000.0);
        put_time(layout, average_us(row->device_total_ns, row->count));
    }
    if (options->memory) {
        put_memory(layout, row->memory);
        put_memory(layout, row->memory_self);
    }
    if (layout->device_memory) {
        put_memory(layout, row->device_memory);
        put_memory(layout, row->device_memory_self);
    }
    put_cell(layout, count);
    if (layout->shapes)
        put_text(layout, row->shapes ? row->shapes : "[]", row->shapes ? row->shapes_bytes : 2,
                 layout->columns[layout->at].width, "");
    if (layout->stacks)
        put_frame(layout, row->stack_bytes ? row->stack : "",
                  row->stack_bytes ? frame_length(row->stack, row->stack_bytes) : 0);
    if (layout->flops)
        put_flops(layout, row->flops);
    end_line(layout);
    if (layout->stacks)
        put_stack(layout, row);
}

/* Columns. */

static void add_column(struct layout *layout, const char *title, size_t width)
{
    layout->columns[layout->count++] = (struct column){.title = title, .width = width};
}

static size_t limit_or(size_t given, size_t otherwise)
{
    return given ? given : otherwise;
}

static size_t at_most(size_t width, size_t limit)
{
    return width < limit ? width : limit;
}

static size_t longest_frame(const struct tp_average *row)
{
    size_t longest = 0;
    for (size_t at = 0; at < row->stack_bytes;) {
        size_t length = frame_length(row->stack + at, row->stack_bytes - at);
        size_t columns = tp_text_columns(row->stack + at, length);
        if (columns > longest)
            longest = columns;
        at += length + 1;
    }
    return longest;
}

/* torch scales to the smallest value there is. Constants, as the agent does without libm. */
static const char *scale_flops(struct layout *layout, uint64_t smallest)
{
    static const struct {
        const char *title;
        double scale;
    } units[] = {{"Total FLOPs", 1},     {"Total KFLOPs", 1e-3},  {"Total MFLOPs", 1e-6},
                 {"Total GFLOPs", 1e-9}, {"Total TFLOPs", 1e-12}, {"Total PFLOPs", 1e-15}};
    size_t unit = 0;
    for (; smallest >= 1000 && unit + 1 < TP_COUNT(units); unit++)
        smallest /= 1000;
    layout->flops_scale = units[unit].scale;
    return units[unit].title;
}

/* "Self CUDA %", kept in the arena. */
static const char *device_title(struct layout *layout, const char *before, const char *behind)
{
    char title[64];
    int length = snprintf(title, sizeof title, "%s%s%s", before, layout->options->device, behind);
    const char *kept = tp_arena_copy(layout->text->arena, title,
                                     (size_t)length < sizeof title ? (size_t)length : sizeof title - 1);
    return kept ? kept : "";
}

/* Sums are added up as torch does, in the order that is printed, so that the last digit is the same. */
static void lay_out(struct layout *layout, const struct tp_averages *averages, const uint32_t *order, size_t count)
{
    const struct tp_table_options *options = layout->options;
    size_t name_width = 0, shapes_width = 0, source_width = 0;
    uint64_t least_flops = 0;
    bool device_memory = false;
    for (size_t i = 0; i < count; i++) {
        const struct tp_average *row = tp_averages_row(averages, order[i]);
        size_t name = tp_text_columns(row->name, row->name_bytes), source = longest_frame(row);
        size_t shapes = row->shapes ? tp_text_columns(row->shapes, row->shapes_bytes) : 2;
        name_width = name > name_width ? name : name_width;
        shapes_width = shapes > shapes_width ? shapes : shapes_width;
        source_width = source > source_width ? source : source_width;
        layout->device_times |= row->device_self_ns > 0 && options->device;
        layout->shapes |= row->shapes && row->shapes_bytes > 2; /* "[]" is no shape */
        layout->stacks |= row->stack_bytes > 0;
        device_memory |= row->device_memory_self > 0;
        if (row->flops && (least_flops == 0 || row->flops < least_flops))
            least_flops = row->flops;
        layout->whole_us += (double)row->self_ns / 1000.0;
        if (row->device && !row->annotation)
            layout->device_us += (double)row->device_self_ns / 1000.0;
    }
    layout->device_memory = options->memory && options->device && device_memory;
    layout->flops = options->flops && least_flops;
    layout->name_width_max = limit_or(options->name_width_max, NAME_WIDTH_MAX);
    add_column(layout, "Name", at_most(name_width + 4, layout->name_width_max));
    add_column(layout, "Self CPU %", WIDTH);
    add_column(layout, "Self CPU", WIDTH);
    add_column(layout, "CPU total %", WIDTH);
    add_column(layout, "CPU total", WIDTH);
    add_column(layout, "CPU time avg", WIDTH);
    if (layout->device_times) {
        add_column(layout, device_title(layout, "Self ", ""), WIDTH);
        add_column(layout, device_title(layout, "Self ", " %"), WIDTH);
        add_column(layout, device_title(layout, "", " total"), WIDTH);
        add_column(layout, device_title(layout, "", " time avg"), WIDTH);
    }
    if (options->memory) {
        add_column(layout, "CPU Mem", WIDTH);
        add_column(layout, "Self CPU Mem", WIDTH);
    }
    if (layout->device_memory) {
        add_column(layout, device_title(layout, "", " Mem"), WIDTH);
        add_column(layout, device_title(layout, "Self ", " Mem"), WIDTH);
    }
    add_column(layout, "# of Calls", WIDTH);
    if (layout->shapes)
        add_column(layout, "Input Shapes",
                   at_most(shapes_width + 4, limit_or(options->shapes_width_max, SHAPES_WIDTH_MAX)));
    if (layout->stacks) {
        add_column(layout, "Source Location",
                   at_most(source_width + 4, limit_or(options->source_width_max, SOURCE_WIDTH_MAX)));
        layout->columns[layout->count - 1].left = true;
    }
    if (layout->flops)
        add_column(layout, scale_flops(layout, least_flops), WIDTH);
}

int tp_table_render(struct tp_text *text, const struct tp_averages *averages, const struct tp_table_options *options)
{
    size_t count = tp_averages_count(averages);
    if (count == 0)
        return 0;
    uint32_t *order = tp_table_order(averages, options->sort_by, text->arena);
    if (!order)
        return -ENOMEM;
    struct layout layout = {.text = text, .options = options};
    lay_out(&layout, averages, order, count);
    if (options->header) {
        tp_text_fill(text, '=', line_length(&layout));
        tp_text_put(text, "\n", 1);
        tp_text_put(text, options->header, strlen(options->header));
        tp_text_put(text, "\n", 1);
    }
    if (options->top_level_only) {
        tp_text_fill(text, '=', line_length(&layout));
        tp_text_format(text, "\nThis report only display top-level ops statistics\n");
    }
    put_separator(&layout);
    for (size_t i = 0; i < layout.count; i++)
        put_cell(&layout, layout.columns[i].title);
    end_line(&layout);
    put_separator(&layout);
    int64_t printed = 0;
    for (size_t i = 0; i < count && printed != options->row_limit; i++) {
        const struct tp_average *row = tp_averages_row(averages, order[i]);
        if (options->top_level_only && row->nested)
            continue;
        put_row(&layout, row);
        printed++;
    }
    put_separator(&layout);
    char total[40];
    format_time(&layout, total, sizeof total, layout.whole_us);
    tp_text_format(text, "Self CPU time total: %s\n", total);
    if (layout.device_times) {
        format_time(&layout, total, sizeof total, layout.device_us);
        tp_text_format(text, "Self %s time total: %s\n", options->device, total);
    }
    return text->cut ? -ENOMEM : 0;
}

/* The file. */

struct table_file {
    const struct tp_cycle_report *report;
    struct tp_sink *sink;
    struct tp_arena *arena;
};

static void *table_begin(const struct tp_cycle_report *report, const struct tp_writer_file *file)
{
    struct table_file *table = tp_arena_alloc(file->arena, sizeof *table);
    if (!table)
        return NULL;
    *table = (struct table_file){report, file->sink, file->arena};
    return table;
}

static int table_end(void *state, const struct tp_model_counts *counts)
{
    (void)counts;
    struct table_file *table = state;
    if (!table->report->averages)
        return -ENOMEM;
    struct tp_text text;
    tp_text_init(&text, table->arena, TEXT_LIMIT);
    const struct tp_settings *settings = table->report->settings;
    if (table->report->is_cut && tp_averages_count(table->report->averages) == 0)
        tp_text_format(&text, "%s\n", table->report->partial_why);
    int status =
        tp_table_render(&text, table->report->averages,
                        &(struct tp_table_options){
                            .header = table->report->is_cut ? table->report->partial_why : NULL,
                            .sort_by = settings->sort_by, .row_limit = settings->row_limit, .flops = settings->with_flops});
    if (status < 0)
        return status;
    tp_sink_put(table->sink, text.bytes, text.used);
    return tp_sink_status(table->sink);
}

const struct tp_writer tp_table_writer = {
    .name = "table",
    .suffix = "table.txt",
    .begin = table_begin,
    .end = table_end,
};
