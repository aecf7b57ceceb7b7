#include <errno.h>
#include <string.h>

#include "model_world.h"
#include "suites.h"

static void run_ok(struct world *world, size_t events)
{
    ck_assert_int_eq(world_run(world), 0);
    ck_assert_uint_eq(world->event_count, events);
    ck_assert_uint_eq(world->counts.kept, events);
    ck_assert_uint_eq(world->counts.segments, world->segment_count);
    ck_assert_uint_eq(world->unsorted, 0);
}

static void check_times(const struct world *world, uint64_t index, uint64_t start, uint64_t end, uint64_t self)
{
    const struct tp_event *event = world_event(world, index);
    ck_assert_uint_eq(event->start_ns, start);
    ck_assert_uint_eq(event->end_ns, end);
    ck_assert_uint_eq(event->self_ns, self);
}

static void check_place(const struct world *world, uint64_t index, uint32_t depth, uint64_t parent, uint8_t flags)
{
    const struct tp_event *event = world_event(world, index);
    ck_assert_uint_eq(event->depth, depth);
    ck_assert_uint_eq(event->parent, parent);
    ck_assert_uint_eq(event->flags, flags);
}

START_TEST(ranges_nest)
{
    struct world *world = world_new(1);
    begin_as(world, 1, 10, 0xa0, (struct tp_begin){.name = NAME_ONE, .scope = 7, .sequence = 5, .id = 77}, 3);
    begin_range(world, 1, 20, 0xb0)->name = NAME_TWO;
    begin_range(world, 1, 25, 0xc0);
    end_range(world, 1, 30, 0xc0);
    end_range(world, 1, 40, 0xb0);
    begin_range(world, 1, 50, 0xb0);
    end_range(world, 1, 55, 0xb0);
    end_range(world, 1, 100, 0xa0);
    run_ok(world, 4);
    check_times(world, 0, 10, 100, 90 - 20 - 5);
    check_times(world, 1, 20, 40, 20 - 5);
    check_times(world, 2, 25, 30, 5);
    check_times(world, 3, 50, 55, 5);
    check_place(world, 0, 0, UINT64_MAX, 0);
    check_place(world, 1, 1, 0, 0);
    check_place(world, 2, 2, 1, 0);
    check_place(world, 3, 1, 0, 0);
    const struct tp_event *first = world_event(world, 0);
    ck_assert_str_eq(first->name, "one");
    ck_assert_uint_eq(first->name_id, NAME_ONE);
    ck_assert_uint_eq(first->scope, 7);
    ck_assert_int_eq(first->sequence, 5);
    ck_assert_uint_eq(first->id, 77);
    ck_assert_uint_eq(first->forward_thread, 3);
    ck_assert_uint_eq(first->end_thread, 1);
    ck_assert_uint_eq(first->thread->os_id, 100);
    ck_assert_str_eq(world_event(world, 1)->name, "two");
    ck_assert_int_eq(world_event(world, 1)->sequence, -1);
    world_free(world);
}
END_TEST

START_TEST(threads_are_merged_by_time_then_serial)
{
    struct world *world = world_new(3);
    for (uint64_t i = 0; i < 300; i++) {
        unsigned thread = 3 - i % 3; /* at each time 3, 2, 1 were put: 1, 2, 3 must come out */
        begin_range(world, thread, 10 + i / 3 * 10, 0xa0)->id = 1 + i / 3 * 3 + thread;
        end_range(world, thread, 10 + i / 3 * 10 + 5, 0xa0);
        if (i % 7 == 0)
            cut(world, thread);
    }
    run_ok(world, 300);
    for (uint64_t i = 0; i < 300; i++) {
        ck_assert_uint_eq(world_event(world, i)->id, i + 2);
        ck_assert_uint_eq(world_event(world, i)->thread->serial, 1 + i % 3);
        check_times(world, i, 10 + i / 3 * 10, 15 + i / 3 * 10, 5);
    }
    world_free(world);
}
END_TEST

START_TEST(twenty_thousand_threads)
{
    const unsigned count = 20000;
    struct world *world = world_new(count);
    for (unsigned thread = 1; thread <= count; thread++)
        for (uint64_t i = 0; i < 3; i++) {
            begin_range(world, thread, 10 + i * count + (thread * 7919u) % count, 0xa0)->id = thread;
            end_range(world, thread, 9 + (i + 1) * count, 0xa0);
        }
    run_ok(world, 3 * count);
    size_t seen = 0;
    for (size_t at = 0; at < world->event_count; at++) {
        const struct tp_event *event = &world->events[at];
        ck_assert_uint_eq(event->index, event->start_ns - 10); /* one begin a nanosecond */
        ck_assert_uint_eq(event->id, event->thread->serial);
        seen += event->depth == 0;
    }
    ck_assert_uint_eq(seen, 3 * count);
    world_free(world);
}
END_TEST

START_TEST(end_of_a_deeper_range_ends_those_inside)
{
    struct world *world = world_new(1);
    begin_range(world, 1, 10, 0xa0);
    begin_range(world, 1, 20, 0xb0);
    begin_range(world, 1, 30, 0xc0);
    begin_range(world, 1, 40, 0xd0);
    end_range(world, 1, 60, 0xb0);
    begin_range(world, 1, 70, 0xe0);
    end_range(world, 1, 80, 0xe0);
    end_range(world, 1, 90, 0xa0);
    run_ok(world, 5);
    check_times(world, 3, 40, 58, 18);
    check_times(world, 2, 30, 59, 29 - 18);
    check_times(world, 1, 20, 60, 40 - 29);
    check_times(world, 0, 10, 90, 80 - 40 - 10);
    check_place(world, 3, 3, 2, TP_EVENT_UNFINISHED);
    check_place(world, 2, 2, 1, TP_EVENT_UNFINISHED);
    check_place(world, 1, 1, 0, 0);
    check_place(world, 4, 1, 0, 0);
    ck_assert_uint_eq(world->counts.unfinished, 2);
    world_free(world);
}
END_TEST

START_TEST(end_on_another_thread)
{
    struct world *world = world_new(2);
    begin_range(world, 1, 10, 0xa0);
    begin_range(world, 1, 20, 0xb0); /* ends on thread 2 */
    begin_range(world, 1, 30, 0xc0); /* inside it, over before */
    end_range(world, 1, 40, 0xc0);
    begin_range(world, 1, 50, 0xd0); /* inside it, goes on */
    begin_range(world, 2, 55, 0xe0);
    end_range(world, 2, 60, 0xb0);
    end_range(world, 2, 65, 0xe0);
    end_range(world, 1, 70, 0xd0);
    begin_range(world, 1, 75, 0xf0);
    end_range(world, 1, 76, 0xf0);
    end_range(world, 1, 100, 0xa0);
    run_ok(world, 6);
    check_times(world, 1, 20, 60, 0);
    check_place(world, 1, UINT32_MAX, UINT64_MAX, TP_EVENT_ASYNC);
    ck_assert_uint_eq(world_event(world, 1)->thread->serial, 1);
    ck_assert_uint_eq(world_event(world, 1)->end_thread, 2);
    check_place(world, 2, 2, 1, 0);
    check_place(world, 3, 2, 1, 0);
    check_times(world, 4, 55, 65, 10); /* thread 2's own is untouched */
    check_place(world, 5, 1, 0, 0);
    check_times(world, 0, 10, 100, 90 - 10 - 20 - 1);
    ck_assert_uint_eq(world->counts.unfinished, 0);
    world_free(world);
}
END_TEST

START_TEST(asynchronous_ranges_stand_apart)
{
    struct world *world = world_new(2);
    world->options.window.end = 1000;
    begin_range(world, 1, 10, 0xa0);
    begin_range(world, 1, 20, 0xb0)->flags = TP_BEGIN_ASYNC; /* ends on its own thread, across another */
    begin_range(world, 1, 30, 0xc0);
    end_range(world, 1, 40, 0xb0);
    end_range(world, 1, 50, 0xc0);
    begin_range(world, 1, 60, 0xd0)->flags = TP_BEGIN_ASYNC; /* on the other one, at the same tick */
    end_range(world, 1, 70, 0xa0);
    begin_range(world, 1, 80, 0xe0)->flags = TP_BEGIN_ASYNC; /* never */
    end_range(world, 2, 60, 0xd0);
    run_ok(world, 5);
    check_times(world, 0, 10, 70, 60 - 20);
    check_times(world, 1, 20, 40, 0);
    check_times(world, 2, 30, 50, 20);
    check_times(world, 3, 60, 61, 0);
    check_times(world, 4, 80, 1000, 0);
    for (uint64_t index = 1; index < 5; index += index == 1 ? 2 : 1)
        check_place(world, index, UINT32_MAX, UINT64_MAX, TP_EVENT_ASYNC | (index == 4 ? TP_EVENT_UNFINISHED : 0));
    check_place(world, 2, 1, 0, 0);
    ck_assert_uint_eq(world_event(world, 1)->end_thread, 1);
    ck_assert_uint_eq(world_event(world, 3)->end_thread, 2);
    ck_assert_uint_eq(world_event(world, 4)->end_thread, 1);
    world_free(world);
}
END_TEST

START_TEST(a_key_is_looked_for_on_its_own_thread_first)
{
    struct world *world = world_new(2);
    begin_range(world, 1, 10, 0xa0); /* of the same key: its end was lost */
    begin_range(world, 2, 20, 0xa0);
    begin_range(world, 2, 25, 0xb0);
    begin_range(world, 1, 30, 0xc0);
    end_range(world, 1, 40, 0xa0);
    end_range(world, 2, 50, 0xa0);
    run_ok(world, 4);
    check_times(world, 0, 10, 40, 30 - 9);
    check_times(world, 1, 20, 50, 30 - 24);
    check_place(world, 0, 0, UINT64_MAX, 0);
    check_place(world, 1, 0, UINT64_MAX, 0);
    world_free(world);
}
END_TEST

START_TEST(ends_without_a_begin_are_passed_over)
{
    struct world *world = world_new(2);
    end_range(world, 1, 5, 0xa0);
    begin_range(world, 1, 10, 0xb0);
    end_range(world, 1, 15, 0xa0);
    end_range(world, 2, 16, 0xa0);
    end_range(world, 1, 20, 0xb0);
    end_range(world, 1, 25, 0xb0);
    run_ok(world, 1);
    check_times(world, 0, 10, 20, 10);
    world_free(world);
}
END_TEST

START_TEST(only_begins_inside_the_window_count)
{
    struct world *world = world_new(1);
    world->options.window = (struct tp_window){100, 200};
    begin_range(world, 1, 90, 0xa0);
    begin_range(world, 1, 95, 0xb0);
    end_range(world, 1, 99, 0xb0);
    begin_range(world, 1, 100, 0xc0); /* the first moment is inside */
    end_range(world, 1, 110, 0xc0);
    end_range(world, 1, 120, 0xa0);
    begin_range(world, 1, 199, 0xd0);
    end_range(world, 1, 200, 0xd0); /* the last one is not */
    begin_range(world, 1, 200, 0xe0);
    end_range(world, 1, 210, 0xe0);
    run_ok(world, 2);
    check_times(world, 0, 100, 110, 10);
    check_times(world, 1, 199, 200, 1);
    check_place(world, 0, 0, UINT64_MAX, 0);
    check_place(world, 1, 0, UINT64_MAX, TP_EVENT_UNFINISHED);
    world_free(world);
}
END_TEST

START_TEST(what_is_open_ends_with_the_window)
{
    struct world *world = world_new(2);
    world->options.window = (struct tp_window){0, 100};
    begin_range(world, 1, 10, 0xa0);
    begin_range(world, 1, 20, 0xb0);
    begin_range(world, 1, 99, 0xc0); /* no room for a stamp before its end but the window's own */
    begin_range(world, 2, 98, 0xd0);
    end_range(world, 1, 150, 0xa0);
    run_ok(world, 4);
    check_times(world, 3, 99, 100, 1);
    check_times(world, 1, 20, 101, 80);
    check_times(world, 0, 10, 102, 92 - 81);
    check_times(world, 2, 98, 100, 2);
    for (uint64_t index = 0; index < 4; index++)
        ck_assert_uint_eq(world_event(world, index)->flags, TP_EVENT_UNFINISHED);
    ck_assert_uint_eq(world->counts.unfinished, 4);
    world_free(world);
}
END_TEST

START_TEST(losses_count_by_their_first_time)
{
    struct world *world = world_new(2);
    world->options.window = (struct tp_window){100, 200};
    lose(world, 1, 99, 1);
    begin_range(world, 1, 110, 0xa0);
    end_range(world, 1, 130, 0xa0);
    lose(world, 1, 120, 20); /* written late: not damage */
    begin_range(world, 1, 140, 0xa0);
    end_range(world, 1, 210, 0xa0);
    end_range(world, 1, 220, 0xb0);
    lose(world, 1, 199, 300); /* behind ends that are behind the window */
    begin_range(world, 1, 230, 0xa0);
    lose(world, 1, 231, 4000);
    lose(world, 2, 200, 50000);
    run_ok(world, 2);
    ck_assert_uint_eq(world->counts.lost, 320);
    ck_assert_uint_eq(world->counts.damaged, 0);
    world_free(world);
}
END_TEST

START_TEST(stamps_of_a_thread_rise)
{
    struct world *world = world_new(1);
    world->ns_divisor = 1000; /* all of this is one nanosecond */
    begin_range(world, 1, 5000, 0xa0);
    begin_range(world, 1, 5000, 0xb0);
    end_range(world, 1, 5001, 0xb0);
    begin_range(world, 1, 5002, 0xb0);
    end_range(world, 1, 5003, 0xb0);
    end_range(world, 1, 5900, 0xa0);
    begin_range(world, 1, 9000, 0xa0);
    end_range(world, 1, 11000, 0xa0);
    run_ok(world, 4);
    check_times(world, 0, 5, 10, 5 - 1 - 1);
    check_times(world, 1, 6, 7, 1);
    check_times(world, 2, 8, 9, 1);
    check_times(world, 3, 11, 12, 1);
    world_free(world);
}
END_TEST

static void begin_scope(struct world *world, uint64_t time, uint64_t key, uint32_t name, uint8_t scope,
                        int64_t sequence, uint64_t forward_thread)
{
    struct tp_begin like = {.name = name, .scope = scope, .sequence = sequence};
    begin_as(world, 1, time, key, like, forward_thread);
}

static void check_numbers(const struct world *world, uint64_t index, int64_t sequence, uint64_t forward_thread)
{
    ck_assert_int_eq(world_event(world, index)->sequence, sequence);
    ck_assert_uint_eq(world_event(world, index)->forward_thread, forward_thread);
}

START_TEST(a_wrapper_takes_the_numbers_of_what_it_wraps)
{
    struct world *world = world_new(1);
    const uint8_t function = TP_SCOPE_FUNCTION, backward = TP_SCOPE_BACKWARD_FUNCTION;
    begin_scope(world, 10, 0xa0, NAME_WRAPPER, function, -1, 0);
    begin_scope(world, 11, 0xb0, NAME_BACKWARD, backward, 8, 2);
    begin_scope(world, 12, 0xc0, NAME_BACKWARD, backward, 9, 3); /* not next to the wrapper */
    end_range(world, 1, 13, 0xc0);
    end_range(world, 1, 14, 0xb0);
    end_range(world, 1, 15, 0xa0);
    begin_scope(world, 20, 0xa0, NAME_WRAPPER, function, -1, 0);
    begin_scope(world, 21, 0xb0, NAME_ONE, function, 4, 0); /* comes between */
    begin_scope(world, 22, 0xc0, NAME_BACKWARD, backward, 10, 4);
    end_range(world, 1, 25, 0xa0);
    begin_scope(world, 30, 0xa0, NAME_WRAPPER, TP_SCOPE_USER_SCOPE, -1, 0);
    begin_scope(world, 31, 0xb0, NAME_BACKWARD, backward, 11, 5);
    end_range(world, 1, 35, 0xa0);
    begin_scope(world, 40, 0xa0, NAME_OTHER_WRAPPER, function, -1, 0);
    begin_scope(world, 41, 0xb0, NAME_BACKWARD, backward, 12, 6);
    end_range(world, 1, 45, 0xa0);
    begin_scope(world, 50, 0xa0, NAME_WRAPPER, function, -1, 0);
    lose(world, 1, 51, 1); /* the one inside it may be lost */
    begin_scope(world, 52, 0xb0, NAME_BACKWARD, backward, 13, 7);
    end_range(world, 1, 55, 0xa0);
    begin_text(world, 1, 60, 0xa0, "autograd::engine::evaluate_function: X", 0);
    begin_scope(world, 61, 0xb0, NAME_BACKWARD, backward, 14, 8);
    run_ok(world, 14);
    check_numbers(world, 0, 8, 2);
    check_numbers(world, 1, 8, 2);
    check_numbers(world, 2, 9, 3);
    check_numbers(world, 3, -1, 0);
    check_numbers(world, 6, -1, 0);
    check_numbers(world, 8, -1, 0);
    check_numbers(world, 10, -1, 0);
    check_numbers(world, 12, 14, 8);
    world_free(world);
}
END_TEST

START_TEST(names_may_come_with_the_record)
{
    struct world *world = world_new(1);
    char longest[TP_BEGIN_TEXT_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    begin_text(world, 1, 10, 0xa0, "my range", 0);
    cut(world, 1);
    begin_text(world, 1, 20, 0xb0, longest, TP_BEGIN_TEXT_CUT);
    begin_text(world, 1, 30, 0xc0, "", 0);
    cut(world, 1);
    begin_range(world, 1, 40, 0xd0)->name = 0;
    run_ok(world, 4);
    ck_assert_str_eq(world_event(world, 0)->name, "my range");
    ck_assert_uint_eq(world_event(world, 0)->name_id, 0);
    ck_assert_str_eq(world_event(world, 1)->name, longest);
    ck_assert_uint_eq(world_event(world, 1)->flags, TP_EVENT_NAME_CUT | TP_EVENT_UNFINISHED);
    ck_assert_str_eq(world_event(world, 2)->name, "");
    ck_assert_str_eq(world_event(world, 3)->name, "");
    ck_assert_uint_eq(world->counts.names_cut, 1);
    world_free(world);
}
END_TEST

/* 100,000 texts of 256 bytes are 25 times the limit; 1,000 of 2,000 bytes would not wait together for a segment. */
START_TEST(texts_are_held_no_longer_than_needed)
{
    struct world *world = world_new(1);
    world->options.memory_limit = 1 << 20;
    char text[1961];
    memset(text, 'y', sizeof text);
    for (uint64_t i = 0; i < 100000; i++) {
        text[i % 10 ? 180 : 1960] = '\0';
        begin_text(world, 1, 10 + 2 * i, 0xa0, text, 0);
        end_range(world, 1, 11 + 2 * i, 0xa0);
        text[i % 10 ? 180 : 1960] = 'y';
        if (i % 100 == 0)
            cut(world, 1);
    }
    run_ok(world, 100000);
    ck_assert_uint_eq(strlen(world_event(world, 1)->name), 180);
    ck_assert_uint_eq(strlen(world_event(world, 0)->name), 1960);
    world_free(world);
}
END_TEST

static void put_nested(struct world *world, uint64_t depth)
{
    for (uint64_t i = 0; i < depth; i++)
        begin_range(world, 1, 10 + i, 0x1000 + 64 * i);
    for (uint64_t i = 0; i < depth; i++)
        end_range(world, 1, 10 + depth + i, 0x1000 + 64 * (depth - 1 - i));
}

START_TEST(a_hundred_thousand_nested_ranges)
{
    const uint64_t depth = 100000;
    struct world *world = world_new(1);
    world->options.memory_limit = 32 << 20;
    put_nested(world, depth);
    run_ok(world, depth);
    ck_assert_uint_eq(world->counts.unfinished, 0);
    for (size_t at = 0; at < depth; at++) {
        const struct tp_event *event = &world->events[at];
        ck_assert_uint_eq(event->depth, event->index);
        ck_assert_uint_eq(event->parent, event->index ? event->index - 1 : UINT64_MAX);
        ck_assert_uint_eq(event->self_ns, event->index == depth - 1 ? 1 : 2);
    }
    world_free(world);
}
END_TEST

START_TEST(open_ranges_over_the_limit_end_the_run)
{
    struct world *world = world_new(1);
    world->options.memory_limit = 1 << 20;
    for (uint64_t i = 0; i < 1500; i++) {
        begin_range(world, 1, 2 * i, 0xa0);
        end_range(world, 1, 2 * i + 1, 0xa0);
    }
    for (uint64_t i = 0; i < 100000; i++)
        begin_range(world, 1, 3000 + i, 0x1000 + 64 * i);
    ck_assert_int_eq(world_run(world), -ENOMEM);
    ck_assert_uint_eq(world->counts.kept, 1500); /* what was complete is delivered */
    ck_assert_uint_eq(world->event_count, 1500);
    world_free(world);
}
END_TEST

START_TEST(segments_leave_while_a_range_stays_open)
{
    const uint64_t children = 100000;
    struct world *world = world_new(1);
    world->options.memory_limit = 4 << 20;
    begin_range(world, 1, 10, 0xa0);
    for (uint64_t i = 0; i < children; i++) {
        begin_range(world, 1, 20 + 2 * i, 0xb0);
        end_range(world, 1, 21 + 2 * i, 0xb0);
    }
    end_range(world, 1, 30 + 2 * children, 0xa0);
    run_ok(world, children + 1);
    ck_assert_uint_gt(world->segment_count, 10);
    check_times(world, 0, 10, 30 + 2 * children, 20 + 2 * children - children);
    ck_assert_uint_gt(world_event(world, 0) - world->events, children - 8192); /* in the last segment */
    world_free(world);
}
END_TEST

START_TEST(a_segment_is_bounded_and_can_stop_the_run)
{
    struct world *world = world_new(1);
    for (uint64_t i = 0; i < 20000; i++) {
        begin_range(world, 1, 20 + 2 * i, 0xb0);
        end_range(world, 1, 21 + 2 * i, 0xb0);
    }
    run_ok(world, 20000);
    ck_assert_uint_eq(world->largest_segment, 8192);
    ck_assert_uint_eq(world->segment_count, 3);
    world->streams[0].given = 0;
    world->segment_count = 0;
    world->stop_at_segment = 2;
    ck_assert_int_eq(world_run(world), -EIO);
    ck_assert_uint_eq(world->segment_count, 2);
    ck_assert_uint_eq(world->counts.kept, 8192);
    world_free(world);
}
END_TEST

/* Every way to be damaged, in the second of three blocks: the range before the damage stays, the one behind it goes,
 * the third block is read. */
static void damage(struct world *world, int way)
{
    struct tp_begin *begin;
    switch (way) {
    case 0: put_word(world, 1, 0); break;
    case 1: put_word(world, 1, tp_record_head(TP_RECORD_END, 0, 0)); break;
    case 2: put_word(world, 1, tp_record_head(TP_RECORD_END, 1, 0)); break;
    case 3: put_word(world, 1, tp_record_head(TP_RECORD_BEGIN, 200, 0)); break;
    case 4: put_word(world, 1, tp_record_head(TP_RECORD_NONE, 2, 0)); break;
    case 5: begin_range(world, 1, 25, 0xb0)->head = tp_record_head(TP_RECORD_BEGIN, 3, 0xb0); break;
    case 6: begin_range(world, 1, 25, 0xb0)->flags = TP_BEGIN_FORWARD_THREAD; break;
    case 7:
        begin = begin_range(world, 1, 25, 0xb0);
        begin->flags = TP_BEGIN_TEXT;
        begin->text_bytes = UINT16_MAX;
        break;
    case 8: begin_range(world, 1, 21, 0xb0); break; /* the time falls */
    case 9: end_range(world, 1, 21, 0xa0); break;
    case 10: put_word(world, 1, tp_record_head(TP_RECORD_LOSS, 2, 0)); break;
    }
}

#define WAYS 11

START_TEST(a_damaged_block_is_left_where_it_is_damaged)
{
    struct world *world = world_new(1);
    begin_range(world, 1, 10, 0xa0);
    end_range(world, 1, 20, 0xa0);
    cut(world, 1);
    begin_range(world, 1, 21, 0xa0);
    end_range(world, 1, 24, 0xa0);
    damage(world, _i);
    begin_range(world, 1, 26, 0xc0);
    end_range(world, 1, 28, 0xc0);
    cut(world, 1);
    begin_range(world, 1, 30, 0xd0);
    end_range(world, 1, 40, 0xd0);
    run_ok(world, 3);
    check_times(world, 1, 21, 24, 3);
    check_times(world, 2, 30, 40, 10);
    ck_assert_uint_eq(world->counts.damaged, 1);
    world_free(world);
}
END_TEST

START_TEST(blocks_with_a_wrong_head_are_passed_over)
{
    struct world *world = world_new(4);
    for (unsigned thread = 1; thread <= 4; thread++)
        for (uint64_t i = 0; i < 3; i++) {
            begin_range(world, thread, 10 * i, 0xa0);
            end_range(world, thread, 10 * i + 1, 0xa0);
            cut(world, thread);
        }
    world->streams[0].magic = 0;
    world->streams[1].extra_bytes = (uint32_t)-4;
    memset(world->streams[2].info.name, 'n', sizeof world->streams[2].info.name); /* no NUL */
    run_ok(world, 6);
    ck_assert_uint_eq(world->counts.damaged, 8); /* three and the empty one behind the last cut, of two threads */
    ck_assert_uint_eq(world_event(world, 0)->thread->serial, 3);
    ck_assert_str_eq(world_event(world, 0)->thread->name, "nnnnnnnnnnnnnnn");
    world_free(world);
}
END_TEST

START_TEST(unknown_kinds_are_passed_over)
{
    struct world *world = world_new(1);
    begin_range(world, 1, 10, 0xa0);
    put_word(world, 1, tp_record_head((enum tp_record_kind)200, 3, 0xa0));
    put_word(world, 1, 15);
    put_word(world, 1, 0);
    end_range(world, 1, 20, 0xa0);
    run_ok(world, 1);
    check_times(world, 0, 10, 20, 10);
    ck_assert_uint_eq(world->counts.damaged, 0);
    world_free(world);
}
END_TEST

START_TEST(nothing_in_nothing_out)
{
    struct world *world = world_new(1);
    world->stream_count = 0;
    run_ok(world, 0);
    world->stream_count = 1;
    run_ok(world, 0);
    ck_assert_uint_eq(world->segment_count, 0);
    world_free(world);
}
END_TEST

Suite *model_suite(void)
{
    Suite *suite = suite_create("model");
    TCase *tcase = tcase_create("model");
    tcase_add_test(tcase, ranges_nest);
    tcase_add_test(tcase, threads_are_merged_by_time_then_serial);
    tcase_add_test(tcase, twenty_thousand_threads);
    tcase_add_test(tcase, end_of_a_deeper_range_ends_those_inside);
    tcase_add_test(tcase, end_on_another_thread);
    tcase_add_test(tcase, asynchronous_ranges_stand_apart);
    tcase_add_test(tcase, a_key_is_looked_for_on_its_own_thread_first);
    tcase_add_test(tcase, ends_without_a_begin_are_passed_over);
    tcase_add_test(tcase, only_begins_inside_the_window_count);
    tcase_add_test(tcase, what_is_open_ends_with_the_window);
    tcase_add_test(tcase, losses_count_by_their_first_time);
    tcase_add_test(tcase, stamps_of_a_thread_rise);
    tcase_add_test(tcase, a_wrapper_takes_the_numbers_of_what_it_wraps);
    tcase_add_test(tcase, names_may_come_with_the_record);
    tcase_add_test(tcase, texts_are_held_no_longer_than_needed);
    tcase_add_test(tcase, a_hundred_thousand_nested_ranges);
    tcase_add_test(tcase, open_ranges_over_the_limit_end_the_run);
    tcase_add_test(tcase, segments_leave_while_a_range_stays_open);
    tcase_add_test(tcase, a_segment_is_bounded_and_can_stop_the_run);
    tcase_add_loop_test(tcase, a_damaged_block_is_left_where_it_is_damaged, 0, WAYS);
    tcase_add_test(tcase, blocks_with_a_wrong_head_are_passed_over);
    tcase_add_test(tcase, unknown_kinds_are_passed_over);
    tcase_add_test(tcase, nothing_in_nothing_out);
    suite_add_tcase(suite, tcase);
    return suite;
}
