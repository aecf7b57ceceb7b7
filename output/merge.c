#include "merge.h"

#include <errno.h>

/* No record is as large as that of no kind would have to be. A begin is looked at further by who takes it: here, one
 * more branch on the kind would be one more that cannot be foretold. */
static const uint16_t least_words[256] = {
    [TP_RECORD_NONE] = TP_RECORD_MAX_WORDS + 1,
    [TP_RECORD_BEGIN] = TP_BEGIN_WORDS,
    [TP_RECORD_LOSS] = TP_LOSS_WORDS,
    [TP_RECORD_INPUTS] = TP_INPUTS_WORDS,
    [TP_RECORD_VALUES] = TP_VALUES_WORDS,
};

static bool sound(const uint64_t *at, size_t room, uint64_t last_time)
{
    unsigned words = tp_record_words(*at);
    if (words < 2 || words > room || words < least_words[tp_record_kind(*at)])
        return false;
    /* A record of losses is written late: ends may stand between the first begin that was lost and this. */
    return at[1] >= last_time || tp_record_kind(*at) == TP_RECORD_LOSS;
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
    *merge = (struct tp_merge){.source = source, .threads = threads};
    if (threads > SIZE_MAX / 4 / sizeof *merge->winners)
        return -ENOMEM;
    merge->losers = tp_arena_alloc(arena, threads * sizeof *merge->losers);
    merge->winners = tp_arena_alloc(arena, 2 * threads * sizeof *merge->winners);
    return merge->losers && merge->winners ? 0 : -ENOMEM;
}

static struct tp_merge_player player_of(struct tp_cursor *cursor, bool over)
{
    return (struct tp_merge_player){over ? UINT64_MAX : cursor->time, over ? 0 : cursor->info.serial, cursor};
}

void tp_merge_add(struct tp_merge *merge, struct tp_cursor *cursor)
{
    bool over = !settle(merge, cursor);
    cursor->place = merge->threads + merge->added++;
    merge->winners[cursor->place] = player_of(cursor, over);
}

/* Without a branch: which of two threads comes first cannot be foretold. */
static inline bool comes_before(const struct tp_merge_player *a, const struct tp_merge_player *b)
{
    return (a->time < b->time) | ((a->time == b->time) & (a->serial < b->serial));
}

/* Puts the one that comes first into a, the other one into b. */
static inline void play(struct tp_merge_player *a, struct tp_merge_player *b)
{
    uint64_t mask = UINT64_C(0) - comes_before(b, a);
    uint64_t time = (a->time ^ b->time) & mask, serial = (a->serial ^ b->serial) & mask;
    uintptr_t cursor = ((uintptr_t)a->cursor ^ (uintptr_t)b->cursor) & (uintptr_t)mask;
    a->time ^= time;
    b->time ^= time;
    a->serial ^= serial;
    b->serial ^= serial;
    a->cursor = (struct tp_cursor *)((uintptr_t)a->cursor ^ cursor);
    b->cursor = (struct tp_cursor *)((uintptr_t)b->cursor ^ cursor);
}

static struct tp_merge_player first_of_all(struct tp_merge *merge)
{
    for (size_t node = merge->threads - 1; node > 0; node--) {
        merge->winners[node] = merge->winners[2 * node];
        merge->losers[node] = merge->winners[2 * node + 1];
        play(&merge->winners[node], &merge->losers[node]);
    }
    return merge->winners[1];
}

static struct tp_merge_player play_again(struct tp_merge *merge, struct tp_merge_player player)
{
    for (size_t node = player.cursor->place / 2; node > 0; node /= 2)
        play(&player, &merge->losers[node]);
    return player;
}

/* Up to when this one stays the first: the second one lost against it on its way up. */
static uint64_t first_until(const struct tp_merge *merge, const struct tp_merge_player *first, uint64_t before)
{
    for (size_t node = first->cursor->place / 2; node > 0; node /= 2) {
        const struct tp_merge_player *other = &merge->losers[node];
        uint64_t until = other->time + (other->serial > first->serial);
        before = until < before ? until : before;
    }
    return before;
}

static bool advance(struct tp_merge *merge, struct tp_cursor *cursor, int taken)
{
    if (TP_UNLIKELY(taken == TP_MERGE_DROP))
        return false;
    if (TP_UNLIKELY(taken == TP_MERGE_DAMAGED)) {
        merge->damaged++;
        cursor->at = cursor->end;
    } else
        cursor->at += tp_record_words(*cursor->at);
    return settle(merge, cursor);
}

int tp_merge_run(struct tp_merge *merge, uint64_t before, tp_merge_take *take, void *context)
{
    if (!merge->threads)
        return 0;
    struct tp_merge_player first = first_of_all(merge);
    while (first.time < before) {
        struct tp_cursor *cursor = first.cursor;
        uint64_t until = first_until(merge, &first, before);
        int result;
        bool over;
        do {
            result = take(context, cursor);
            if (result < 0)
                return result;
            over = !advance(merge, cursor, result);
        } while (TP_LIKELY(!over) && cursor->time < until);
        first = player_of(cursor, over);
        merge->winners[cursor->place] = first; /* for another run */
        first = play_again(merge, first);
    }
    return 0;
}
