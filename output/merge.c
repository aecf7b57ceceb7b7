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

static TP_COLD bool next_block(struct tp_merge *merge, struct tp_cursor *cursor)
{
    for (;;) {
        const struct tp_block *block = merge->source->next(merge->source->context, cursor->info.serial);
        if (!block || enter_block(cursor, block))
            return block != NULL;
        merge->damaged++;
    }
}

/* To the next sound record at or behind `at`. False: the stream is over. */
static bool settle(struct tp_merge *merge, struct tp_cursor *cursor)
{
    for (;;) {
        if (TP_LIKELY(cursor->at < cursor->end)) {
            if (TP_LIKELY(sound(cursor->at, (size_t)(cursor->end - cursor->at), cursor->time))) {
                if (cursor->time < cursor->at[1])
                    cursor->time = cursor->at[1];
                return true;
            }
            merge->damaged++;
        }
        if (!next_block(merge, cursor))
            return false;
    }
}

int tp_merge_init(struct tp_merge *merge, const struct tp_source *source, size_t threads, struct tp_arena *arena)
{
    *merge = (struct tp_merge){.source = source};
    if (threads > UINT32_MAX / 2)
        return -ENOMEM;
    merge->leaves = tp_arena_alloc(arena, threads * sizeof *merge->leaves);
    merge->losers = tp_arena_alloc(arena, threads * sizeof *merge->losers);
    merge->winners = tp_arena_alloc(arena, 2 * threads * sizeof *merge->winners);
    return merge->leaves && merge->losers && merge->winners ? 0 : -ENOMEM;
}

static void set_over(struct tp_merge_leaf *leaf)
{
    leaf->time = UINT64_MAX;
    leaf->serial = 0;
}

void tp_merge_add(struct tp_merge *merge, struct tp_cursor *cursor)
{
    struct tp_merge_leaf *leaf = &merge->leaves[merge->count++];
    *leaf = (struct tp_merge_leaf){.serial = cursor->info.serial, .cursor = cursor};
    if (settle(merge, cursor))
        leaf->time = cursor->time;
    else
        set_over(leaf);
}

/* Without a branch: which of two threads comes first cannot be foretold. */
static inline bool comes_before(const struct tp_merge_leaf *a, const struct tp_merge_leaf *b)
{
    return (a->time < b->time) | ((a->time == b->time) & (a->serial < b->serial));
}

static uint32_t first_of_all(struct tp_merge *merge)
{
    uint32_t count = (uint32_t)merge->count;
    for (uint32_t i = 0; i < count; i++)
        merge->winners[count + i] = i;
    for (uint32_t node = count - 1; node > 0; node--) {
        uint32_t left = merge->winners[2 * node], right = merge->winners[2 * node + 1];
        bool left_wins = comes_before(&merge->leaves[left], &merge->leaves[right]);
        merge->winners[node] = left_wins ? left : right;
        merge->losers[node] = left_wins ? right : left;
    }
    return merge->winners[1];
}

static uint32_t play_again(struct tp_merge *merge, uint32_t winner)
{
    for (size_t node = (winner + merge->count) / 2; node > 0; node /= 2) {
        uint32_t other = merge->losers[node];
        uint32_t swap = (winner ^ other) & (0u - comes_before(&merge->leaves[other], &merge->leaves[winner]));
        winner ^= swap;
        merge->losers[node] = other ^ swap;
    }
    return winner;
}

/* Up to when the winner stays the first: the second one lost against it on its way up. */
static uint64_t first_until(const struct tp_merge *merge, uint32_t winner, uint64_t before)
{
    for (size_t node = (winner + merge->count) / 2; node > 0; node /= 2) {
        const struct tp_merge_leaf *other = &merge->leaves[merge->losers[node]];
        uint64_t until = other->time + (other->serial > merge->leaves[winner].serial);
        before = until < before ? until : before;
    }
    return before;
}

static bool advance(struct tp_merge *merge, struct tp_cursor *cursor)
{
    cursor->at += tp_record_words(*cursor->at);
    return settle(merge, cursor);
}

int tp_merge_run(struct tp_merge *merge, uint64_t before, tp_merge_take *take, void *context)
{
    if (!merge->count)
        return 0;
    for (uint32_t first = first_of_all(merge); merge->leaves[first].time < before; first = play_again(merge, first)) {
        struct tp_merge_leaf *leaf = &merge->leaves[first];
        struct tp_cursor *cursor = leaf->cursor;
        uint64_t until = first_until(merge, first, before);
        do {
            int result = take(context, cursor);
            if (result < 0)
                return result;
            if (TP_UNLIKELY(result > 0 || !advance(merge, cursor))) {
                set_over(leaf);
                break;
            }
            leaf->time = cursor->time;
        } while (cursor->time < until);
    }
    return 0;
}
