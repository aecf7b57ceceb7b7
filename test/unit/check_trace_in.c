#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../output/trace_in.h"
#include "bytes_from.h"
#include "suites.h"

static struct tp_arena arena;
static struct tp_trace_event events[16];
static size_t event_count;
static char members[1024];
static struct tp_trace_in_result result;

static void setup(void)
{
    tp_arena_init(&arena, 0);
    event_count = 0;
    members[0] = 0;
}

static void teardown(void)
{
    tp_arena_free(&arena);
}

static int take_event(void *context, const struct tp_trace_event *event)
{
    (void)context;
    if (event_count < TP_COUNT(events))
        events[event_count++] = *event;
    return 0;
}

static int take_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    (void)context;
    snprintf(members + strlen(members), sizeof members - strlen(members), "%s=%s;", path,
             token == TP_JSON_TRUE    ? "true"
             : token == TP_JSON_FALSE ? "false"
             : token == TP_JSON_NULL  ? "null"
                                      : json->text);
    return 0;
}

static int take_twice(void *context, const char *path, uint64_t offset)
{
    (void)context;
    snprintf(members + strlen(members), sizeof members - strlen(members), "twice %s at %d;", path, (int)offset);
    return 0;
}

static int read_text(const char *text)
{
    struct bytes_from bytes;
    struct tp_trace_in_options options = {.source = bytes_from(&bytes, text, strlen(text), 7), .event = take_event,
                                          .member = take_member, .twice = take_twice};
    return tp_trace_in_read(&options, &arena, &result);
}

START_TEST(fields_of_an_event)
{
    ck_assert_int_eq(
        read_text(
            "{\"traceEvents\":[\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":12,\"tid\":\"t\","
            "\"ts\":5245421550931.400,\"dur\":12.005,\"x\":[{}],\"args\":{\"External id\":1,\"Ev Idx\":7,"
            "\"Sequence number\":3,\"Fwd thread id\":1,\"finished\":false,\"deep\":{\"Ev Idx\":9}}},"
            "{\"ph\":\"f\",\"id\":4,\"bp\":\"e\",\"ts\":-1}]}"),
        0);
    ck_assert_uint_eq(result.events, 2);
    ck_assert(result.found_events);
    const struct tp_trace_event *event = &events[0];
    ck_assert_uint_eq(event->number, 0);
    ck_assert_uint_eq(event->offset, 17);
    ck_assert_uint_eq(event->flaws, 0);
    ck_assert_int_eq(event->phase, 'X');
    ck_assert_str_eq(event->cat.text, "cpu_op");
    ck_assert_str_eq(event->name.text, "aten::add");
    ck_assert_str_eq(event->pid.text, "12");
    ck_assert(!event->pid.is_string && event->tid.is_string && !event->id.there);
    ck_assert(event->has_ts && event->has_dur && !event->encloses);
    ck_assert_int_eq(event->ts_ns, INT64_C(5245421550931400));
    ck_assert_int_eq(event->dur_ns, 12005);
    ck_assert(event->has_index && event->has_sequence && event->has_forward_thread && event->unfinished);
    ck_assert_int_eq(event->index, 7);
    ck_assert_int_eq(event->sequence, 3);
    ck_assert_int_eq(event->forward_thread, 1);
    event = &events[1];
    ck_assert_int_eq(event->phase, 'f');
    ck_assert(event->encloses && event->has_ts && !event->has_dur && !event->has_index && !event->unfinished);
    ck_assert_int_eq(event->ts_ns, -1000);
    ck_assert_str_eq(event->name.text, "");
    ck_assert(!event->name.there);
}
END_TEST

START_TEST(both_forms)
{
    ck_assert_int_eq(read_text("[{\"ph\":\"M\"}]"), 0);
    ck_assert_uint_eq(result.events, 1);
    ck_assert(result.found_events);
    ck_assert_int_eq(read_text("{\"a\":1}"), 0);
    ck_assert(!result.found_events);
    ck_assert_int_eq(read_text("7"), 0);
    ck_assert(!result.found_events);
}
END_TEST

START_TEST(members_around)
{
    ck_assert_int_eq(read_text("{\"a\":\"x\",\"b\":[1,{\"c\":2}],\"tprof\":{\"kept\":5,\"window\":{\"begin\":1.5,"
                               "\"end\":null},\"p\":true},"
                               "\"traceEvents\":[{\"kept\":1}],\"e\":{},\"a\":false}"),
                     0);
    ck_assert_str_eq(members, "a=x;tprof/kept=5;tprof/window/begin=1.5;tprof/window/end=null;tprof/p=true;"
                              "twice a at 121;a=false;");
}
END_TEST

START_TEST(flaws_of_events)
{
    static const struct {
        const char *event;
        unsigned flaws;
    } rows[] = {
        {"{\"ph\":\"X\"}", 0},
        {"5", TP_TRACE_NOT_OBJECT},
        {"[{}]", TP_TRACE_NOT_OBJECT},
        {"{}", TP_TRACE_BAD_PHASE},
        {"{\"ph\":\"XX\"}", TP_TRACE_BAD_PHASE},
        {"{\"ph\":[1]}", TP_TRACE_BAD_PHASE},
        {"{\"ph\":\"X\",\"ts\":\"1\"}", TP_TRACE_BAD_TIME},
        {"{\"ph\":\"X\",\"dur\":{}}", TP_TRACE_BAD_TIME},
        {"{\"ph\":\"X\",\"ts\":1e300}", TP_TRACE_FAR_TIME},
        {"{\"ph\":\"X\",\"ts\":9223372036854775.808}", TP_TRACE_FAR_TIME},
        {"{\"ph\":\"X\",\"name\":1}", TP_TRACE_BAD_TEXT},
        {"{\"ph\":\"X\",\"pid\":null}", TP_TRACE_BAD_PLACE},
        {"{\"ph\":\"X\",\"ts\":1,\"ts\":2}", TP_TRACE_TWICE},
        {"{\"ph\":\"X\",\"name\":\"a\",\"name\":\"b\"}", TP_TRACE_TWICE},
        {"{\"ph\":\"X\",\"args\":[1],\"pid\":\"\"}", 0},
        {"{\"ph\":\"X\",\"args\":7}", 0},
    };
    for (size_t i = 0; i < TP_COUNT(rows); i++) {
        char text[256];
        event_count = 0;
        snprintf(text, sizeof text, "[%s,{\"ph\":\"M\"}]", rows[i].event);
        ck_assert_int_eq(read_text(text), 0);
        ck_assert_uint_eq(event_count, 2);
        ck_assert_msg(events[0].flaws == rows[i].flaws, "%s: %u", rows[i].event, events[0].flaws);
        ck_assert_uint_eq(events[1].flaws, 0);
    }
}
END_TEST

START_TEST(broken_off)
{
    static const char text[] =
        "{\"tprof\":{\"kept\":1},\"traceEvents\":[{\"ph\":\"X\",\"args\":{\"Ev Idx\":1}},{\"ph\":\"i\"}],\"z\":0}";
    char part[sizeof text];
    for (size_t length = 0; length < sizeof text - 1; length++) {
        memcpy(part, text, length);
        part[length] = 0;
        ck_assert_int_eq(read_text(part), -EINVAL);
        ck_assert_uint_eq(result.offset, length);
        ck_assert_ptr_nonnull(result.flaw);
    }
    ck_assert_int_eq(read_text(text), 0);
    ck_assert_ptr_null(result.flaw);
}
END_TEST

START_TEST(odd_paths)
{
    /* A name longer than the path's room, many levels of it; and of no length. */
    char text[4096] = "{", long_name[300];
    memset(long_name, 'k', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    for (unsigned i = 0; i < 5; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "\"%s\":{\"\":{", long_name);
    strcat(text, "\"x\":1");
    for (unsigned i = 0; i < 10; i++)
        strcat(text, "}");
    strcat(text, "}");
    ck_assert_int_eq(read_text(text), 0);
    ck_assert_int_eq(strncmp(members, long_name, 200), 0);
}
END_TEST

static int refuse(void *context, const struct tp_trace_event *event)
{
    (void)context;
    return event->number == 1 ? -ENOMEM : 0;
}

START_TEST(callback_stops)
{
    struct bytes_from bytes;
    static const char text[] = "[{},{},{}]";
    struct tp_trace_in_options options = {.source = bytes_from(&bytes, text, strlen(text), 99), .event = refuse};
    ck_assert_int_eq(tp_trace_in_read(&options, &arena, &result), -ENOMEM);
    ck_assert_uint_eq(result.events, 2);
    ck_assert_ptr_null(result.flaw);
}
END_TEST

START_TEST(nanoseconds)
{
    static const struct {
        const char *text;
        int64_t ns;
        bool fine;
    } rows[] = {
        {"0", 0, true},
        {"-0.0", 0, true},
        {"12.005", 12005, true},
        {"12.5", 12500, true},
        {"0.0005", 1, true},
        {"0.00049999999999999999999", 0, true},
        {"-1.0005", -1001, true},
        {"1e3", 1000000, true},
        {"1.5E-3", 2, true},
        {"1e-9", 0, true},
        {"9e-4", 1, true},
        {"5e-5", 0, true},
        {"0e999999999999", 0, true},
        {"0.000000000000000000000000000000001e36", 1000000, true},
        {"9223372036854775.807", INT64_MAX, true},
        {"-9223372036854775.807", -INT64_MAX, true},
        {"9223372036854775.808", 0, false},
        {"1e999999999999999999999", 0, false},
        {"1e-999999999999999999999", 0, true},
        {"5245421550931.400", INT64_C(5245421550931400), true},
    };
    for (size_t i = 0; i < TP_COUNT(rows); i++) {
        int64_t ns = 0;
        bool fine = tp_trace_nanoseconds(rows[i].text, strlen(rows[i].text), &ns);
        ck_assert_msg(fine == rows[i].fine && (!fine || ns == rows[i].ns), "%s: %" PRId64, rows[i].text, ns);
    }
}
END_TEST

/* Text to nanoseconds and back, as the writers print them. */
START_TEST(nanoseconds_round_trip)
{
    uint64_t state = 9;
    for (unsigned i = 0; i < 1000000; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t value = (int64_t)(state >> (1 + i % 63)), ns = -1;
        char text[40];
        int n = snprintf(text, sizeof text, "%" PRId64 ".%03d", value / 1000, (int)(value % 1000));
        if (!tp_trace_nanoseconds(text, (size_t)n, &ns) || ns != value)
            ck_abort_msg("%s was read as %" PRId64, text, ns);
    }
}
END_TEST

START_TEST(integers)
{
    int64_t value;
    ck_assert(tp_trace_integer("5", 1, &value) && value == 5);
    ck_assert(tp_trace_integer("-5.0", 4, &value) && value == -5);
    ck_assert(tp_trace_integer("5e2", 3, &value) && value == 500);
    ck_assert(tp_trace_integer("50e-1", 5, &value) && value == 5);
    ck_assert(!tp_trace_integer("5.5", 3, &value));
    ck_assert(!tp_trace_integer("5e-1", 4, &value));
    ck_assert(!tp_trace_integer("1e-5", 4, &value));
    ck_assert(!tp_trace_integer("9223372036854775808", 19, &value));
}
END_TEST

Suite *trace_in_suite(void)
{
    Suite *suite = suite_create("trace_in");
    TCase *tcase = tcase_create("trace_in");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, fields_of_an_event);
    tcase_add_test(tcase, both_forms);
    tcase_add_test(tcase, members_around);
    tcase_add_test(tcase, flaws_of_events);
    tcase_add_test(tcase, broken_off);
    tcase_add_test(tcase, odd_paths);
    tcase_add_test(tcase, callback_stops);
    tcase_add_test(tcase, nanoseconds);
    tcase_add_test(tcase, nanoseconds_round_trip);
    tcase_add_test(tcase, integers);
    suite_add_tcase(suite, tcase);
    return suite;
}
