#include "averages.h"

#include <errno.h>
#include <string.h>

#include "event_flops.h"
#include "families.h"

#define BLOCK_ROWS 256
/* Ids of names are taken by this cache; a name is looked up by content only when its place is another's. */
#define CACHE 1024
/* Ranges around whole steps that are remembered: a program has a few. */
#define AROUND_MAX 64
#define NO_ROW UINT32_MAX

struct cached {
    uint32_t name_id, row; /* row: index + 1, or NO_ROW for a name that is left out; 0: empty */
    bool annotation;
};

struct around {
    uint64_t start_ns, end_ns, serial;
    uint32_t row;
};

struct tp_averages {
    struct tp_arena *arena;
    struct tp_average **blocks; /* of rows: these never move */
    size_t count, capacity, max_rows, name_bytes, max_bytes;
    uint32_t *slots; /* index + 1 by hash, open addressing, a power of two */
    size_t slot_count;
    size_t others; /* index + 1 */
    enum tp_flops_formulas formulas;
    struct cached cache[CACHE];
    /* Steps. */
    const struct tp_step_span *steps;
    size_t step_count, near;
    uint64_t begin_ns, end_ns; /* the window: steps are clipped to it */
    uint64_t *inside_ns;       /* by step: self times of what lies inside */
    struct around around[AROUND_MAX];
    size_t around_count;
    struct tp_families *families;
};

/* FNV-1a, a word at a time, with a final mix. */
static uint64_t hash_of(const char *name, size_t bytes, uint64_t hash)
{
    hash += UINT64_C(0xcbf29ce484222325);
    for (; bytes >= 8; name += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, name, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    for (; bytes > 0; name++, bytes--)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static uint64_t hash_of_key(const struct tp_average_key *key, uint64_t name_hash)
{
    uint64_t hash = name_hash + key->annotation + 2u * key->device + 4u * key->python;
    if (key->shapes)
        hash = hash_of(key->shapes, key->shapes_bytes, hash + 8);
    return key->stack ? hash_of(key->stack, key->stack_bytes, hash + 16) : hash;
}

static struct tp_average *row_at(const struct tp_averages *averages, size_t row)
{
    return &averages->blocks[row / BLOCK_ROWS][row % BLOCK_ROWS];
}

/* Room for twice as many rows to be found; the rows themselves come block by block. */
static int grow(struct tp_averages *averages)
{
    size_t capacity = averages->capacity ? averages->capacity * 2 : BLOCK_ROWS;
    struct tp_average **blocks = tp_arena_alloc(averages->arena, capacity / BLOCK_ROWS * sizeof *blocks);
    uint32_t *slots = tp_arena_alloc(averages->arena, capacity * 2 * sizeof *slots);
    if (!blocks || !slots)
        return -ENOMEM;
    if (averages->count)
        memcpy(blocks, averages->blocks, averages->capacity / BLOCK_ROWS * sizeof *blocks);
    averages->blocks = blocks;
    for (size_t i = 0; i < averages->count; i++) {
        size_t at = row_at(averages, i)->hash & (capacity * 2 - 1);
        while (slots[at])
            at = (at + 1) & (capacity * 2 - 1);
        slots[at] = (uint32_t)i + 1;
    }
    averages->capacity = capacity;
    averages->slots = slots;
    averages->slot_count = capacity * 2;
    return 0;
}

static int64_t add_row(struct tp_averages *averages, const struct tp_average_key *key, uint64_t hash)
{
    if (averages->count == averages->capacity && grow(averages) < 0)
        return -ENOMEM;
    struct tp_average **block = &averages->blocks[averages->count / BLOCK_ROWS];
    if (!*block && !(*block = tp_arena_alloc(averages->arena, BLOCK_ROWS * sizeof **block)))
        return -ENOMEM;
    struct tp_average row = {.name_bytes = key->name_bytes,
                             .shapes_bytes = key->shapes_bytes,
                             .stack_bytes = key->stack_bytes,
                             .annotation = key->annotation,
                             .device = key->device,
                             .python = key->python,
                             .hash = hash,
                             .first_start_ns = INT64_MAX};
    row.name = tp_arena_copy(averages->arena, key->name, key->name_bytes);
    row.name_hash = hash_of(key->name, key->name_bytes, 0);
    row.shapes = key->shapes ? tp_arena_copy(averages->arena, key->shapes, key->shapes_bytes) : NULL;
    row.stack = key->stack ? tp_arena_copy(averages->arena, key->stack, key->stack_bytes) : NULL;
    if (!row.name || (key->shapes && !row.shapes) || (key->stack && !row.stack))
        return -ENOMEM;
    size_t at = hash & (averages->slot_count - 1);
    while (averages->slots[at])
        at = (at + 1) & (averages->slot_count - 1);
    *row_at(averages, averages->count) = row;
    averages->slots[at] = (uint32_t)++averages->count;
    return (int64_t)averages->count - 1;
}

static int64_t others_row(struct tp_averages *averages)
{
    if (!averages->others) {
        struct tp_average_key key = {.name = TP_AVERAGES_OTHERS, .name_bytes = strlen(TP_AVERAGES_OTHERS)};
        /* Not the hash of a program's own range of that name. */
        int64_t row = add_row(averages, &key, hash_of(key.name, key.name_bytes, 0) + 1);
        if (row < 0)
            return row;
        averages->others = (size_t)row + 1;
    }
    return (int64_t)averages->others - 1;
}

static bool same_text(const char *a, uint32_t a_bytes, const char *b, uint32_t b_bytes)
{
    return a_bytes == b_bytes && !a == !b && (!a || memcmp(a, b, a_bytes) == 0);
}

static bool is_row_of(const struct tp_average *row, const struct tp_average_key *key)
{
    return row->annotation == key->annotation && row->device == key->device && row->python == key->python &&
           same_text(row->name, row->name_bytes, key->name, key->name_bytes) &&
           same_text(row->shapes, row->shapes_bytes, key->shapes, key->shapes_bytes) &&
           same_text(row->stack, row->stack_bytes, key->stack, key->stack_bytes);
}

int64_t tp_averages_row_of(struct tp_averages *averages, const struct tp_average_key *key)
{
    uint64_t hash = hash_of_key(key, hash_of(key->name, key->name_bytes, 0));
    for (size_t at = hash & (averages->slot_count - 1); averages->slots[at];
         at = (at + 1) & (averages->slot_count - 1)) {
        const struct tp_average *row = row_at(averages, averages->slots[at] - 1);
        if (row->hash == hash && averages->slots[at] != averages->others && is_row_of(row, key))
            return averages->slots[at] - 1;
    }
    size_t bytes = (size_t)key->name_bytes + key->shapes_bytes + key->stack_bytes;
    if (averages->count - (averages->others > 0) >= averages->max_rows ||
        bytes > averages->max_bytes - averages->name_bytes)
        return others_row(averages);
    int64_t row = add_row(averages, key, hash);
    if (row >= 0)
        averages->name_bytes += bytes;
    return row;
}

struct tp_average *tp_averages_at(struct tp_averages *averages, size_t row)
{
    return row_at(averages, row);
}

static int64_t row_of(struct tp_averages *averages, const char *name, size_t bytes, bool annotation, bool async)
{
    size_t count = averages->count;
    int64_t row = tp_averages_row_of(averages, &(struct tp_average_key){.name = name,
                                                                        .name_bytes = (uint32_t)bytes,
                                                                        .annotation = annotation});
    if (row >= 0 && (size_t)row == count && averages->others != (size_t)row + 1)
        row_at(averages, row)->async = async;
    return row;
}

static bool begins_with(const char *name, size_t bytes, const char *prefix)
{
    return bytes >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

bool tp_averages_leave_out(const char *name, size_t bytes)
{
    static const char *const names[] = {"profiler::_record_function_enter", "profiler::_record_function_enter_new",
                                        "profiler::_record_function_exit",  "aten::is_leaf",
                                        "aten::output_nr",                  "aten::_version"};
    for (size_t i = 0; i < TP_COUNT(names); i++)
        if (bytes == strlen(names[i]) && memcmp(name, names[i], bytes) == 0)
            return true;
    return false;
}

static int64_t row_of_event(struct tp_averages *averages, const struct tp_event *event)
{
    bool annotation = event->scope == TP_SCOPE_USER_SCOPE, async = event->flags & TP_EVENT_ASYNC;
    struct cached *cached = &averages->cache[event->name_id % CACHE];
    if (event->name_id && cached->row && cached->name_id == event->name_id && cached->annotation == annotation)
        return cached->row == NO_ROW ? NO_ROW : (int64_t)cached->row - 1;
    const char *name = event->name;
    size_t bytes = event->name_bytes;
    if (begins_with(name, bytes, "ProfilerStep#")) {
        name = "ProfilerStep*";
        bytes = strlen(name);
    }
    int64_t row = tp_averages_leave_out(name, bytes) ? NO_ROW : row_of(averages, name, bytes, annotation, async);
    if (event->name_id && row >= 0)
        *cached = (struct cached){event->name_id, row == NO_ROW ? NO_ROW : (uint32_t)row + 1, annotation};
    return row;
}

/* Steps. */

/* The step in which the time lies, or the first one after it; step_count: none. */
static size_t step_at(struct tp_averages *averages, uint64_t ns)
{
    size_t near = averages->near;
    if (near < averages->step_count && averages->steps[near].start_ns <= ns && ns < averages->steps[near].end_ns)
        return near;
    size_t low = 0, high = averages->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (averages->steps[middle].end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return averages->near = low;
}

/* A range belongs to the step in which it starts, unless it goes on over the whole next one. */
static void see_step(struct tp_averages *averages, const struct tp_event *event, uint32_t row)
{
    size_t step = step_at(averages, event->start_ns);
    if (step == averages->step_count)
        return;
    const struct tp_step_span *spans = averages->steps;
    bool around = spans[step].start_ns >= event->start_ns && spans[step].end_ns <= event->end_ns;
    if (step + 1 < averages->step_count && spans[step + 1].end_ns <= event->end_ns)
        around = true;
    if (around) {
        if (row != NO_ROW && averages->around_count < AROUND_MAX)
            averages->around[averages->around_count++] =
                (struct around){event->start_ns, event->end_ns, event->thread->serial, row};
    } else if (spans[step].start_ns <= event->start_ns && spans[step].thread.serial == event->thread->serial) {
        averages->inside_ns[step] += event->self_ns;
    }
}

static uint64_t take(uint64_t *from, uint64_t amount)
{
    if (amount > *from)
        amount = *from;
    *from -= amount;
    return amount;
}

static int add_steps(struct tp_averages *averages)
{
    int64_t row = -1;
    for (size_t i = 0; i < averages->step_count; i++) {
        const struct tp_step_span *step = &averages->steps[i];
        uint64_t start = step->start_ns > averages->begin_ns ? step->start_ns : averages->begin_ns;
        uint64_t end = step->end_ns < averages->end_ns ? step->end_ns : averages->end_ns;
        if (end <= start)
            continue;
        if (row < 0 && (row = row_of(averages, "ProfilerStep*", 13, true, false)) < 0)
            return -ENOMEM;
        uint64_t self = end - start;
        take(&self, averages->inside_ns[i]);
        row_at(averages, row)->count++;
        row_at(averages, row)->total_ns += (int64_t)(end - start);
        row_at(averages, row)->self_ns += (int64_t)self;
        /* The innermost range around the step had this time for its own. */
        const struct around *inner = NULL;
        for (size_t k = 0; k < averages->around_count; k++) {
            const struct around *around = &averages->around[k];
            if (around->serial == step->thread.serial && around->start_ns <= step->start_ns &&
                step->end_ns <= around->end_ns &&
                (!inner || around->end_ns - around->start_ns < inner->end_ns - inner->start_ns))
                inner = around;
        }
        if (inner) {
            int64_t *own = &row_at(averages, inner->row)->self_ns;
            *own = *own > (int64_t)self ? *own - (int64_t)self : 0;
        }
    }
    return 0;
}

/* The consumer. */

struct tp_averages *tp_averages_new(struct tp_arena *arena, size_t max_rows)
{
    struct tp_averages *averages = tp_arena_alloc(arena, sizeof *averages);
    if (!averages)
        return NULL;
    averages->arena = arena;
    averages->max_rows = max_rows ? max_rows : TP_AVERAGES_MAX_ROWS;
    averages->max_bytes = TP_AVERAGES_MAX_NAME_BYTES;
    if (averages->max_rows > TP_AVERAGES_MAX_ROWS)
        averages->max_bytes = averages->max_rows * (TP_AVERAGES_MAX_NAME_BYTES / TP_AVERAGES_MAX_ROWS);
    return grow(averages) < 0 ? NULL : averages;
}

struct tp_averages *tp_averages_begin(const struct tp_cycle_report *report, struct tp_arena *arena)
{
    struct tp_averages *averages = tp_averages_new(arena, 0);
    if (averages && report->settings->with_flops)
        averages->formulas = TP_FLOPS_TORCH;
    if (!averages || report->steps_by_program || report->step_count == 0)
        return averages;
    averages->steps = report->steps;
    averages->step_count = report->step_count;
    averages->begin_ns = report->window_begin_ns;
    averages->end_ns = report->window_end_ns;
    averages->inside_ns = tp_arena_alloc(arena, report->step_count * sizeof *averages->inside_ns);
    return averages->inside_ns ? averages : NULL;
}

/* Tells the range around the event of it. */
static int tell_parent(struct tp_averages *averages, const struct tp_event *event, size_t at, int64_t row, uint64_t flops)
{
    struct tp_family *family = tp_families_around(averages->families, at);
    int64_t ns = (int64_t)(event->end_ns - event->start_ns);
    if (!family)
        return -ENOMEM;
    if (row == NO_ROW)
        family->left_out_ns += ns;
    else
        tp_family_add(family, &(struct tp_child){.index = event->index,
                                                 .label = (uint64_t)row,
                                                 .total_ns = ns,
                                                 .self_ns = (int64_t)event->self_ns,
                                                 .flops = flops});
    return 0;
}

static bool same_name(const struct tp_averages *averages, size_t a, size_t b)
{
    const struct tp_average *x = row_at(averages, a), *y = row_at(averages, b);
    if (averages->others == a + 1 || averages->others == b + 1)
        return false;
    return a == b || (x->name_hash == y->name_hash && same_text(x->name, x->name_bytes, y->name, y->name_bytes));
}

/* What lay inside the event is known: time of what is left out is its own, and an only child of its name is one with
 * it. */
static void settle(struct tp_averages *averages, const struct tp_event *event, size_t row, const struct tp_family *family)
{
    struct tp_average *own = row_at(averages, row);
    own->self_ns += family->left_out_ns;
    if (family->count != 1 || event->flags & TP_EVENT_ASYNC || !same_name(averages, row, (size_t)family->only.label))
        return;
    struct tp_average *child = row_at(averages, (size_t)family->only.label);
    child->count--;
    child->total_ns -= family->only.total_ns;
    child->self_ns -= family->only.self_ns;
    child->flops -= family->only.flops;
    own->self_ns += family->only.self_ns;
}

int tp_averages_segment(struct tp_averages *averages, const struct tp_event *events, size_t count)
{
    if (!averages->families && !(averages->families = tp_families_new(averages->arena)))
        return -ENOMEM;
    if (tp_families_begin(averages->families, events, count) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct tp_event *event = &events[i];
        int64_t at = row_of_event(averages, event);
        if (at < 0)
            return -ENOMEM;
        uint64_t flops = averages->formulas && at != NO_ROW ? tp_event_flops(event, averages->formulas) : 0;
        bool root = event->parent == UINT64_MAX;
        if (averages->step_count && !(event->flags & TP_EVENT_ASYNC) && !(at == NO_ROW && root))
            see_step(averages, event, (uint32_t)at);
        if (!root && tell_parent(averages, event, i, at, flops) < 0)
            return -ENOMEM;
        if (at == NO_ROW)
            continue;
        struct tp_average *row = row_at(averages, (size_t)at);
        row->count++;
        row->total_ns += (int64_t)(event->end_ns - event->start_ns);
        row->self_ns += (int64_t)event->self_ns;
        row->flops += flops;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t at = row_of_event(averages, &events[i]);
        if (at < 0)
            return -ENOMEM;
        if (at != NO_ROW)
            settle(averages, &events[i], (size_t)at, tp_families_of(averages->families, i));
    }
    return 0;
}

/* Rows all of whose events were one with their parents are none. */
static void drop_empty(struct tp_averages *averages)
{
    size_t count = 0, others = 0;
    for (size_t i = 0; i < averages->count; i++) {
        if (row_at(averages, i)->count == 0)
            continue;
        if (i + 1 == averages->others)
            others = count + 1;
        if (count < i)
            *row_at(averages, count) = *row_at(averages, i);
        count++;
    }
    averages->count = count;
    averages->others = others;
}

int tp_averages_end(struct tp_averages *averages)
{
    if (averages->step_count && add_steps(averages) < 0)
        return -ENOMEM;
    drop_empty(averages);
    return 0;
}

int tp_averages_merge(struct tp_averages *into, const struct tp_averages *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct tp_average *row = row_at(from, i);
        int64_t at = i + 1 == from->others
                         ? others_row(into)
                         : row_of(into, row->name, row->name_bytes, row->annotation, row->async);
        if (at < 0)
            return -ENOMEM;
        row_at(into, at)->count += row->count;
        row_at(into, at)->total_ns += row->total_ns;
        row_at(into, at)->self_ns += row->self_ns;
        row_at(into, at)->flops += row->flops;
    }
    return 0;
}

static bool appears_before(const struct tp_average *a, const struct tp_average *b)
{
    if (a->first_start_ns != b->first_start_ns)
        return a->first_start_ns < b->first_start_ns;
    if (a->first_end_ns != b->first_end_ns)
        return a->first_end_ns > b->first_end_ns;
    return a->first_serial < b->first_serial;
}

static void sift(struct tp_averages *averages, size_t count, size_t at)
{
    struct tp_average moved = *row_at(averages, at);
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && appears_before(row_at(averages, child), row_at(averages, child + 1)))
            child++;
        if (!appears_before(&moved, row_at(averages, child)))
            break;
        *row_at(averages, at) = *row_at(averages, child);
    }
    *row_at(averages, at) = moved;
}

void tp_averages_arrange(struct tp_averages *averages)
{
    drop_empty(averages);
    size_t count = averages->count;
    for (size_t i = count / 2; i-- > 0;)
        sift(averages, count, i);
    for (size_t i = count; i-- > 1;) {
        struct tp_average last = *row_at(averages, 0);
        *row_at(averages, 0) = *row_at(averages, i);
        *row_at(averages, i) = last;
        sift(averages, i, 0);
    }
}

size_t tp_averages_count(const struct tp_averages *averages)
{
    return averages->count;
}

const struct tp_average *tp_averages_row(const struct tp_averages *averages, size_t row)
{
    return row_at(averages, row);
}

uint64_t tp_averages_others(const struct tp_averages *averages)
{
    return averages->others ? row_at(averages, averages->others - 1)->count : 0;
}
