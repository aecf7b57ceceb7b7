#include "../../output/fwdbwd.h"
#include "suites.h"

static struct tp_arena arena;
static struct tp_fwdbwd flow;
static const struct tp_thread_info one = {.serial = 1, .logical_id = 1, .os_id = 101};
static const struct tp_thread_info two = {.serial = 2, .logical_id = 2, .os_id = 102};

static struct {
    uint64_t id, forward_start, backward_index;
    uint32_t os_id;
} links[16];
static size_t link_count;

static void setup(void)
{
    tp_arena_init(&arena, 0);
    ck_assert_int_eq(tp_fwdbwd_init(&flow, &arena), 0);
    link_count = 0;
}

static void teardown(void)
{
    tp_arena_free(&arena);
}

static void take(void *context, uint64_t id, const struct tp_fwdbwd_forward *forward, const struct tp_event *backward)
{
    ck_assert_ptr_eq(context, &flow);
    ck_assert_uint_lt(link_count, TP_COUNT(links));
    links[link_count].id = id;
    links[link_count].forward_start = forward->start_ns;
    links[link_count].os_id = forward->os_id;
    links[link_count++].backward_index = backward->index;
}

static struct tp_event event(uint64_t index, const struct tp_thread_info *thread, uint64_t start, uint64_t end,
                             int64_t sequence, uint64_t forward_thread)
{
    return (struct tp_event){.index = index, .start_ns = start, .end_ns = end, .sequence = sequence,
                             .forward_thread = forward_thread, .thread = thread};
}

static void feed(const struct tp_event *events, size_t count)
{
    ck_assert_int_eq(tp_fwdbwd_segment(&flow, events, count, take, &flow), 0);
}

static void check_link(size_t at, uint64_t forward_start, uint64_t backward_index)
{
    ck_assert_uint_lt(at, link_count);
    ck_assert_uint_eq(links[at].id, at + 1);
    ck_assert_uint_eq(links[at].forward_start, forward_start);
    ck_assert_uint_eq(links[at].backward_index, backward_index);
}

/* As seen in a file of PyTorch 2.13: the inner node ends before its wrapper and takes the link; the forward that starts
 * last has made the node; numbers follow the ends of the backward operators. */
START_TEST(torch_s_rules)
{
    const struct tp_event events[] = {
        event(0, &one, 10, 40, 4, 0),    event(1, &one, 20, 30, 4, 0),    /* aten::t, aten::transpose */
        event(2, &one, 50, 60, 5, 0),    event(3, &one, 70, 80, -1, 0),   /* addmm, something without a number */
        event(4, &two, 100, 150, 5, 1),  event(5, &two, 110, 140, 5, 1),  /* wrapper, AddmmBackward0 */
        event(6, &two, 160, 200, 4, 1),  event(7, &two, 170, 190, 4, 1),
        event(8, &two, 210, 220, 99, 1), event(9, &two, 230, 240, 4, 2),  /* nobody's numbers */
    };
    feed(events, TP_COUNT(events));
    ck_assert_uint_eq(link_count, 2);
    check_link(0, 50, 5);
    check_link(1, 20, 7);
    ck_assert_uint_eq(links[0].os_id, 101);
}
END_TEST

START_TEST(links_cross_segments)
{
    const struct tp_event first[] = {event(0, &one, 10, 20, 0, 0), event(1, &one, 30, 40, 1, 0)};
    const struct tp_event second[] = {event(3, &two, 60, 70, 1, 1), event(4, &two, 80, 90, 0, 1)};
    const struct tp_event third[] = {event(2, &two, 50, 95, 1, 1)}; /* a wrapper that was open longer */
    feed(first, 2);
    feed(second, 2);
    feed(third, 1);
    ck_assert_uint_eq(link_count, 2);
    check_link(0, 30, 3);
    check_link(1, 10, 4);
}
END_TEST

START_TEST(order_is_that_of_ends)
{
    const struct tp_event events[] = {
        event(0, &one, 1, 2, 0, 0),    event(1, &one, 3, 4, 1, 0),    event(2, &one, 5, 6, 2, 0),
        event(3, &two, 10, 90, 2, 1),  event(4, &one, 11, 30, 1, 1),  event(5, &one, 12, 20, 0, 1),
    };
    feed(events, TP_COUNT(events));
    check_link(0, 1, 5);
    check_link(1, 3, 4);
    check_link(2, 5, 3);
}
END_TEST

START_TEST(threads_are_apart_and_async_is_left_out)
{
    struct tp_event events[] = {
        event(0, &one, 10, 20, 7, 0), event(1, &two, 11, 21, 7, 0), event(2, &one, 12, 22, 8, 0),
        event(3, &one, 30, 40, 7, 2), event(4, &one, 50, 60, 7, 1), event(5, &one, 70, 80, 8, 1),
    };
    events[2].flags = TP_EVENT_ASYNC;
    feed(events, TP_COUNT(events));
    ck_assert_uint_eq(link_count, 2);
    check_link(0, 11, 3);
    check_link(1, 10, 4);
}
END_TEST

static uint64_t next_id, wrong;

static void count_link(void *context, uint64_t id, const struct tp_fwdbwd_forward *forward,
                       const struct tp_event *backward)
{
    (void)context;
    next_id += 1;
    wrong += id != next_id || forward->sequence != backward->sequence;
}

/* A hundred thousand forwards at a time, ten times: all are found; memory does not grow. A million forwards whose
 * backward never comes are let go without harm to the newest. */
START_TEST(many_forwards_are_held_in_bounded_memory)
{
    enum { HELD = 100000, BATCH = 1000 };
    static struct tp_event events[BATCH];
    uint64_t now = 1;
    int64_t sequence = 0;
    size_t mapped = 0;
    for (int round = 0; round < 20; round++) {
        bool run = round >= 10;
        for (int i = 0; i < HELD; i += BATCH) {
            for (int k = 0; k < BATCH; k++, now += 2)
                events[k] = event(now, &one, now, now + 1, sequence++, 0);
            ck_assert_int_eq(tp_fwdbwd_segment(&flow, events, BATCH, count_link, NULL), 0);
        }
        for (int64_t i = sequence - 1; run && i > sequence - HELD; i -= BATCH) {
            for (int k = 0; k < BATCH; k++, now += 2)
                events[k] = event(now, &two, now, now + 1, i - k, 1);
            ck_assert_int_eq(tp_fwdbwd_segment(&flow, events, BATCH, count_link, NULL), 0);
        }
        if (round == 0)
            mapped = arena.mapped;
        ck_assert_uint_eq(arena.mapped, mapped);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(next_id, 10 * HELD);
}
END_TEST

START_TEST(little_memory_makes_a_small_table)
{
    struct tp_arena small;
    tp_arena_init(&small, 256 * 1024);
    ck_assert_int_eq(tp_fwdbwd_init(&flow, &small), 0);
    const struct tp_event events[] = {event(0, &one, 10, 20, 0, 0), event(1, &two, 60, 70, 0, 1)};
    feed(events, 2);
    check_link(0, 10, 1);
    tp_arena_free(&small);
    tp_arena_init(&small, 4096);
    ck_assert_int_lt(tp_fwdbwd_init(&flow, &small), 0);
    tp_arena_free(&small);
}
END_TEST

Suite *fwdbwd_suite(void)
{
    Suite *suite = suite_create("fwdbwd");
    TCase *tcase = tcase_create("fwdbwd");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, torch_s_rules);
    tcase_add_test(tcase, links_cross_segments);
    tcase_add_test(tcase, order_is_that_of_ends);
    tcase_add_test(tcase, threads_are_apart_and_async_is_left_out);
    tcase_add_test(tcase, many_forwards_are_held_in_bounded_memory);
    tcase_add_test(tcase, little_memory_makes_a_small_table);
    suite_add_tcase(suite, tcase);
    return suite;
}
