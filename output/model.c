#include "model.h"

#include <errno.h>
#include <string.h>

#define SEGMENT 4096
#define WRAPPER "autograd::engine::evaluate_function: "

struct open_range {
    struct tp_event event;
    uint64_t key, child_ns;
    bool wants_backward; /* an evaluate_function wrapper whose inner function has not come yet */
    char *text;          /* of a name that came with its record */
};

struct cursor {
    uint64_t serial;
    struct tp_thread_info info;
    const struct tp_block *block;
    const uint64_t *at, *end; /* the next record; at == NULL: the stream is over */
    uint64_t last_ns, last_time;
    struct open_range *stack;
    size_t depth, capacity;
};

struct tp_model {
    const struct tp_model_options *options;
    struct tp_model_counts *counts;
    struct tp_arena arena;
    struct cursor *cursors;
    size_t cursor_count;
    struct tp_event *segment;
    char **texts; /* of the segment's events, kept until it is delivered */
    size_t filled;
    uint64_t next_index, window_end_ns;
    char *free_text; /* pieces of TEXT_BYTES, linked through their first word */
};

#define TEXT_BYTES tp_round_up(TP_BEGIN_TEXT_MAX + 1, 16)

static char *take_text(struct tp_model *model)
{
    char *piece = model->free_text;
    if (!piece)
        return tp_arena_alloc(&model->arena, TEXT_BYTES);
    memcpy(&model->free_text, piece, sizeof(char *));
    return piece;
}

static void give_text(struct tp_model *model, char *piece)
{
    memcpy(piece, &model->free_text, sizeof(char *));
    model->free_text = piece;
}

/* Shell sort by index: events come nearly sorted, in the order of their ends. */
static void sort_segment(struct tp_model *model)
{
    for (size_t gap = model->filled / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < model->filled; i++) {
            struct tp_event event = model->segment[i];
            char *text = model->texts[i];
            size_t j = i;
            for (; j >= gap && model->segment[j - gap].index > event.index; j -= gap) {
                model->segment[j] = model->segment[j - gap];
                model->texts[j] = model->texts[j - gap];
            }
            model->segment[j] = event;
            model->texts[j] = text;
        }
}

static int deliver(struct tp_model *model)
{
    if (model->filled == 0)
        return 0;
    sort_segment(model);
    model->counts->segments++;
    int result = model->options->segment(model->options->context, model->segment, model->filled);
    for (size_t i = 0; i < model->filled; i++)
        if (model->texts[i])
            give_text(model, model->texts[i]);
    model->filled = 0;
    return result < 0 ? result : 0;
}

static int emit(struct tp_model *model, struct open_range *range)
{
    struct tp_event *event = &range->event;
    uint64_t duration = event->end_ns - event->start_ns;
    event->self_ns = event->flags & TP_EVENT_ASYNC ? 0 : duration > range->child_ns ? duration - range->child_ns : 0;
    model->counts->kept++;
    model->counts->unfinished += (event->flags & TP_EVENT_UNFINISHED) != 0;
    model->counts->names_cut += (event->flags & TP_EVENT_NAME_CUT) != 0;
    model->segment[model->filled] = *event;
    model->texts[model->filled++] = range->text;
    return model->filled == SEGMENT ? deliver(model) : 0;
}

/* The range has left the nesting of its thread: what ran inside it belongs to the range around it. */
static int emit_apart(struct tp_model *model, struct open_range *range, struct open_range *around)
{
    if (around)
        around->child_ns += range->child_ns;
    range->event.flags |= TP_EVENT_ASYNC;
    range->event.depth = UINT32_MAX;
    range->event.parent = UINT64_MAX;
    return emit(model, range);
}

/* The newest range of the thread ends. */
static int pop(struct tp_model *model, struct cursor *cursor, uint64_t end_ns, bool unfinished)
{
    struct open_range *range = &cursor->stack[--cursor->depth];
    range->event.end_ns = end_ns;
    range->event.end_thread = cursor->serial;
    if (unfinished)
        range->event.flags |= TP_EVENT_UNFINISHED;
    struct open_range *around = cursor->depth > 0 ? range - 1 : NULL;
    if (range->event.flags & TP_EVENT_ASYNC)
        return emit_apart(model, range, around);
    if (around)
        around->child_ns += end_ns - range->event.start_ns;
    return emit(model, range);
}

static uint64_t rising(struct tp_model *model, struct cursor *cursor, uint64_t time)
{
    uint64_t ns = model->options->source.nanoseconds(model->options->source.context, time);
    if (ns <= cursor->last_ns)
        ns = cursor->last_ns + 1;
    cursor->last_ns = ns;
    return ns;
}

static int begin(struct tp_model *model, struct cursor *cursor, const struct tp_begin *record)
{
    if (cursor->depth == cursor->capacity) {
        size_t capacity = cursor->capacity ? cursor->capacity * 2 : 16;
        struct open_range *stack = tp_arena_alloc(&model->arena, capacity * sizeof *stack);
        if (!stack)
            return -ENOMEM;
        if (cursor->depth)
            memcpy(stack, cursor->stack, cursor->depth * sizeof *stack);
        cursor->stack = stack;
        cursor->capacity = capacity;
    }
    struct open_range *outer = cursor->depth ? &cursor->stack[cursor->depth - 1] : NULL;
    struct open_range *range = &cursor->stack[cursor->depth];
    *range = (struct open_range){.key = tp_record_key(record->head)};
    struct tp_event *event = &range->event;
    event->start_ns = rising(model, cursor, record->time);
    event->index = model->next_index++;
    event->parent = outer ? outer->event.index : UINT64_MAX;
    event->depth = (uint32_t)cursor->depth;
    event->scope = record->scope;
    event->sequence = record->sequence;
    event->forward_thread = tp_begin_forward_thread(record);
    event->id = record->id;
    event->thread = &cursor->info;
    event->name_id = record->name;
    if (record->flags & TP_BEGIN_ASYNC)
        event->flags |= TP_EVENT_ASYNC;
    if (record->flags & TP_BEGIN_TEXT) {
        range->text = take_text(model);
        if (!range->text)
            return -ENOMEM;
        memcpy(range->text, tp_begin_text(record), record->text_bytes);
        range->text[record->text_bytes] = '\0';
        event->name = range->text;
        event->name_bytes = record->text_bytes;
        if (record->flags & TP_BEGIN_TEXT_CUT)
            event->flags |= TP_EVENT_NAME_CUT;
    } else {
        size_t bytes;
        event->name = model->options->source.name(model->options->source.context, record->name, &bytes);
        event->name_bytes = (uint32_t)bytes;
    }
    /* torch shows the wrapper with the numbers of the backward function that it calls. */
    if (outer && outer->wants_backward) {
        outer->wants_backward = false;
        if (record->scope == TP_SCOPE_BACKWARD_FUNCTION) {
            outer->event.sequence = event->sequence;
            outer->event.forward_thread = event->forward_thread;
        }
    }
    size_t wrapper = strlen(WRAPPER);
    range->wants_backward = record->scope == TP_SCOPE_FUNCTION && event->name_bytes >= wrapper &&
                            memcmp(event->name, WRAPPER, wrapper) == 0;
    cursor->depth++;
    return 0;
}

/* A range that another thread opened: it leaves that thread's stack, and its nesting. */
static int end_elsewhere(struct tp_model *model, struct cursor *ender, uint64_t key, uint64_t ns)
{
    for (size_t c = 0; c < model->cursor_count; c++) {
        struct cursor *owner = &model->cursors[c];
        for (size_t i = owner->depth; owner != ender && i-- > 0;) {
            if (owner->stack[i].key != key)
                continue;
            struct open_range range = owner->stack[i];
            memmove(&owner->stack[i], &owner->stack[i + 1], (owner->depth - i - 1) * sizeof range);
            owner->depth--;
            range.event.end_ns = ns > range.event.start_ns ? ns : range.event.start_ns + 1;
            range.event.end_thread = ender->serial;
            return emit_apart(model, &range, i > 0 ? &owner->stack[i - 1] : NULL);
        }
    }
    return 0; /* it began before the window, or its begin was lost */
}

static int end(struct tp_model *model, struct cursor *cursor, uint64_t key, uint64_t time)
{
    size_t found = cursor->depth;
    while (found > 0 && cursor->stack[found - 1].key != key)
        found--;
    if (found == 0) {
        uint64_t ns = model->options->source.nanoseconds(model->options->source.context, time);
        return end_elsewhere(model, cursor, key, ns);
    }
    int result = 0;
    while (cursor->depth >= found && result == 0)
        result = pop(model, cursor, rising(model, cursor, time), cursor->depth > found);
    return result;
}

/* A block that can be walked: whole records that fill it. */
static bool is_sound(const struct tp_block *block)
{
    if (block->magic != TP_BLOCK_MAGIC || block->bytes % 8 || block->bytes == 0)
        return false;
    const uint64_t *words = (const uint64_t *)(block + 1);
    size_t count = block->bytes / 8;
    for (size_t at = 0; at < count; at += tp_record_words(words[at])) {
        unsigned size = tp_record_words(words[at]);
        enum tp_record_kind kind = tp_record_kind(words[at]);
        if (size < TP_END_WORDS || size > count - at || (kind == TP_RECORD_BEGIN && size < TP_BEGIN_WORDS) ||
            (kind == TP_RECORD_LOSS && size < TP_LOSS_WORDS))
            return false;
        if (kind == TP_RECORD_BEGIN) {
            const struct tp_begin *record = (const struct tp_begin *)&words[at];
            size_t text = record->flags & TP_BEGIN_TEXT ? record->text_bytes : 0;
            size_t need = TP_BEGIN_WORDS + (record->flags & TP_BEGIN_FORWARD_THREAD ? 1 : 0) + (text + 7) / 8;
            if (need > size || text > TP_BEGIN_TEXT_MAX)
                return false;
        }
    }
    return true;
}

static void advance(struct tp_model *model, struct cursor *cursor)
{
    while (!cursor->at || cursor->at >= cursor->end) {
        const struct tp_block *block = model->options->source.next(model->options->source.context, cursor->serial);
        cursor->at = NULL;
        if (!block)
            return;
        if (!is_sound(block)) {
            model->counts->damaged++;
            continue;
        }
        cursor->info = block->thread;
        cursor->at = (const uint64_t *)(block + 1);
        cursor->end = cursor->at + block->bytes / 8;
    }
}

static int take(struct tp_model *model, struct cursor *cursor)
{
    const uint64_t *at = cursor->at;
    uint64_t time = at[1];
    const struct tp_window *window = &model->options->window;
    bool inside = time >= window->begin && time < window->end;
    int result = 0;
    switch (tp_record_kind(*at)) {
    case TP_RECORD_BEGIN:
        if (inside)
            result = begin(model, cursor, (const struct tp_begin *)at);
        break;
    case TP_RECORD_END:
        if (inside)
            result = end(model, cursor, tp_record_key(*at), time);
        break;
    case TP_RECORD_LOSS:
        if (inside)
            model->counts->lost += ((const struct tp_loss *)at)->count;
        break;
    default:
        break; /* of a newer build: passed over by its size */
    }
    cursor->at += tp_record_words(*at);
    advance(model, cursor);
    return result;
}

/* Cursors in a binary heap by the time of their next record. */
static bool earlier(const struct cursor *a, const struct cursor *b)
{
    return a->at[1] != b->at[1] ? a->at[1] < b->at[1] : a->serial < b->serial;
}

static void sift_down(struct cursor **heap, size_t count, size_t i)
{
    for (;;) {
        size_t least = i, left = 2 * i + 1;
        for (size_t child = left; child < count && child < left + 2; child++)
            if (earlier(heap[child], heap[least]))
                least = child;
        if (least == i)
            return;
        struct cursor *swap = heap[i];
        heap[i] = heap[least];
        heap[least] = swap;
        i = least;
    }
}

static int merge(struct tp_model *model, struct cursor **heap, size_t count)
{
    int result = 0;
    for (size_t i = count / 2; i-- > 0;)
        sift_down(heap, count, i);
    while (count > 0 && result == 0) {
        result = take(model, heap[0]);
        if (!heap[0]->at)
            heap[0] = heap[--count];
        if (count > 1)
            sift_down(heap, count, 0);
    }
    return result;
}

static int run(struct tp_model *model)
{
    const struct tp_source *source = &model->options->source;
    model->window_end_ns = source->nanoseconds(source->context, model->options->window.end);
    size_t count = source->threads(source->context, NULL, 0);
    uint64_t *serials = tp_arena_alloc(&model->arena, count * sizeof *serials);
    struct tp_arena *keep = model->options->keep ? model->options->keep : &model->arena;
    model->cursors = tp_arena_alloc(keep, count * sizeof *model->cursors);
    struct cursor **heap = tp_arena_alloc(&model->arena, count * sizeof *heap);
    model->segment = tp_arena_alloc(&model->arena, SEGMENT * sizeof *model->segment);
    model->texts = tp_arena_alloc(&model->arena, SEGMENT * sizeof *model->texts);
    if (!serials || !model->cursors || !heap || !model->segment || !model->texts)
        return -ENOMEM;
    source->threads(source->context, serials, count);
    model->cursor_count = count;
    size_t active = 0;
    for (size_t i = 0; i < count; i++) {
        model->cursors[i].serial = serials[i];
        advance(model, &model->cursors[i]);
        if (model->cursors[i].at)
            heap[active++] = &model->cursors[i];
    }
    int result = merge(model, heap, active);
    for (size_t i = 0; i < count && result == 0; i++) {
        struct cursor *cursor = &model->cursors[i];
        /* The outermost ends with the window, those inside it a nanosecond before one another. */
        if (cursor->last_ns + cursor->depth < model->window_end_ns)
            cursor->last_ns = model->window_end_ns - cursor->depth;
        else if (cursor->depth > 0)
            cursor->last_ns++;
        for (; cursor->depth > 0 && result == 0; cursor->last_ns++)
            result = pop(model, cursor, cursor->depth == 1 && cursor->last_ns < model->window_end_ns
                                            ? model->window_end_ns
                                            : cursor->last_ns, true);
    }
    return result == 0 ? deliver(model) : result;
}

int tp_model_run(const struct tp_model_options *options, struct tp_model_counts *ret_counts)
{
    struct tp_model model = {.options = options, .counts = ret_counts};
    *ret_counts = (struct tp_model_counts){0};
    tp_arena_init(&model.arena, options->memory_limit);
    int result = run(&model);
    tp_arena_free(&model.arena);
    return result;
}
