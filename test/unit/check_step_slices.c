#include <stdlib.h>
#include <string.h>

#include "../../output/step_slices.h"
#include "suites.h"

static struct tp_arena arena;
static struct tp_step_slices slices;

static void setup(void)
{
    tp_arena_init(&arena, 0);
}

static void teardown(void)
{
    tp_arena_free(&arena);
}

struct range {
    uint64_t start, end;
};

/* Steps of thread 1 that follow each other at these edges, in a window without bounds. */
static void init_edges(const uint64_t *edges, size_t count)
{
    struct tp_step_span steps[64] = {{0}};
    for (size_t i = 0; i + 1 < count; i++)
        steps[i] = (struct tp_step_span){
            .number = i, .start_ns = edges[i], .end_ns = edges[i + 1], .thread = {.serial = 1}};
    ck_assert_int_eq(tp_step_slices_init(&slices, steps, count - 1, 0, UINT64_MAX - 1, &arena), 0);
}

static void see(uint64_t start, uint64_t end)
{
    struct tp_step_thread *thread = tp_step_slices_thread(&slices, 1);
    ck_assert_ptr_nonnull(thread);
    tp_step_slices_see(&slices, thread, start, end);
}

static struct range drawn(size_t step)
{
    struct range range;
    ck_assert(tp_step_slices_get(&slices, step, &range.start, &range.end));
    ck_assert_uint_lt(range.start, range.end);
    return range;
}

static void check_near(uint64_t value, uint64_t expected)
{
    ck_assert_msg(value + 20 >= expected && value <= expected + 20, "%lu is not near %lu", (unsigned long)value,
                  (unsigned long)expected);
}

static void check_inside(struct range inner, struct range outer)
{
    ck_assert_uint_gt(inner.start, outer.start);
    ck_assert_uint_lt(inner.end, outer.end);
}

static void check_behind(struct range later, struct range earlier)
{
    ck_assert_uint_gt(later.start, earlier.end);
}

static const uint64_t edges[] = {10000, 20000, 30000, 40000};

START_TEST(nothing_around_edges_stay)
{
    init_edges(edges, 4);
    see(11000, 12000);
    see(21000, 29000);
    for (size_t i = 0; i < 3; i++) {
        check_near(drawn(i).start, edges[i]);
        check_near(drawn(i).end, edges[i + 1]);
    }
    check_behind(drawn(1), drawn(0));
    check_behind(drawn(2), drawn(1));
}
END_TEST

START_TEST(one_edge_inside_moves_to_the_end)
{
    init_edges(edges, 4);
    see(19000, 22000); /* the longest */
    see(19500, 21000);
    see(19990, 20010);
    see(23000, 24000);
    struct range longest = {19000, 22000};
    ck_assert_uint_gt(drawn(0).end, longest.end);
    check_near(drawn(0).end, 22000);
    check_behind(drawn(1), longest);
    check_behind(drawn(1), drawn(0));
    check_near(drawn(1).end, 30000);
}
END_TEST

START_TEST(mark_at_the_end_of_a_range)
{
    init_edges(edges, 4);
    see(19000, 20000); /* Optimizer.step: its end is the mark */
    see(20001, 20900); /* the next range follows at once */
    ck_assert_uint_eq(drawn(0).end, 20000); /* no nanosecond is free: ends are equal */
    ck_assert_uint_lt(drawn(1).start, 20001);
    ck_assert_uint_ge(drawn(1).start, drawn(0).end);
}
END_TEST

START_TEST(range_that_starts_on_an_edge)
{
    init_edges(edges, 4);
    see(18000, 19000);
    see(20000, 21000);
    struct range first = {18000, 19000}, second = {20000, 21000};
    ck_assert_uint_gt(drawn(0).end, first.end);
    check_inside(second, drawn(1));
}
END_TEST

/* A user range around several steps, and one more inside it. */
START_TEST(range_with_several_edges)
{
    init_edges(edges, 4);
    struct range around = {15000, 35000}, inner = {16000, 32000}, before = {11000, 14000}, child = {17000, 18000};
    see(before.start, before.end);
    see(around.start, around.end);
    see(inner.start, inner.end);
    see(child.start, child.end);
    see(36000, 37000);
    check_inside(drawn(0), (struct range){inner.start, 20020}); /* from the inner one's start on */
    check_inside(child, drawn(0));
    check_near(drawn(0).start, 16000);
    check_inside(drawn(1), inner);
    check_behind(drawn(2), around);
    check_near(drawn(2).start, 35000);
    check_inside((struct range){36000, 37000}, drawn(2));
}
END_TEST

START_TEST(endless_range_holds_all_but_the_first_start)
{
    init_edges(edges, 4);
    struct range all = {10500, 40000}; /* ends with the window, on the last edge */
    see(all.start, all.end);
    for (size_t i = 0; i < 3; i++)
        check_inside(drawn(i), all);
}
END_TEST

START_TEST(clipped_to_the_window)
{
    struct tp_step_span steps[] = {{.start_ns = 100, .end_ns = 900, .thread = {.serial = 1}},
                                   {.start_ns = 900, .end_ns = 5000, .thread = {.serial = 1}},
                                   {.start_ns = 5000, .end_ns = 6000, .thread = {.serial = 1}}};
    ck_assert_int_eq(tp_step_slices_init(&slices, steps, 3, 500, 2000, &arena), 0);
    check_near(drawn(0).start, 500);
    check_near(drawn(1).end, 2000);
    uint64_t unused;
    ck_assert(!tp_step_slices_get(&slices, 2, &unused, &unused)); /* wholly outside */
}
END_TEST

START_TEST(other_threads_do_not_matter)
{
    struct tp_step_span steps[] = {{.start_ns = 10000, .end_ns = 20000, .thread = {.serial = 1}},
                                   {.start_ns = 20000, .end_ns = 30000, .thread = {.serial = 2}},
                                   {.start_ns = 30000, .end_ns = 40000, .thread = {.serial = 1}}};
    ck_assert_int_eq(tp_step_slices_init(&slices, steps, 3, 0, 100000, &arena), 0);
    ck_assert_ptr_null(tp_step_slices_thread(&slices, 3));
    see(19000, 25000); /* holds one edge of its thread */
    check_near(drawn(0).end, 25000);
    check_near(drawn(1).start, 20000);
    check_near(drawn(2).start, 30000);
}
END_TEST

static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

#define MAX_RANGES 400
static struct range ranges[MAX_RANGES + 64];
static size_t range_count;

static uint64_t stamp(uint64_t *now, uint64_t unit, uint64_t spread)
{
    return *now += unit * (1 + below(spread));
}

/* Properly nested ranges; all stamps are different multiples of unit. */
static void grow_ranges(uint64_t *now, unsigned depth, uint64_t unit, uint64_t spread)
{
    unsigned siblings = 1 + (unsigned)below(4);
    while (siblings-- && range_count < MAX_RANGES) {
        struct range *range = &ranges[range_count++];
        range->start = stamp(now, unit, spread);
        if (depth > 0 && below(3))
            grow_ranges(now, depth - 1, unit, spread);
        range->end = stamp(now, unit, spread);
    }
}

static bool overlap(struct range a, struct range b)
{
    return (a.start < b.start && b.start < a.end && a.end < b.end) ||
           (b.start < a.start && a.start < b.end && b.end < a.end);
}

static void see_all(bool in_order)
{
    struct range order[MAX_RANGES];
    memcpy(order, ranges, sizeof order);
    for (size_t i = 0; i < range_count; i++) {
        size_t pick = in_order ? i : i + below(range_count - i);
        struct range range = order[pick];
        order[pick] = order[i];
        see(range.start, range.end);
    }
}

static const struct {
    uint64_t unit, spread;
} spacings[] = {{1, 1}, {1, 2}, {1, 5}, {20, 50}};

/* Whatever the ranges, the edges and the order in which ranges are seen: nothing overlaps without nesting. Where stamps
 * leave room and ranges come in their order, every step is drawn and no stamp is used twice. */
START_TEST(random_ranges_nest)
{
    uint64_t unit = spacings[_i].unit, spread = spacings[_i].spread;
    for (unsigned round = 0; round < 3000; round++) {
        state = UINT64_C(0x9e3779b97f4a7c15) + round * 977 + (unsigned)_i;
        uint64_t now = 1000, marks[20], at = 980;
        range_count = 0;
        grow_ranges(&now, 6, unit, spread);
        size_t count = 2 + below(18);
        for (size_t i = 0; i < count; i++)
            marks[i] = stamp(&at, unit, (now - 980) / unit / count * 2 + 1);
        init_edges(marks, count);
        bool strict = below(2);
        see_all(strict);
        size_t all = range_count;
        for (size_t i = 0; i + 1 < count; i++) {
            struct range step;
            if (tp_step_slices_get(&slices, i, &step.start, &step.end)) {
                ck_assert_uint_lt(step.start, step.end);
                ranges[all++] = step;
            } else {
                ck_assert_msg(unit == 1, "round %u: step %zu is not drawn", round, i);
            }
        }
        for (size_t i = range_count; i < all; i++)
            for (size_t k = 0; k < i; k++) {
                struct range a = ranges[i], b = ranges[k];
                /* Equal starts: only with a range that holds the step, so that it is drawn below. */
                bool below_range = k < range_count && a.start == b.start && a.end <= b.end;
                bool apart = a.start != b.start && a.end != b.end && a.start != b.end && a.end != b.start;
                if (overlap(a, b) || (a.start == b.start && !below_range) || (strict && unit > 1 && !apart))
                    ck_abort_msg("round %u: step [%lu, %lu) and [%lu, %lu)", round, (unsigned long)a.start,
                                 (unsigned long)a.end, (unsigned long)b.start, (unsigned long)b.end);
            }
        tp_arena_free(&arena);
    }
}
END_TEST

Suite *step_slices_suite(void)
{
    Suite *suite = suite_create("step_slices");
    TCase *tcase = tcase_create("step_slices");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, nothing_around_edges_stay);
    tcase_add_test(tcase, one_edge_inside_moves_to_the_end);
    tcase_add_test(tcase, mark_at_the_end_of_a_range);
    tcase_add_test(tcase, range_that_starts_on_an_edge);
    tcase_add_test(tcase, range_with_several_edges);
    tcase_add_test(tcase, endless_range_holds_all_but_the_first_start);
    tcase_add_test(tcase, clipped_to_the_window);
    tcase_add_test(tcase, other_threads_do_not_matter);
    tcase_add_loop_test(tcase, random_ranges_nest, 0, (int)TP_COUNT(spacings));
    suite_add_tcase(suite, tcase);
    return suite;
}
