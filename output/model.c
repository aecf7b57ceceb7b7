#include "model.h"

#include <errno.h>
#include <string.h>

#include "inputs.h"
#include "merge.h"
#include "ranges.h"
#include "segment.h"
#include "values.h"

struct tp_model_thread {
    struct tp_cursor cursor; /* first: a cursor of the merge is its thread */
    struct tp_range *top;    /* innermost open range */
    struct tp_range *newest; /* the one that the last begin opened, while it is open */
    uint64_t last_ns;        /* stamps rise above this */
};

struct tp_model {
    const struct tp_model_options *options;
    struct tp_model_counts *counts;
    struct tp_arena arena;
    struct tp_merge merge;
    struct tp_ranges ranges;
    struct tp_segment segment;
    struct tp_range_text *texts; /* that events of the segment use */
    uint64_t unfinished, names_cut, inputs_cut; /* in the segment */
    uint64_t next_index, next_end;
    struct tp_model_thread *threads;
    size_t thread_count;
    const struct tp_model_thread *forward; /* the thread that was looked up last by its logical id */
};

static uint64_t nanoseconds(const struct tp_model *model, uint64_t ticks)
{
    return model->options->source.nanoseconds(model->options->source.context, ticks);
}

static uint64_t stamp(struct tp_model_thread *thread, uint64_t ns)
{
    thread->last_ns = ns > thread->last_ns ? ns : thread->last_ns + 1;
    return thread->last_ns;
}

static int deliver(struct tp_model *model)
{
    struct tp_segment *segment = &model->segment;
    if (!segment->count)
        return 0;
    tp_segment_sort(segment);
    int result = model->options->segment(model->options->context, segment->events, segment->count);
    if (result >= 0) {
        model->counts->segments++;
        model->counts->kept += segment->count;
        model->counts->unfinished += model->unfinished;
        model->counts->names_cut += model->names_cut;
        model->counts->inputs_cut += model->inputs_cut;
    }
    model->unfinished = model->names_cut = model->inputs_cut = 0;
    segment->count = 0;
    tp_ranges_free_texts(&model->ranges, model->texts);
    model->texts = NULL;
    return result < 0 ? result : 0;
}

/* Text of a range's name, which need not end with NUL. */
static const char *name_of(const struct tp_model *model, const struct tp_range *range, size_t *ret_bytes)
{
    if (range->name_id)
        return model->options->source.name(model->options->source.context, range->name_id, ret_bytes);
    *ret_bytes = range->text_bytes;
    return range->text ? range->text->chars : "";
}

/* NULL: none, or not all of them came. */
static const struct tp_event_values *values_of(const struct tp_range *range, unsigned side)
{
    bool whole = range->values[side] && range->values_end[side];
    return whole ? (const struct tp_event_values *)range->values[side]->chars : NULL;
}

static void set_values(const struct tp_model *model, const struct tp_range *range, struct tp_event *event)
{
    event->given = values_of(range, 0);
    event->returned = values_of(range, 1);
    bool ended = !(event->flags & TP_EVENT_UNFINISHED);
    if (range->has_values && !(event->given && (event->returned || !ended)))
        event->flags |= TP_EVENT_INPUTS_CUT; /* they found no room */
    const struct tp_source *source = &model->options->source;
    size_t bytes = 0;
    uint32_t schema = event->given ? event->given->schema : 0;
    event->schema = schema ? source->name(source->context, schema, &bytes) : "";
    event->schema_bytes = (uint32_t)bytes;
}

/* The event of a range that is over, with what does not depend on the way it ended. */
static struct tp_event *add_event(struct tp_model *model, const struct tp_range *range, uint8_t flags)
{
    struct tp_event *event = tp_segment_add(&model->segment);
    size_t name_bytes;
    event->name = name_of(model, range, &name_bytes);
    event->name_bytes = (uint32_t)name_bytes;
    event->name_id = range->name_id;
    event->index = range->index;
    event->scope = range->scope;
    event->flags = range->flags | flags;
    event->sequence = range->sequence;
    event->forward_thread = range->forward_thread;
    event->id = range->id;
    event->thread = &range->thread->cursor.info;
    bool whole = range->inputs && range->inputs_here == range->input_words;
    event->inputs = whole ? (const uint64_t *)range->inputs->chars : NULL;
    event->input_words = whole ? range->input_words : 0;
    event->input_count = whole ? range->input_count : 0;
    event->forward_parent = range->forward_parent;
    event->end_index = model->next_end++;
    set_values(model, range, event);
    model->unfinished += (event->flags & TP_EVENT_UNFINISHED) != 0;
    model->names_cut += (event->flags & TP_EVENT_NAME_CUT) != 0;
    model->inputs_cut += (event->flags & TP_EVENT_INPUTS_CUT) != 0;
    return event;
}

static void keep_for_segment(struct tp_model *model, struct tp_range_text *text)
{
    text->next = model->texts;
    model->texts = text;
}

static int let_go(struct tp_model *model, struct tp_range *range)
{
    if (TP_UNLIKELY(range->text != NULL))
        keep_for_segment(model, range->text);
    if (range->inputs)
        keep_for_segment(model, range->inputs);
    for (unsigned side = 0; side < 2; side++)
        if (TP_UNLIKELY(range->values[side] != NULL))
            keep_for_segment(model, range->values[side]);
    if (range->thread->newest == range)
        range->thread->newest = NULL;
    tp_ranges_close(&model->ranges, range);
    return TP_UNLIKELY(model->segment.count == model->segment.capacity) ? deliver(model) : 0;
}

static int end_top(struct tp_model *model, struct tp_model_thread *thread, uint64_t ns, uint8_t flags)
{
    struct tp_range *range = thread->top;
    struct tp_event *event = add_event(model, range, flags);
    event->start_ns = range->start_ns;
    event->end_ns = stamp(thread, ns);
    uint64_t duration = event->end_ns - event->start_ns;
    event->self_ns = duration - range->child_ns;
    event->parent = range->parent;
    event->depth = range->depth;
    event->end_thread = thread->cursor.info.serial;
    thread->top = range->up;
    if (thread->top) {
        thread->top->above = NULL;
        thread->top->child_ns += duration;
    }
    return let_go(model, range);
}

/* Ends what is open inside the range (NULL: everything), so that the outermost of it ends a nanosecond before this time
 * and each one inside a nanosecond before the one around it, as far as earlier stamps leave room. */
static int end_inside(struct tp_model *model, struct tp_model_thread *thread, const struct tp_range *range, uint64_t ns)
{
    uint64_t count = 0;
    for (const struct tp_range *open = thread->top; open != range; open = open->up)
        count++;
    int failed = 0;
    for (ns = ns > count ? ns - count : 0; !failed && thread->top != range; ns++)
        failed = end_top(model, thread, ns, TP_EVENT_UNFINISHED);
    return failed;
}

/* Ends a range that does not nest, or turns out not to: what counted as inside it then is inside the one around it. */
static int end_apart(struct tp_model *model, struct tp_range *range, uint64_t ns, uint64_t end_thread, uint8_t flags)
{
    struct tp_model_thread *thread = range->thread;
    if (range->up) {
        range->up->above = range->above;
        range->up->child_ns += range->child_ns;
    }
    if (range->above)
        range->above->up = range->up;
    if (thread->top == range)
        thread->top = range->up;
    struct tp_event *event = add_event(model, range, flags | TP_EVENT_ASYNC);
    event->start_ns = range->clock_ns;
    event->end_ns = ns > range->clock_ns ? ns : range->clock_ns + 1;
    event->self_ns = 0;
    event->parent = UINT64_MAX;
    event->depth = UINT32_MAX;
    event->end_thread = end_thread;
    return let_go(model, range);
}

static int on_end(struct tp_model *model, struct tp_model_thread *thread, const uint64_t *record)
{
    uint64_t key = tp_record_key(record[0]);
    struct tp_range *range = thread->top;
    if (TP_LIKELY(range && range->key == key))
        return end_top(model, thread, nanoseconds(model, record[1]), 0);
    range = tp_ranges_find(&model->ranges, key, thread);
    if (!range) /* it began before the window, or its begin was lost */
        return 0;
    uint64_t ns = nanoseconds(model, record[1]);
    if (range->thread != thread || range->flags & TP_EVENT_ASYNC)
        return end_apart(model, range, ns, thread->cursor.info.serial, 0);
    int failed = end_inside(model, thread, range, ns);
    return failed ? failed : end_top(model, thread, ns, 0);
}

#define WRAPPER "autograd::engine::evaluate_function: "

/* The engine opens this range around each backward function, before it knows its numbers. */
static bool wraps_backward(const struct tp_model *model, const struct tp_range *range)
{
    if (!range || range->scope != TP_SCOPE_FUNCTION)
        return false;
    size_t bytes;
    const char *name = name_of(model, range, &bytes);
    return bytes >= sizeof WRAPPER - 1 && memcmp(name, WRAPPER, sizeof WRAPPER - 1) == 0;
}

/* NULL: memory is out, or the segment's taker failed. */
static struct tp_range_text *take_text(struct tp_model *model, size_t bytes, bool needed, int *ret_failed)
{
    struct tp_range_text *text = tp_ranges_take_text(&model->ranges, bytes, needed);
    if (!text && !(*ret_failed = deliver(model))) /* gives back the texts of the segment */
        text = tp_ranges_take_text(&model->ranges, bytes, needed);
    return text;
}

static struct tp_range_text *copy_text(struct tp_model *model, const struct tp_begin *begin, int *ret_failed)
{
    struct tp_range_text *text = take_text(model, begin->text_bytes, true, ret_failed);
    if (text)
        memcpy(text->chars, tp_begin_text(begin), begin->text_bytes);
    else if (!*ret_failed)
        *ret_failed = -ENOMEM;
    return text;
}

/* Do the words that the flags promise fit into the record? */
static bool is_whole(const struct tp_begin *begin)
{
    if (!(begin->flags & (TP_BEGIN_FORWARD_THREAD | TP_BEGIN_TEXT)))
        return true;
    unsigned need = TP_BEGIN_WORDS + (begin->flags & TP_BEGIN_FORWARD_THREAD ? 1 : 0);
    if (begin->flags & TP_BEGIN_TEXT)
        need += (begin->text_bytes + 7u) / 8;
    return need <= tp_record_words(begin->head);
}

/* The innermost open range of the thread that PyTorch numbers so. */
static uint64_t top_of(struct tp_model *model, uint64_t logical_id)
{
    const struct tp_model_thread *thread = model->forward;
    for (size_t i = 0; i < model->thread_count && !(thread && thread->cursor.info.logical_id == logical_id); i++)
        thread = &model->threads[i];
    if (!thread || thread->cursor.info.logical_id != logical_id)
        return UINT64_MAX;
    model->forward = thread;
    return thread->top ? thread->top->index : UINT64_MAX;
}

static int on_begin(struct tp_model *model, struct tp_model_thread *thread, const struct tp_begin *begin)
{
    if (!is_whole(begin))
        return TP_MERGE_DAMAGED;
    if (begin->time < model->options->window.begin)
        return 0;
    struct tp_range_text *text = NULL;
    int failed = 0;
    if (begin->flags & TP_BEGIN_TEXT && !(text = copy_text(model, begin, &failed)))
        return failed;
    struct tp_range *range = tp_ranges_open(&model->ranges, tp_record_key(begin->head));
    if (!range)
        return -ENOMEM;
    range->up = range->above = NULL;
    range->thread = thread;
    range->text = text;
    range->inputs = range->values[0] = range->values[1] = NULL;
    range->values_end[0] = range->values_end[1] = false;
    range->has_values = begin->flags & TP_BEGIN_VALUES;
    range->input_count = range->input_words = range->inputs_here = 0;
    range->text_bytes = text ? begin->text_bytes : 0;
    range->name_id = text ? 0 : begin->name;
    range->scope = begin->scope;
    range->flags = (uint8_t)((begin->flags & TP_BEGIN_TEXT_CUT ? TP_EVENT_NAME_CUT : 0) |
                             (begin->flags & TP_BEGIN_ASYNC ? TP_EVENT_ASYNC : 0));
    range->sequence = begin->sequence;
    range->forward_thread = tp_begin_forward_thread(begin);
    range->forward_parent = range->forward_thread ? top_of(model, range->forward_thread) : UINT64_MAX;
    range->id = begin->id;
    range->index = model->next_index++;
    range->clock_ns = nanoseconds(model, begin->time);
    range->start_ns = range->clock_ns;
    range->child_ns = 0;
    range->parent = UINT64_MAX;
    range->depth = 0;
    if (range->scope == TP_SCOPE_BACKWARD_FUNCTION && wraps_backward(model, thread->newest)) {
        thread->newest->sequence = range->sequence;
        thread->newest->forward_thread = range->forward_thread;
        thread->newest->flags |= TP_EVENT_WRAPS;
    }
    thread->newest = range;
    if (range->flags & TP_EVENT_ASYNC)
        return 0;
    range->start_ns = stamp(thread, range->clock_ns);
    range->up = thread->top;
    if (range->up) {
        range->up->above = range;
        range->parent = range->up->index;
        range->depth = range->up->depth + 1;
    }
    thread->top = range;
    return 0;
}

/* Behind the begin of their range, in its thread. */
static int on_inputs(struct tp_model *model, struct tp_model_thread *thread, const struct tp_inputs *inputs)
{
    struct tp_range *range = thread->newest;
    if (!range || range->key != tp_record_key(inputs->head)) /* it began before the window */
        return 0;
    if (inputs->offset && !range->inputs && range->flags & TP_EVENT_INPUTS_CUT) /* no memory for the first part */
        return 0;
    size_t words = tp_record_words(inputs->head) - TP_INPUTS_WORDS;
    if (!inputs->count || inputs->words > TP_INPUTS_ITEMS_MAX || inputs->count > TP_INPUTS_COUNT_MAX ||
        inputs->offset != range->inputs_here || words > (size_t)inputs->words - inputs->offset ||
        (inputs->offset && (inputs->words != range->input_words || inputs->count != range->input_count)) ||
        (range->inputs && !inputs->offset))
        return TP_MERGE_DAMAGED;
    if (inputs->flags & TP_INPUTS_CUT)
        range->flags |= TP_EVENT_INPUTS_CUT;
    if (!inputs->offset) {
        int failed = 0;
        range->inputs = take_text(model, inputs->words * sizeof(uint64_t), false, &failed);
        if (!range->inputs) {
            range->flags |= TP_EVENT_INPUTS_CUT;
            return failed;
        }
        range->input_count = inputs->count;
        range->input_words = inputs->words;
    }
    uint64_t *items = (uint64_t *)range->inputs->chars;
    memcpy(items + inputs->offset, inputs + 1, words * sizeof *items);
    range->inputs_here = (uint16_t)(inputs->offset + words);
    if (range->inputs_here < inputs->words || tp_inputs_sound(items, inputs->words, inputs->count))
        return 0;
    range->inputs_here = 0; /* nothing is shown of them */
    return TP_MERGE_DAMAGED;
}

/* Room for this many words of values in all, what is there kept. NULL: memory is out, or *ret_failed. */
static struct tp_event_values *make_room(struct tp_model *model, struct tp_range_text **place, size_t words,
                                         int *ret_failed)
{
    struct tp_range_text *old = *place;
    struct tp_event_values *values = old ? (struct tp_event_values *)old->chars : NULL;
    if (values && words <= values->room)
        return values;
    struct tp_range_text *text = take_text(model, sizeof *values + words * sizeof(uint64_t), false, ret_failed);
    if (!text)
        return NULL;
    struct tp_event_values *grown = (struct tp_event_values *)text->chars;
    *grown = (struct tp_event_values){0};
    if (values)
        memcpy(grown, values, sizeof *values + values->words * sizeof(uint64_t));
    grown->room = (uint32_t)((tp_ranges_text_room(text) - sizeof *grown) / sizeof(uint64_t));
    if (old) {
        old->next = NULL;
        tp_ranges_free_texts(&model->ranges, old);
    }
    *place = text;
    return grown;
}

/* What it was given stands behind the begin of its range, what it gave back before the end. */
static int on_values(struct tp_model *model, struct tp_model_thread *thread, const struct tp_values *record)
{
    uint64_t key = tp_record_key(record->head);
    unsigned side = record->flags & TP_VALUES_OUTPUTS ? 1 : 0;
    struct tp_range *range = side ? thread->top : thread->newest;
    if (!range || range->key != key)
        range = side ? tp_ranges_find(&model->ranges, key, thread) : NULL;
    if (!range)
        return 0;
    size_t words = tp_record_words(record->head) - TP_VALUES_WORDS;
    const struct tp_event_values *here =
        range->values[side] ? (const struct tp_event_values *)range->values[side]->chars : NULL;
    uint32_t words_here = here ? here->words : 0;
    if (record->offset > words_here && range->flags & TP_EVENT_INPUTS_CUT) /* no memory for an earlier part */
        return 0;
    if (record->offset != words_here || record->offset + words > TP_VALUES_ITEMS_MAX ||
        range->values_end[side])
        return TP_MERGE_DAMAGED;
    if (record->flags & TP_VALUES_CUT)
        range->flags |= TP_EVENT_INPUTS_CUT;
    int failed = 0;
    struct tp_event_values *values = make_room(model, &range->values[side], record->offset + words, &failed);
    if (!values) {
        range->flags |= TP_EVENT_INPUTS_CUT;
        return failed;
    }
    memcpy(values->items + values->words, record + 1, words * sizeof(uint64_t));
    values->words += (uint32_t)words;
    values->count = record->count;
    values->schema = record->schema;
    values->flags = record->flags;
    if (record->flags & TP_VALUES_MORE)
        return 0;
    bool cut = record->flags & TP_VALUES_CUT;
    range->values_end[side] = tp_values_sound(values->items, values->words, values->count, cut);
    return range->values_end[side] ? 0 : TP_MERGE_DAMAGED;
}

static void on_loss(struct tp_model *model, struct tp_model_thread *thread, const struct tp_loss *loss)
{
    thread->newest = NULL; /* what followed it is not known */
    if (loss->time >= model->options->window.begin && loss->time < model->options->window.end)
        model->counts->lost += loss->count;
}

static int take_record(void *context, struct tp_cursor *cursor)
{
    struct tp_model *model = context;
    struct tp_model_thread *thread = (struct tp_model_thread *)cursor;
    const uint64_t *record = cursor->at;
    switch (tp_record_kind(*record)) {
    case TP_RECORD_BEGIN:
        return on_begin(model, thread, (const struct tp_begin *)record);
    case TP_RECORD_END:
        return on_end(model, thread, record);
    case TP_RECORD_INPUTS:
        return on_inputs(model, thread, (const struct tp_inputs *)record);
    case TP_RECORD_VALUES:
        return on_values(model, thread, (const struct tp_values *)record);
    case TP_RECORD_LOSS:
        on_loss(model, thread, (const struct tp_loss *)record);
        return 0;
    default:
        return 0;
    }
}

/* Behind the window's end: begins that were lost inside the window are told before the next begin, maybe after ends. */
static int take_late_loss(void *context, struct tp_cursor *cursor)
{
    enum tp_record_kind kind = tp_record_kind(*cursor->at);
    if (kind == TP_RECORD_LOSS)
        on_loss(context, (struct tp_model_thread *)cursor, (const struct tp_loss *)cursor->at);
    return kind == TP_RECORD_BEGIN ? TP_MERGE_DROP : TP_MERGE_NEXT;
}

static int end_window(struct tp_model *model)
{
    uint64_t ns = nanoseconds(model, model->options->window.end);
    int failed = 0;
    for (size_t i = 0; !failed && i < model->thread_count; i++)
        failed = end_inside(model, &model->threads[i], NULL, ns + 1);
    size_t bucket = 0;
    struct tp_range *range;
    while (!failed && (range = tp_ranges_any(&model->ranges, &bucket)))
        failed = end_apart(model, range, ns, range->thread->cursor.info.serial, TP_EVENT_UNFINISHED);
    return failed ? failed : deliver(model);
}

static int add_threads(struct tp_model *model)
{
    const struct tp_source *source = &model->options->source;
    size_t capacity = source->threads(source->context, NULL, 0);
    uint64_t *serials = tp_arena_alloc(&model->arena, capacity * sizeof *serials);
    struct tp_arena *keep = model->options->keep ? model->options->keep : &model->arena;
    model->threads = tp_arena_alloc(keep, capacity * sizeof *model->threads);
    if (!serials || !model->threads)
        return -ENOMEM;
    size_t count = source->threads(source->context, serials, capacity);
    model->thread_count = count < capacity ? count : capacity;
    if (tp_merge_init(&model->merge, source, model->thread_count, &model->arena) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < model->thread_count; i++) {
        model->threads[i].cursor.info.serial = serials[i];
        tp_merge_add(&model->merge, &model->threads[i].cursor);
    }
    return 0;
}

int tp_model_run(const struct tp_model_options *options, struct tp_model_counts *ret_counts)
{
    struct tp_model model = {.options = options, .counts = ret_counts};
    *ret_counts = (struct tp_model_counts){0};
    tp_arena_init(&model.arena, options->memory_limit);
    int failed = tp_segment_init(&model.segment, &model.arena);
    if (!failed)
        failed = tp_ranges_init(&model.ranges, &model.arena);
    if (!failed)
        failed = add_threads(&model);
    if (!failed)
        failed = tp_merge_run(&model.merge, options->window.end, take_record, &model);
    if (!failed)
        failed = tp_merge_run(&model.merge, UINT64_MAX, take_late_loss, &model);
    if (!failed)
        failed = end_window(&model);
    if (failed == -ENOMEM) /* what is complete still goes out */
        deliver(&model);
    ret_counts->damaged = model.merge.damaged;
    tp_arena_free(&model.arena);
    return failed;
}
