#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "suites.h"
#include "trace_feed.h"

#define BASE UINT64_C(1790857026000000000) /* 227 periods of 7889238 s */
#define BEGIN (BASE + UINT64_C(5142974123456789))

static const struct tp_thread_info trainer = {.serial = 1, .logical_id = 1, .os_id = 4000, .name = "python"};
static const struct tp_thread_info other = {.serial = 2, .logical_id = 2, .os_id = 4017, .name = "pt_autograd_0"};

static struct trace_feed feed;
static json_t *trace;

static void setup(void)
{
    scratch_setup();
    feed_init(&feed, BEGIN);
}

static void teardown(void)
{
    json_decref(trace);
    feed_free(&feed);
    scratch_teardown();
}

static void write_trace(void)
{
    ck_assert_int_eq(feed_write(&feed, &tp_chrome_writer, scratch_folder, "t.json", 0), 0);
    char *text = scratch_read("t.json", NULL);
    json_error_t error;
    trace = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    ck_assert_msg(trace != NULL, "%s at %d: %.300s", error.text, error.position, text);
    free(text);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The n-th event with these fields; name may be NULL. */
static json_t *find(const char *ph, const char *name, size_t n)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
        if (strcmp(text_of(event, "ph"), ph) == 0 && (!name || strcmp(text_of(event, "name"), name) == 0) && n-- == 0)
            return event;
    return NULL;
}

static size_t count_events(const char *ph, const char *name)
{
    size_t n = 0;
    while (find(ph, name, n))
        n++;
    return n;
}

/* The keys of an object, in their order. */
static void check_keys(const json_t *object, const char *expected)
{
    char keys[512] = "";
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
        strcat(strcat(keys, keys[0] ? "," : ""), key);
    ck_assert_str_eq(keys, expected);
}

static json_int_t arg(const json_t *event, const char *key)
{
    json_t *value = json_object_get(json_object_get(event, "args"), key);
    ck_assert_ptr_nonnull(value);
    return json_integer_value(value);
}

START_TEST(head_and_tail)
{
    feed.identity.boot_id[0] = 'b';
    strcpy(feed.identity.job_name, "job \"7\"");
    feed.settings.record_shapes = true;
    feed.counts.lost = 3;
    feed.report.lost_before = 4;
    feed.report.dropped_end_ns = BEGIN + 5000;
    feed.report.partial = true;
    feed.report.partial_why = "the program ended";
    feed.report.cycle = 2;
    feed.report.clock_begin = (struct tp_clock_pair){1, 2, UINT64_C(1796000000123456789)};
    write_trace();
    check_keys(trace, "schemaVersion,deviceProperties,trace_id,record_shapes,distributedInfo,host_name,"
                      "PT_PROFILER_JOB_NAME,displayTimeUnit,baseTimeNanoseconds,traceEvents,tprof,traceName");
    ck_assert_int_eq(json_integer_value(json_object_get(trace, "schemaVersion")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(trace, "deviceProperties")), 0);
    ck_assert_str_eq(text_of(trace, "trace_id"), feed.report.trace_id);
    ck_assert_str_eq(text_of(trace, "PT_PROFILER_JOB_NAME"), "job \"7\"");
    ck_assert_str_eq(text_of(trace, "displayTimeUnit"), "ms");
    ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(trace, "baseTimeNanoseconds")), BASE);
    ck_assert_str_eq(text_of(trace, "traceName"), "/tmp/a.pt.trace.json");
    const json_t *distributed = json_object_get(trace, "distributedInfo");
    ck_assert_int_eq(json_integer_value(json_object_get(distributed, "rank")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(distributed, "world_size")), 1);
    const json_t *tprof = json_object_get(trace, "tprof");
    check_keys(tprof, "format,version,cycle,kept,lost,shown,unfinished,names_cut,inputs_cut,damaged,partial,why,complete_from_ns,"
                      "window,clock,boot_id,pid,steps");
    ck_assert_int_eq(json_integer_value(json_object_get(tprof, "lost")), 7);
    ck_assert(json_is_true(json_object_get(tprof, "partial")));
    const json_t *begin = json_object_get(json_object_get(tprof, "clock"), "begin");
    ck_assert_int_eq(json_integer_value(json_object_get(begin, "realtime_ns")), 1796000000123456789);
    /* The loss is seen where it happened. */
    const json_t *loss = find("i", "tprof: 4 operators lost before this", 0);
    ck_assert_ptr_nonnull(loss);
    ck_assert_str_eq(text_of(loss, "cat"), "cpu_instant_event");
    ck_assert_double_eq_tol(json_number_value(json_object_get(loss, "ts")), 5142974123461.789, 0.001);
    ck_assert_ptr_nonnull(find("i", "tprof: 3 operators lost", 0));
}
END_TEST

START_TEST(nothing_lost_nothing_said)
{
    write_trace();
    ck_assert_ptr_null(json_object_get(trace, "PT_PROFILER_JOB_NAME"));
    ck_assert_ptr_null(json_object_get(json_object_get(trace, "tprof"), "why"));
    ck_assert_uint_eq(count_events("i", NULL), 2);
    const json_t *events = json_object_get(trace, "traceEvents");
    const json_t *last = json_array_get(events, json_array_size(events) - 1);
    check_keys(last, "ph,s,name,pid,tid,ts");
    ck_assert_str_eq(text_of(last, "name"), "Record Window End");
    const json_t *span = find("X", "PyTorch Profiler (0)", 0);
    check_keys(span, "ph,cat,name,pid,tid,ts,dur,args");
    ck_assert_str_eq(text_of(span, "pid"), "Spans");
    ck_assert_int_eq(arg(span, "Op count"), 0);
    ck_assert_int_eq(arg(find("M", "process_sort_index", 0), "sort_index"), 4000);
    ck_assert_int_eq(arg(find("M", "process_sort_index", 1), "sort_index"), 536870912);
}
END_TEST

START_TEST(user_metadata)
{
    feed.settings.metadata = "team=a\"b,path=c:\\d,empty=,host_name=mine,traceEvents=no,twice=1,twice=2,json=1";
    feed.settings.metadata_json = " {\"o\": {\"x\": [1, \"}\\\"\"]}, \"json\" : 2 ,\"s\":\"a,b\",\"traceName\":0, "
                                  "\"distributedInfo\": {\"rank\": 9}, \"n\": null } ";
    write_trace();
    ck_assert_str_eq(text_of(trace, "team"), "a\"b");
    ck_assert_str_eq(text_of(trace, "path"), "c:\\d");
    ck_assert(json_is_string(json_object_get(trace, "empty")));
    ck_assert_str_eq(text_of(trace, "host_name"), "mine");
    ck_assert_str_eq(text_of(trace, "twice"), "2");
    ck_assert_int_eq(json_integer_value(json_object_get(trace, "json")), 2);
    ck_assert_str_eq(text_of(trace, "s"), "a,b");
    const json_t *x = json_object_get(json_object_get(trace, "o"), "x");
    ck_assert_str_eq(json_string_value(json_array_get(x, 1)), "}\"");
    ck_assert(json_is_null(json_object_get(trace, "n")));
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(trace, "distributedInfo"), "rank")), 9);
    ck_assert(json_is_array(json_object_get(trace, "traceEvents")));
    ck_assert_str_eq(text_of(trace, "traceName"), "/tmp/a.pt.trace.json");
}
END_TEST

START_TEST(empty_metadata_object)
{
    feed.settings.metadata_json = "{}";
    write_trace();
    ck_assert_ptr_nonnull(json_object_get(trace, "host_name"));
}
END_TEST

START_TEST(fields_of_an_operator)
{
    struct tp_event *event = feed_range(&feed, &trainer, "aten::add", BEGIN + 12005, BEGIN + 24010);
    event->sequence = INT64_C(1) << 40;
    event->id = 77;
    event = feed_range(&feed, &other, "AddBackward0", BEGIN + 30000, BEGIN + 30001);
    event->scope = TP_SCOPE_BACKWARD_FUNCTION;
    event->sequence = 0;
    event->forward_thread = 1;
    event = feed_range(&feed, &trainer, "mine", BEGIN + 40000, BEGIN + 41000);
    event->scope = TP_SCOPE_USER_SCOPE;
    feed_begin(&feed, &trainer, "open", BEGIN + 50000);
    write_trace();
    const json_t *add = find("X", "aten::add", 0);
    check_keys(add, "ph,cat,name,pid,tid,ts,dur,args");
    check_keys(json_object_get(add, "args"), "External id,Sequence number,Fwd thread id,Record function id,Ev Idx");
    ck_assert_str_eq(text_of(add, "cat"), "cpu_op");
    ck_assert_int_eq(json_integer_value(json_object_get(add, "pid")), 4000);
    ck_assert_double_eq_tol(json_number_value(json_object_get(add, "dur")), 12.005, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(add, "ts")), 5142974123468.794, 1e-3);
    ck_assert_int_eq(arg(add, "External id"), 1);
    ck_assert_int_eq(arg(add, "Ev Idx"), 0);
    ck_assert_int_eq(arg(add, "Sequence number"), INT64_C(1) << 40);
    ck_assert_int_eq(arg(add, "Fwd thread id"), 0);
    ck_assert_int_eq(arg(add, "Record function id"), 77);
    const json_t *backward = find("X", "AddBackward0", 0);
    ck_assert_int_eq(json_integer_value(json_object_get(backward, "tid")), 4017);
    ck_assert_int_eq(arg(backward, "Sequence number"), 0);
    ck_assert_int_eq(arg(backward, "Fwd thread id"), 1);
    const json_t *mine = find("X", "mine", 0);
    ck_assert_str_eq(text_of(mine, "cat"), "user_annotation");
    check_keys(json_object_get(mine, "args"), "External id,Record function id,Ev Idx");
    /* C10: an open range is marked, and ends with the window. */
    const json_t *open_range = find("X", "open", 0);
    check_keys(json_object_get(open_range, "args"), "External id,Record function id,finished,Ev Idx");
    ck_assert(json_is_false(json_object_get(json_object_get(open_range, "args"), "finished")));
    ck_assert_double_eq_tol(json_number_value(json_object_get(open_range, "dur")), 1e7 - 50, 1e-3);
    /* Rows of threads. */
    ck_assert_uint_eq(count_events("M", "thread_name"), 2);
    const json_t *row = find("M", "thread_name", 1);
    check_keys(row, "ph,name,ts,pid,tid,args");
    ck_assert_str_eq(text_of(json_object_get(row, "args"), "name"), "thread 4017 (pt_autograd_0)");
}
END_TEST

/* C07 in the file itself: text of ts and dur is exact where a double would not be. */
static uint64_t double_word(double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static void check_arg(const json_t *event, const char *key, const char *expected)
{
    char *text = json_dumps(json_object_get(json_object_get(event, "args"), key), JSON_COMPACT);
    ck_assert_str_eq(text, expected);
    free(text);
}

/* How PyTorch 2.13 prints each: test/e2e/test_inputs.py compares them. */
static const struct {
    double value;
    const char *text;
} doubles[] = {
    {0, "0."},     {-0.0, "0."},          {2, "2."},           {-3, "-3."},         {1.5, "1.5"},
    {0.1, "0.10000000000000001"}, {1e-12, "9.9999999999999998e-13"}, {1e12, "1000000000000."}, {1e20, "1e+20"},
    {-9223372036854775808.0, "-9.2233720368547758e+18"}, {5e-324, "4.9406564584124654e-324"},
    {INFINITY, "inf"}, {-INFINITY, "-inf"},
};

START_TEST(inputs_of_an_operator)
{
    const uint64_t items[] = {
        tp_input_word(TP_INPUT_TENSOR, 6, 2, TP_INPUT_CONTIGUOUS, 0), 4 | UINT64_C(5) << 32,
        TP_INPUT_UNDEFINED,
        tp_input_word(TP_INPUT_TENSORS, 0, 0, 0, 2),
        tp_input_word(TP_INPUT_TENSOR, 4, 1, 0, 0), 3, 7,
        tp_input_word(TP_INPUT_TENSOR, 4, 0, TP_INPUT_CONTIGUOUS, 0),
        tp_input_word(TP_INPUT_TENSORS, 0, 0, TP_INPUT_LONG, 40),
        tp_input_word(TP_INPUT_SCALARS, 0, 0, 0, 3),
        tp_input_word(TP_INPUT_INT, 0, 0, 0, (uint32_t)-1), tp_input_word(TP_INPUT_BOOL, 0, 0, 0, 1),
        TP_INPUT_DOUBLE, double_word(2),
        tp_input_word(TP_INPUT_SCALARS, 0, 0, 0, 1), TP_INPUT_SYMBOL,
        tp_input_word(TP_INPUT_SCALARS, 0, 0, 0, 0),
        TP_INPUT_COMPLEX, double_word(1.5), double_word(-2),
        TP_INPUT_OTHER,
    };
    struct tp_event *event = feed_range(&feed, &trainer, "aten::add", BEGIN + 100, BEGIN + 200);
    event->inputs = items;
    event->input_words = TP_COUNT(items);
    event->input_count = 10; /* the last one was cut */
    event->id = 3;
    event = feed_range(&feed, &trainer, "aten::bare", BEGIN + 300, BEGIN + 400);
    write_trace();
    const json_t *add = find("X", "aten::add", 0);
    check_keys(json_object_get(add, "args"), "External id,Record function id,Concrete Inputs,Input type,Input Strides,"
                                             "Input Dims,Ev Idx");
    check_arg(add, "Input Dims", "[[4,5],[],[[3],[]],[],[],[],[],[],[],[]]");
    check_arg(add, "Input Strides", "[[5,1],[],[[7],[]],[],[],[],[],[],[],[]]");
    check_arg(add, "Input type", "[\"float\",\"\",\"TensorList\",\"TensorList\",\"ScalarList\",\"ScalarList\","
                                 "\"ScalarList\",\"Scalar\",\"\",\"\"]");
    check_arg(add, "Concrete Inputs", "[\"\",\"\",\"\",\"\",\"[-1, True, 2.]\",\"\",\"[]\",\"1.5-2.j\",\"\",\"\"]");
    check_keys(json_object_get(find("X", "aten::bare", 0), "args"), "External id,Record function id,Ev Idx");
}
END_TEST

START_TEST(numbers_as_pytorch_prints_them)
{
    const uint64_t items[] = {TP_INPUT_DOUBLE, double_word(doubles[_i].value)};
    struct tp_event *event = feed_range(&feed, &trainer, "aten::add", BEGIN + 100, BEGIN + 200);
    event->inputs = items;
    event->input_words = TP_COUNT(items);
    event->input_count = 1;
    write_trace();
    const json_t *args = json_object_get(find("X", "aten::add", 0), "args");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(args, "Concrete Inputs"), 0)), doubles[_i].text);
}
END_TEST

/* The longest there can be, of the longest numbers, many times: the sink's room is enough. */
START_TEST(the_most_inputs)
{
    static uint64_t wide[TP_INPUTS_ITEMS_MAX], narrow[TP_INPUTS_ITEMS_MAX];
    size_t wide_words = 0, narrow_words = 0;
    for (; wide_words + 1 + 200 <= TP_INPUTS_ITEMS_MAX; wide_words += 201) {
        wide[wide_words] = tp_input_word(TP_INPUT_TENSOR, 6, 200, TP_INPUT_WIDE | TP_INPUT_CONTIGUOUS, 0);
        memset(&wide[wide_words + 1], 0x81, 200 * sizeof *wide);
    }
    for (; narrow_words + 1 + 100 <= TP_INPUTS_ITEMS_MAX; narrow_words += 101) {
        narrow[narrow_words] = tp_input_word(TP_INPUT_TENSOR, 44, 200, TP_INPUT_CONTIGUOUS, 0);
        memset(&narrow[narrow_words + 1], 0xff, 100 * sizeof *narrow);
    }
    for (unsigned i = 0; i < 200; i++) {
        struct tp_event *event = feed_range(&feed, &trainer, "aten::add", BEGIN + 100 * i, BEGIN + 100 * i + 50);
        event->inputs = i % 2 ? wide : narrow;
        event->input_words = (uint16_t)(i % 2 ? wide_words : narrow_words);
        event->input_count = TP_INPUTS_COUNT_MAX;
    }
    write_trace();
    const json_t *args = json_object_get(find("X", "aten::add", 199), "args");
    ck_assert_uint_eq(json_array_size(json_object_get(args, "Input Dims")), TP_INPUTS_COUNT_MAX);
}
END_TEST

START_TEST(times_are_exact_text)
{
    feed_range(&feed, &trainer, "a", BASE + 1, BASE + 1 + UINT64_C(9007199254740993));
    feed_range(&feed, &trainer, "before the base", BASE - 5, BASE + 7);
    ck_assert_int_eq(feed_write(&feed, &tp_chrome_writer, scratch_folder, "t.json", 0), 0);
    char *text = scratch_read("t.json", NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"ts\":0.001,\"dur\":9007199254740.993,"));
    ck_assert_ptr_nonnull(strstr(text, "\"ts\":0.000,\"dur\":0.012,"));
    free(text);
}
END_TEST

/* C01, C03: every byte in a name, cached or not; each reads back. */
START_TEST(every_byte_in_a_name)
{
    static char names[256][8];
    for (int byte = 0; byte < 256; byte++) {
        memcpy(names[byte], "a.b", 4);
        names[byte][1] = (char)byte;
        for (int again = 0; again < 2; again++) {
            struct tp_event *event = feed_range(&feed, &trainer, "", BEGIN + 1 + (uint64_t)(byte * 10 + again * 5),
                                                BEGIN + 4 + (uint64_t)(byte * 10 + again * 5));
            event->name = names[byte];
            event->name_bytes = 3;
            event->name_id = _i ? (uint32_t)byte + 1 : 0;
        }
    }
    write_trace();
    for (int i = 0; i < 512; i++) {
        const json_t *name = json_object_get(find("X", NULL, (size_t)i), "name");
        int byte = i / 2;
        char expected[8] = "a.b";
        expected[1] = (char)byte;
        if (byte < 0x80) {
            ck_assert_uint_eq(json_string_length(name), 3);
            ck_assert_int_eq(memcmp(json_string_value(name), expected, 3), 0);
        } else {
            ck_assert_str_eq(json_string_value(name), "a\xef\xbf\xbd" "b");
        }
    }
}
END_TEST

START_TEST(long_names)
{
    static const size_t lengths[] = {0, 1, 8191, 8192, 8193, 20000, 1 << 20};
    char *longest = malloc((1 << 20) + 1);
    memset(longest, '\x01', 1 << 20); /* six bytes each in JSON */
    longest[1 << 20] = '\0';
    for (uint32_t i = 0; i < TP_COUNT(lengths); i++) {
        struct tp_event *event = feed_range(&feed, &trainer, "", BEGIN + 10 * (i + 1), BEGIN + 10 * (i + 1) + 5);
        event->name = longest;
        event->name_bytes = (uint32_t)lengths[i];
        event->name_id = i;
    }
    write_trace();
    for (size_t i = 0; i < TP_COUNT(lengths); i++)
        ck_assert_uint_eq(json_string_length(json_object_get(find("X", NULL, i), "name")), lengths[i]);
    free(longest);
}
END_TEST

/* More names than the cache takes: they are right all the same. */
START_TEST(names_beyond_the_cache)
{
    enum { COUNT = 3000 };
    static char names[COUNT][1200];
    for (uint32_t i = 0; i < COUNT; i++) {
        memset(names[i], 'n', sizeof names[i] - 1);
        snprintf(names[i] + 1190, 9, "%u", i);
        feed_range(&feed, &trainer, names[i], BEGIN + 10 * (i + 1), BEGIN + 10 * (i + 1) + 5)->name_id = i * 20 + 1;
    }
    write_trace();
    const json_t *events = json_object_get(trace, "traceEvents");
    size_t at, n = 0;
    json_t *event;
    json_array_foreach(events, at, event)
        if (n < COUNT && strcmp(text_of(event, "ph"), "X") == 0)
            ck_assert_str_eq(text_of(event, "name"), names[n++]);
    ck_assert_uint_eq(n, COUNT);
}
END_TEST

START_TEST(flows)
{
    feed.segment = (size_t)_i;
    for (uint64_t i = 0, at = BEGIN + 100; i < 3; i++, at += 10)
        feed_range(&feed, &trainer, "forward", at, at + 5)->sequence = (int64_t)i;
    for (uint64_t i = 0, at = BEGIN + 200; i < 3; i++, at += 10) {
        struct tp_event *event = feed_range(&feed, &other, "backward", at, at + 5);
        event->sequence = 2 - (int64_t)i;
        event->forward_thread = 1;
    }
    write_trace();
    ck_assert_uint_eq(count_events("s", "fwdbwd"), 3);
    ck_assert_uint_eq(count_events("f", "fwdbwd"), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *start = find("s", NULL, i), *finish = find("f", NULL, i);
        check_keys(start, "ph,id,pid,tid,ts,cat,name");
        check_keys(finish, "ph,id,pid,tid,ts,cat,name,bp");
        ck_assert_int_eq(json_integer_value(json_object_get(start, "id")), (json_int_t)i + 1);
        ck_assert_int_eq(json_integer_value(json_object_get(finish, "id")), (json_int_t)i + 1);
        ck_assert(json_equal(json_object_get(start, "ts"), json_object_get(find("X", "forward", 2 - i), "ts")));
        ck_assert(json_equal(json_object_get(finish, "ts"), json_object_get(find("X", "backward", i), "ts")));
        ck_assert_int_eq(json_integer_value(json_object_get(start, "tid")), 4000);
        ck_assert_int_eq(json_integer_value(json_object_get(finish, "tid")), 4017);
    }
}
END_TEST

static struct tp_step_span steps[] = {
    {.number = 7, .start_ns = BEGIN - 100, .end_ns = BEGIN + 1000, .thread = {.serial = 1, .os_id = 4000}},
    {.number = 8, .start_ns = BEGIN + 1000, .end_ns = BEGIN + 2000, .thread = {.serial = 1, .os_id = 4000}},
};

START_TEST(steps_are_annotations)
{
    feed.report.steps = steps;
    feed.report.step_count = 2;
    feed_range(&feed, &trainer, "first", BEGIN + 50, BEGIN + 90);
    feed_range(&feed, &trainer, "over the edge", BEGIN + 900, BEGIN + 1100);
    write_trace();
    const json_t *seven = find("X", "ProfilerStep#7", 0), *eight = find("X", "ProfilerStep#8", 0);
    ck_assert_str_eq(text_of(seven, "cat"), "user_annotation");
    ck_assert_int_eq(arg(seven, "Ev Idx"), 2);
    ck_assert_int_eq(arg(eight, "External id"), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(eight, "tid")), 4000);
    ck_assert_double_ge(json_number_value(json_object_get(eight, "ts")),
                        json_number_value(json_object_get(find("X", "over the edge", 0), "ts")) + 0.199);
    const json_t *listed = json_object_get(json_object_get(trace, "tprof"), "steps");
    ck_assert_uint_eq(json_array_size(listed), 2);
    check_keys(json_array_get(listed, 0), "number,start_ns,end_ns,kind,tid");
    ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(json_array_get(listed, 0), "end_ns")), BEGIN + 1000);
}
END_TEST

START_TEST(the_program_s_own_steps_stay_alone)
{
    feed.report.steps = steps;
    feed.report.step_count = 2;
    feed.report.steps_by_program = true;
    write_trace();
    ck_assert_ptr_null(find("X", "ProfilerStep#7", 0));
}
END_TEST

/* Ranges that overlap without nesting get rows of their own, on which nothing overlaps. */
START_TEST(async_ranges_have_their_rows)
{
    for (uint64_t i = 0; i < 50; i++) {
        struct tp_event *event =
            feed_range(&feed, &trainer, "async", BEGIN + 10 + i * 10, BEGIN + 15 + i * 10 + i * 7 % 40);
        event->flags |= TP_EVENT_ASYNC;
        event->scope = TP_SCOPE_USER_SCOPE;
    }
    feed_range(&feed, &trainer, "normal", BEGIN + 600, BEGIN + 700);
    write_trace();
    uint64_t end_of[64] = {0}, rows = 0;
    for (size_t i = 0; i < 50; i++) {
        uint64_t tid = (uint64_t)json_integer_value(json_object_get(find("X", "async", i), "tid"));
        ck_assert_uint_eq(tid % (1 << 22), 4000);
        uint64_t row = tid >> 22;
        ck_assert(row >= 1 && row < 64);
        ck_assert_uint_le(end_of[row], feed.events[i].start_ns);
        end_of[row] = feed.events[i].end_ns;
        rows = row > rows ? row : rows;
    }
    ck_assert_uint_le(rows, 5);
    ck_assert_uint_eq(count_events("M", "thread_name"), rows + 1);
    const json_t *row = json_object_get(find("M", "thread_name", 1), "args");
    ck_assert_str_eq(text_of(row, "name"), "thread 4000 (python) async");
    ck_assert_int_eq(json_integer_value(json_object_get(find("X", "normal", 0), "tid")), 4000);
}
END_TEST

static const struct {
    bool set;
    uint32_t groups, types;
    size_t ops, annotations;
} filters[] = {
    {false, 0, 0, 1, 3},
    {true, 1u << TP_ACTIVITY_CPU, 1u << TP_TYPE_CPU_OP | 1u << TP_TYPE_USER_ANNOTATION, 1, 3},
    {true, 1u << TP_ACTIVITY_CPU, 1u << TP_TYPE_CPU_OP, 1, 0},
    {true, 1u << TP_ACTIVITY_CPU, 1u << TP_TYPE_USER_ANNOTATION, 0, 3},
    {true, 1u << TP_ACTIVITY_CUDA, 1u << TP_TYPE_CPU_OP | 1u << TP_TYPE_USER_ANNOTATION, 0, 0},
};

START_TEST(activity_filters)
{
    feed.settings.activities.set = filters[_i].set;
    feed.settings.activities.groups = filters[_i].groups;
    feed.settings.activities.types[TP_ACTIVITY_CPU] = filters[_i].types;
    feed.report.steps = steps;
    feed.report.step_count = 2;
    feed_range(&feed, &trainer, "op", BEGIN + 50, BEGIN + 90);
    feed_range(&feed, &trainer, "user", BEGIN + 150, BEGIN + 190)->scope = TP_SCOPE_USER_SCOPE;
    write_trace();
    size_t ops = 0, annotations = 0;
    for (size_t i = 0; find("X", NULL, i); i++) {
        ops += strcmp(text_of(find("X", NULL, i), "cat"), "cpu_op") == 0;
        annotations += strcmp(text_of(find("X", NULL, i), "cat"), "user_annotation") == 0;
    }
    ck_assert_uint_eq(ops, filters[_i].ops);
    ck_assert_uint_eq(annotations, filters[_i].annotations);
    /* Of the two that are kept: the step slices are not among them. */
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(trace, "tprof"), "shown")),
                     (json_int_t)(ops + (annotations > 0)));
}
END_TEST

START_TEST(python_export)
{
    feed.settings.use_python_export = true;
    strcpy(feed.identity.process, "train");
    feed_range(&feed, &trainer, "op", BEGIN + 5000, BEGIN + 9000);
    write_trace();
    check_keys(trace, "schemaVersion,deviceProperties,distributedInfo,displayTimeUnit,baseTimeNanoseconds,traceEvents,"
                      "tprof,traceName");
    ck_assert_str_eq(text_of(json_object_get(find("M", "process_name", 0), "args"), "name"), "python");
    ck_assert_str_eq(text_of(json_object_get(find("M", "thread_name", 0), "args"), "name"), "thread 4000");
    const json_t *span = find("X", "PyTorch Profiler (0)", 0), *op = find("X", "op", 0);
    ck_assert(json_equal(json_object_get(span, "ts"), json_object_get(op, "ts")));
    ck_assert(json_equal(json_object_get(span, "dur"), json_object_get(op, "dur")));
    ck_assert_double_eq_tol(json_number_value(json_object_get(find("i", "Record Window End", 0), "ts")),
                            json_number_value(json_object_get(op, "ts")) + 5, 0.002);
}
END_TEST

START_TEST(ten_thousand_threads)
{
    enum { COUNT = 10000 };
    static struct tp_thread_info threads[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        threads[i] = (struct tp_thread_info){.serial = i + 1, .os_id = 5000 + i, .name = "worker"};
        feed_range(&feed, &threads[i], "op", BEGIN + 10 + i, BEGIN + 100000 + i);
    }
    write_trace();
    size_t at, names = 0;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), at, event)
        names += strcmp(text_of(event, "name"), "thread_name") == 0;
    ck_assert_uint_eq(names, COUNT);
}
END_TEST

/* The same events give the same bytes, plain and unzipped, whatever the segments. */
START_TEST(gzip_equals_plain)
{
    for (uint64_t i = 0; i < 5000; i++)
        feed_range(&feed, i % 3 ? &trainer : &other, "op", BEGIN + 10 * i + 1, BEGIN + 10 * i + 6);
    ck_assert_int_eq(feed_write(&feed, &tp_chrome_writer, scratch_folder, "a.json", 0), 0);
    feed.segment = 7;
    ck_assert_int_eq(feed_write(&feed, &tp_chrome_writer, scratch_folder, "b.json.gz", 1), 0);
    size_t plain_bytes, zipped_bytes;
    char *plain = scratch_read("a.json", &plain_bytes), *zipped = scratch_read("b.json.gz", &zipped_bytes);
    ck_assert_uint_eq(plain_bytes, zipped_bytes);
    ck_assert_int_eq(memcmp(plain, zipped, plain_bytes), 0);
    free(plain);
    free(zipped);
}
END_TEST

START_TEST(little_memory_is_no_crash)
{
    static struct tp_thread_info threads[2000];
    for (size_t limit = 4096; limit < 3 << 20; limit += limit / 3) {
        struct tp_arena sink_arena, arena;
        tp_arena_init(&sink_arena, 0);
        tp_arena_init(&arena, limit);
        struct tp_sink *sink =
            tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "f"}, &sink_arena, NULL);
        struct tp_writer_file file = {sink, &arena};
        void *state = tp_chrome_writer.begin(&feed.report, &file);
        int result = state ? 0 : -1;
        for (uint32_t i = 0; i < 2000 && result == 0; i++) {
            threads[i] = (struct tp_thread_info){.serial = i + 1, .os_id = i + 1};
            struct tp_event event = {.start_ns = BEGIN + i, .end_ns = BEGIN + i + 100000, .index = i, .name = "x",
                                     .name_bytes = 1, .name_id = i, .sequence = -1, .thread = &threads[i],
                                     .flags = i % 2 ? TP_EVENT_ASYNC : 0};
            result = tp_chrome_writer.segment(state, &event, 1);
        }
        ck_assert_uint_le(arena.mapped, limit);
        tp_sink_abandon(sink);
        tp_arena_free(&arena);
        tp_arena_free(&sink_arena);
    }
    ck_assert_uint_eq(scratch_files(), 0);
}
END_TEST

Suite *chrome_suite(void)
{
    Suite *suite = suite_create("chrome");
    TCase *tcase = tcase_create("chrome");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, head_and_tail);
    tcase_add_test(tcase, nothing_lost_nothing_said);
    tcase_add_test(tcase, user_metadata);
    tcase_add_test(tcase, empty_metadata_object);
    tcase_add_test(tcase, fields_of_an_operator);
    tcase_add_test(tcase, inputs_of_an_operator);
    tcase_add_loop_test(tcase, numbers_as_pytorch_prints_them, 0, (int)TP_COUNT(doubles));
    tcase_add_test(tcase, the_most_inputs);
    tcase_add_test(tcase, times_are_exact_text);
    tcase_add_loop_test(tcase, every_byte_in_a_name, 0, 2);
    tcase_add_test(tcase, long_names);
    tcase_add_test(tcase, names_beyond_the_cache);
    tcase_add_loop_test(tcase, flows, 1, 7);
    tcase_add_test(tcase, steps_are_annotations);
    tcase_add_test(tcase, the_program_s_own_steps_stay_alone);
    tcase_add_test(tcase, async_ranges_have_their_rows);
    tcase_add_loop_test(tcase, activity_filters, 0, (int)TP_COUNT(filters));
    tcase_add_test(tcase, python_export);
    tcase_add_test(tcase, ten_thousand_threads);
    tcase_add_test(tcase, gzip_equals_plain);
    tcase_add_test(tcase, little_memory_is_no_crash);
    suite_add_tcase(suite, tcase);
    return suite;
}
