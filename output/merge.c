#include "merge.h"

#include <errno.h>

static bool sound_begin(const uint64_t *at, unsigned words)
{
    if (words < TP_BEGIN_WORDS)
        return false;
    const struct tp_begin *begin = (const struct tp_begin *)at;
    unsigned need = TP_BEGIN_WORDS + (begin->flags & TP_BEGIN_FORWARD_THREAD ? 1 : 0);
    if (begin->flags & TP_BEGIN_TEXT)
        need += (begin->text_bytes + 7u) / 8;
    return need <= words;
}

static bool sound(const uint64_t *at, size_t room, uint64_t last_time)
{
    unsigned words = tp_record_words(*at);
    if (words < 2 || words > room)
        return false;
    switch (tp_record_kind(*at)) {
    case TP_RECORD_NONE:
        return false;
    case TP_RECORD_LOSS: /* is written late: ends may stand between the first begin that was lost and this */
        return words >= TP_LOSS_WORDS;
    case TP_RECORD_BEGIN:
        return at[1] >= last_time && sound_begin(at, words);
    default:
        return at[1] >= last_time;
    }
}

static bool enter_block(struct tp_cursor *cursor, const struct tp_block *block)
{
    if (block->magic != TP_BLOCK_MAGIC || block->bytes % 8 || block->thread.serial != cursor->info.serial)
        return false;
    cursor->info = block->thread;
    cursor->info.name[sizeof cursor->info.name - 1] = '\0';
    cursor->at = (const uint64_t *)(block + 1);
    cursor->end = cursor->at + block->bytes / 8;
    return true;
}

/* To the next sound record at or behind `at`. False: the stream is over. */
static bool settle(struct tp_merge *merge, struct tp_cursor *cursor)
{
    for (;;) {
        if (cursor->at < cursor->end) {
            if (TP_LIKELY(sound(cursor->at, (size_t)(cursor->end - cursor->at), cursor->time))) {
                if (cursor->time < cursor->at[1])
                    cursor->time = cursor->at[1];
                return true;
            }
            merge->damaged++;
        }
        cursor->at = cursor->end = NULL;
        const struct tp_block *block = merge->source->next(merge->source->context, cursor->info.serial);
        if (!block)
            return false;
        merge->damaged += !enter_block(cursor, block);
    }
}

static bool comes_before(const struct tp_merge_head *a, const struct tp_merge_head *b)
{
    return a->time != b->time ? a->time < b->time : a->cursor->info.serial < b->cursor->info.serial;
}

static size_t smaller_child(const struct tp_merge *merge, size_t at)
{
    size_t child = 2 * at + 1;
    return child + 1 < merge->count && comes_before(&merge->heads[child + 1], &merge->heads[child]) ? child + 1 : child;
}

static void sink_first(struct tp_merge *merge)
{
    struct tp_merge_head head = merge->heads[0];
    size_t at = 0;
    for (size_t child; (child = smaller_child(merge, at)) < merge->count; at = child) {
        if (!comes_before(&merge->heads[child], &head))
            break;
        merge->heads[at] = merge->heads[child];
    }
    merge->heads[at] = head;
}

int tp_merge_init(struct tp_merge *merge, const struct tp_source *source, size_t threads, struct tp_arena *arena)
{
    *merge = (struct tp_merge){.source = source};
    merge->heads = tp_arena_alloc(arena, threads * sizeof *merge->heads);
    return merge->heads ? 0 : -ENOMEM;
}

void tp_merge_add(struct tp_merge *merge, struct tp_cursor *cursor)
{
    if (!settle(merge, cursor))
        return;
    struct tp_merge_head head = {cursor->time, cursor};
    size_t at = merge->count++;
    for (; at > 0 && comes_before(&head, &merge->heads[(at - 1) / 2]); at = (at - 1) / 2)
        merge->heads[at] = merge->heads[(at - 1) / 2];
    merge->heads[at] = head;
}

struct tp_cursor *tp_merge_first(const struct tp_merge *merge, uint64_t before)
{
    return merge->count && merge->heads[0].time < before ? merge->heads[0].cursor : NULL;
}

void tp_merge_drop(struct tp_merge *merge)
{
    merge->heads[0] = merge->heads[--merge->count];
    sink_first(merge);
}

bool tp_merge_step(struct tp_merge *merge, uint64_t before)
{
    struct tp_merge_head *first = &merge->heads[0];
    struct tp_cursor *cursor = first->cursor;
    cursor->at += tp_record_words(*cursor->at);
    if (TP_UNLIKELY(!settle(merge, cursor))) {
        tp_merge_drop(merge);
        return false;
    }
    first->time = cursor->time;
    if (merge->count > 1) {
        const struct tp_merge_head *second = &merge->heads[smaller_child(merge, 0)];
        if (comes_before(second, first)) {
            sink_first(merge);
            return false;
        }
    }
    return first->time < before;
}
