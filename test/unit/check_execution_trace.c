#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/values.h"
#include "scratch.h"
#include "suites.h"
#include "trace_feed.h"

#define BEGIN UINT64_C(1796216793123456789) /* 2026-12-02 13:06:33 */

static const struct tp_thread_info trainer = {.serial = 1, .logical_id = 1, .os_id = 4000, .name = "python"};
static const struct tp_thread_info other = {.serial = 2, .logical_id = 3, .os_id = 4017, .name = "pt_autograd_0"};

static struct trace_feed feed;
static json_t *trace;
static char *text;

static void setup(void)
{
    scratch_setup();
    feed_init(&feed, BEGIN);
}

static void teardown(void)
{
    json_decref(trace);
    free(text);
    feed_free(&feed);
    scratch_teardown();
}

static void write_trace(void)
{
    ck_assert_int_eq(feed_write(&feed, &tp_execution_trace_writer, scratch_folder, "t.json", 0), 0);
    text = scratch_read("t.json", NULL);
    json_error_t error;
    trace = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    ck_assert_msg(trace != NULL, "%s at %d: %.300s", error.text, error.position, text);
}

static const json_t *node(size_t i)
{
    const json_t *found = json_array_get(json_object_get(trace, "nodes"), i);
    ck_assert_ptr_nonnull(found);
    return found;
}

static const char *name(size_t i)
{
    return json_string_value(json_object_get(node(i), "name"));
}

static json_int_t number(size_t i, const char *key)
{
    json_t *value = json_object_get(node(i), key);
    ck_assert(json_is_integer(value));
    return json_integer_value(value);
}

static const json_t *attribute(size_t i, const char *key)
{
    size_t n;
    json_t *attr;
    json_array_foreach(json_object_get(node(i), "attrs"), n, attr)
        if (strcmp(json_string_value(json_object_get(attr, "name")), key) == 0)
            return json_object_get(attr, "value");
    ck_abort_msg("%s is missing", key);
}

static void check_array(size_t i, const char *side, const char *array, const char *expected)
{
    char *shown = json_dumps(json_object_get(json_object_get(node(i), side), array), JSON_COMPACT);
    ck_assert_str_eq(shown, expected);
    free(shown);
}

static const struct tp_event_values *values_of(const uint64_t *words, size_t count, uint32_t values)
{
    static uint64_t room[4][1100];
    static size_t next;
    struct tp_event_values *made = (struct tp_event_values *)room[next++ % 4];
    *made = (struct tp_event_values){.count = values, .words = (uint32_t)count};
    memcpy(made->items, words, count * sizeof *words);
    ck_assert(tp_values_sound(made->items, made->words, made->count, false));
    return made;
}

START_TEST(an_empty_one)
{
    feed.report.clock_begin = (struct tp_clock_pair){.monotonic_ns = UINT64_C(7783023000000), .realtime_ns = BEGIN};
    write_trace();
#define NUMBER(name, type, value) "{\"name\": \"" name "\", \"type\": \"" type "\", \"value\": " value "},"
#define TEXT(name) "{\"name\": \"" name "\", \"type\": \"string\", \"value\": \"\"}"
    static const char expected[] =
        "{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 4000, \"time\": \"2026-12-02 13:06:33\", "
        "\"start_ts\": 7783023,\n  \"nodes\": [\n      {\n"
        "        \"id\": 1, \"name\": \"[pytorch|profiler|execution_trace|process]\", \"ctrl_deps\": 1,\n"
        "        \"inputs\": {\"values\": [], \"shapes\": [], \"types\": [], \"strides\": []},\n"
        "        \"outputs\": {\"values\": [], \"shapes\": [], \"types\": [], \"strides\": []},\n"
        "        \"attrs\": [" NUMBER("rf_id", "uint64", "0") NUMBER("fw_parent", "uint64", "0")
        NUMBER("seq_id", "int64", "-1") NUMBER("scope", "uint64", "7") NUMBER("tid", "uint64", "0")
        NUMBER("fw_tid", "uint64", "0") TEXT("op_schema") "," TEXT("kernel_backend") "," TEXT("kernel_file") "," TEXT("tensor_range") "]\n      }\n  ],\n"
        "  \"finish_ts\": 7793023\n}";
#undef NUMBER
#undef TEXT
    ck_assert_str_eq(text, expected);
}
END_TEST

static const struct {
    uint64_t seconds;
    const char *shown;
} days[] = {
    {0, "1970-01-01 00:00:00"},          {951782399, "2000-02-28 23:59:59"},  {951782400, "2000-02-29 00:00:00"},
    {951868800, "2000-03-01 00:00:00"},  {1735689599, "2024-12-31 23:59:59"}, {1735689600, "2025-01-01 00:00:00"},
    {4107542400, "2100-03-01 00:00:00"},
};

START_TEST(times_of_day)
{
    feed.report.window_begin_ns = days[_i].seconds * 1000000000 + 999999999;
    write_trace();
    ck_assert_str_eq(json_string_value(json_object_get(trace, "time")), days[_i].shown);
}
END_TEST

/* In the order of their ends, with their parents and the forward thread's, whatever the segments. */
START_TEST(nodes)
{
    feed.segment = _i ? 2 : SIZE_MAX;
    size_t outer = feed_begin(&feed, &trainer, "outer", BEGIN + 10);
    struct tp_event *inner = feed_range(&feed, &trainer, "inner", BEGIN + 20, BEGIN + 30);
    inner->parent = 0;
    inner->id = 12;
    inner->schema = "aten::inner(str x=\"a\") -> ()";
    inner->schema_bytes = (uint32_t)strlen(inner->schema);
    struct tp_event *backward = feed_range(&feed, &other, "B\"ackward\n", BEGIN + 40, BEGIN + 50);
    backward->scope = TP_SCOPE_BACKWARD_FUNCTION;
    backward->sequence = 5;
    backward->forward_thread = 1;
    backward->forward_parent = 0;
    struct tp_event *wrapper = feed_range(&feed, &other, "wrapper", BEGIN + 60, BEGIN + 70);
    wrapper->sequence = 5;
    wrapper->forward_thread = 1;
    wrapper->flags = TP_EVENT_WRAPS;
    struct tp_event *later = feed_range(&feed, &other, "later", BEGIN + 80, BEGIN + 90);
    later->forward_thread = 4; /* of which nothing else is known */
    feed_end(&feed, outer, BEGIN + 100)->id = 11;
    write_trace();
    static const char *const order[] = {"[pytorch|profiler|execution_trace|thread]", "inner",
                                        "[pytorch|profiler|execution_trace|thread]", "B\"ackward\n", "wrapper",
                                        "[pytorch|profiler|execution_trace|thread]", "later", "outer",
                                        "[pytorch|profiler|execution_trace|process]"};
    ck_assert_uint_eq(json_array_size(json_object_get(trace, "nodes")), TP_COUNT(order));
    for (size_t i = 0; i < TP_COUNT(order); i++)
        ck_assert_str_eq(name(i), order[i]);
    ck_assert_int_eq(number(1, "ctrl_deps"), number(7, "id"));
    ck_assert_int_eq(number(7, "ctrl_deps"), number(0, "id"));
    ck_assert_int_eq(number(3, "ctrl_deps"), number(2, "id"));
    ck_assert_int_eq(number(0, "ctrl_deps"), 1);
    ck_assert_int_eq(json_integer_value(attribute(1, "rf_id")), 12);
    ck_assert_str_eq(json_string_value(attribute(1, "op_schema")), inner->schema);
    ck_assert_int_eq(json_integer_value(attribute(3, "fw_parent")), number(7, "id"));
    ck_assert_int_eq(json_integer_value(attribute(3, "fw_tid")), 1);
    ck_assert_int_eq(json_integer_value(attribute(3, "seq_id")), 5);
    ck_assert_int_eq(json_integer_value(attribute(3, "scope")), 1);
    ck_assert_int_eq(json_integer_value(attribute(3, "tid")), 3);
    ck_assert_int_eq(json_integer_value(attribute(4, "seq_id")), -1);
    ck_assert_int_eq(json_integer_value(attribute(4, "fw_tid")), 0);
    ck_assert_int_eq(json_integer_value(attribute(4, "fw_parent")), 0);
    ck_assert_int_eq(json_integer_value(attribute(6, "fw_parent")), number(5, "id"));
}
END_TEST

/* Ids go by address, each from its first sight on; a tensor and its data are two. */
START_TEST(tensors)
{
    const uint64_t words[] = {
        tp_input_word(TP_VALUE_TENSOR, 6, 2, TP_VALUE_STORED | TP_INPUT_CONTIGUOUS, tp_value_device(0, 255)),
        0x7f0000001000, 0x7f0000002000, 0, 2 | UINT64_C(3) << 32,
        tp_input_word(TP_VALUE_TENSOR, 7, 2, TP_VALUE_STORED, tp_value_device(1, 3)),
        0x7f0000001040, 0x7f0000002000, 11, 2 | UINT64_C(3) << 32, 1 | UINT64_C(2) << 32,
        tp_input_word(TP_VALUE_TENSOR, 0, 0, TP_VALUE_UNTYPED, 0), 0x7f0000009000,
        tp_input_word(TP_VALUE_TENSOR, 15, 1, TP_INPUT_CONTIGUOUS, 0), 0x7f0000001080, 4,
    };
    struct tp_event *event = feed_range(&feed, &trainer, "aten::add", BEGIN + 10, BEGIN + 20);
    event->given = values_of(words, TP_COUNT(words), 4);
    event->returned = values_of(words, 5, 1);
    write_trace();
    check_array(1, "inputs", "values",
                "[[65537,65539,0,6,4,\"cpu\"],[65541,65539,11,6,8,\"cuda:3\"],[65543,0,0,0,0,\"\"],"
                "[65545,0,0,0,0,\"\"]]");
    check_array(1, "inputs", "shapes", "[[2,3],[2,3],[],[4]]");
    check_array(1, "inputs", "strides", "[[3,1],[1,2],[],[1]]");
    check_array(1, "inputs", "types", "[\"Tensor(float)\",\"Tensor(double)\",\"Tensor(nullptr (uninitialized))\","
                                      "\"Tensor(c10::BFloat16)\"]");
    check_array(1, "outputs", "values", "[[65537,65539,0,6,4,\"cpu\"]]");
}
END_TEST

/* An operator gives back, at addresses that were used before, what its schema says. */
static const struct {
    const char *schema;
    unsigned output;
    bool is_new, data_is_new, shares_data; /* the data are those of its input */
} outputs[] = {
    {"a::b(Tensor x) -> Tensor", 0, true, true, false},
    {"a::b(Tensor x) -> Tensor", 0, true, false, true},
    {"a::b(Tensor x) -> Tensor[]", 0, true, true, false},
    {"a::b(Tensor x) -> (Tensor(a!), Tensor out, int)", 1, true, true, false},
    {"a::b(Tensor x) -> (Tensor[] p, (int, Tensor) q, Tensor r)", 2, true, true, false},
    {"a::b(str x=\"-> \", Tensor y) -> Tensor(a)", 0, true, false, true},
    {"a::b(Tensor x) -> Tensor(a)[]", 0, true, false, true},
    {"a::b(Tensor x) -> Tensor(a)", 0, false, false, false},
    {"a::b(Tensor x) -> Tensor(a!)", 0, false, false, false},
    {"a::b(Tensor x) -> (Tensor, Tensor(a!) out)", 1, false, false, false},
    {"a::b(Tensor x) -> (Tensor, Tensor)", 2, false, false, false},
    {"a::b(Tensor x) -> Any", 0, false, false, false},
    {"a::b(Tensor x) -> ()", 0, false, false, false},
    {"a::b(Tensor x) -> (", 0, false, false, false},
    {"a::b(Tensor x) -> ", 0, false, false, false},
    {"a::b", 0, false, false, false},
    {"", 0, false, false, false},
};

static const struct tp_event_values *tensors_at(const uint64_t (*at)[2], uint32_t count)
{
    uint64_t words[4 * 4];
    for (uint32_t i = 0; i < count; i++) {
        words[4 * i] = tp_input_word(TP_VALUE_TENSOR, 6, 0, TP_VALUE_STORED | TP_INPUT_CONTIGUOUS, 0);
        words[4 * i + 1] = at[i][0];
        words[4 * i + 2] = at[i][1];
        words[4 * i + 3] = 0;
    }
    return values_of(words, 4 * count, count);
}

static json_int_t id_in(size_t node_number, const char *side, size_t value, size_t which)
{
    json_t *values = json_object_get(json_object_get(node(node_number), side), "values");
    return json_integer_value(json_array_get(json_array_get(values, value), which));
}

START_TEST(new_at_an_old_address)
{
    const uint64_t first[][2] = {{0x1000, 0x2000}, {0x3000, 0x4000}};
    uint64_t results[3][2] = {{0x9000, 0x9100}, {0x9200, 0x9300}, {0x9400, 0x9500}};
    results[outputs[_i].output][0] = 0x1000;
    results[outputs[_i].output][1] = outputs[_i].shares_data ? 0x4000 : 0x2000;
    feed_range(&feed, &trainer, "first", BEGIN + 10, BEGIN + 20)->given = tensors_at(first, 2);
    struct tp_event *event = feed_range(&feed, &trainer, "second", BEGIN + 30, BEGIN + 40);
    event->schema = outputs[_i].schema;
    event->schema_bytes = (uint32_t)strlen(event->schema);
    event->given = tensors_at(&first[1], 1);
    event->returned = tensors_at((const uint64_t (*)[2])results, 3);
    write_trace();
    json_int_t tensor = id_in(2, "outputs", outputs[_i].output, 0), data = id_in(2, "outputs", outputs[_i].output, 1);
    ck_assert_int_eq(tensor != id_in(1, "inputs", 0, 0), outputs[_i].is_new);
    ck_assert_int_eq(data != id_in(1, "inputs", outputs[_i].shares_data ? 1 : 0, 1), outputs[_i].data_is_new);
}
END_TEST

static uint64_t double_word(double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

START_TEST(other_values)
{
    const uint64_t words[] = {
        tp_input_word(TP_VALUE_LIST, 0, 0, 0, 2), tp_input_word(TP_VALUE_INT, 0, 0, 0, (uint32_t)-7),
        tp_input_word(TP_VALUE_LIST, 0, 0, 0, 1), TP_VALUE_NONE,
        tp_input_word(TP_VALUE_TUPLE, 0, 0, 0, 0),
        tp_input_word(TP_VALUE_INT, 0, 0, TP_INPUT_WIDE, 0), (uint64_t)INT64_MIN,
        TP_VALUE_DOUBLE, double_word(-1.5),
        TP_VALUE_DOUBLE, double_word((double)INFINITY),
        tp_input_word(TP_VALUE_BOOL, 0, 0, 0, 1),
        tp_input_word(TP_VALUE_STRING, 0, 0, 0, 5), 0x22a9c30a61, /* a, a new line, e with an acute accent, a quote */
        tp_input_word(TP_VALUE_DEVICE, 0, 0, 0, tp_value_device(14, 255)),
        TP_VALUE_COMPLEX_DOUBLE, TP_VALUE_GENERATOR,
    };
    feed_range(&feed, &trainer, "range", BEGIN + 10, BEGIN + 20)->given = values_of(words, TP_COUNT(words), 10);
    write_trace();
    ck_assert_ptr_nonnull(strstr(text, "\"values\": [[-7,[\"<None>\"]],[],-9223372036854775808,-1.500000,\"inf\",true,"
                                       "\"a\\n\xc3\xa9\\\"\",\"meta\",\"<ComplexDouble>\",\"<Generator>\"], "));
    check_array(1, "inputs", "shapes", "[[[],[[]]],[],[],[],[],[],[],[],[],[]]");
    check_array(1, "inputs", "types", "[\"GenericList[Int,GenericList[None]]\",\"Tuple[]\",\"Int\",\"Double\","
                                      "\"Double\",\"Bool\",\"String\",\"Device\",\"ComplexDouble\",\"Generator\"]");
}
END_TEST

/* What stands behind the values is told as attributes; without it that it is missing. */
START_TEST(communication)
{
    const uint64_t words[] = {
        tp_input_word(TP_VALUE_LIST, 0, 0, 0, 1), tp_input_word(TP_VALUE_INT, 0, 0, 0, 9),
        tp_input_word(TP_VALUE_TUPLE, 0, 0, 0, TP_VALUES_COMMS_COUNT),
        tp_input_word(TP_VALUE_STRING, 0, 0, 0, 3), 0x627561,
        tp_input_word(TP_VALUE_INT, 0, 0, 0, 15),
        tp_input_word(TP_VALUE_INT, 0, 0, TP_INPUT_WIDE, 0), UINT64_C(1) << 40,
        tp_input_word(TP_VALUE_INT, 0, 0, 0, 4),
        tp_input_word(TP_VALUE_LIST, 0, 0, 0, 2), tp_input_word(TP_VALUE_INT, 0, 0, 0, 1),
        tp_input_word(TP_VALUE_INT, 0, 0, 0, 2),
        tp_input_word(TP_VALUE_LIST, 0, 0, 0, 0),
        tp_input_word(TP_VALUE_INT, 0, 0, 0, 5), tp_input_word(TP_VALUE_INT, 0, 0, 0, 6),
        tp_input_word(TP_VALUE_STRING, 0, 0, 0, 1), '"', tp_input_word(TP_VALUE_STRING, 0, 0, 0, 0),
        tp_input_word(TP_VALUE_INT, 0, 0, 0, 8), tp_input_word(TP_VALUE_INT, 0, 0, 0, 1),
    };
    struct tp_event_values *values = (struct tp_event_values *)values_of(words, TP_COUNT(words), 2);
    values->flags = TP_VALUES_COMMS;
    feed_range(&feed, &trainer, "record_param_comms", BEGIN + 10, BEGIN + 20)->given = values;
    feed_range(&feed, &trainer, "record_param_comms", BEGIN + 30, BEGIN + 40)->given = values_of(words, 2, 1);
    write_trace();
    check_array(1, "inputs", "values", "[[9]]");
    check_array(1, "inputs", "types", "[\"GenericList[Int]\"]");
    static const struct {
        const char *name, *shown;
    } expected[] = {{"collective_name", "\"aub\""}, {"dtype", "\"BFloat16\""},  {"in_msg_nelems", "1099511627776"},
                    {"out_msg_nelems", "4"},        {"in_split_size", "\"[1, 2]\""}, {"out_split_size", "\"[]\""},
                    {"global_rank_start", "5"},     {"global_rank_stride", "6"},    {"pg_name", "\"\\\"\""},
                    {"pg_desc", "\"\""},            {"pg_size", "8"},               {"is_asynchronized_op", "1"}};
    for (size_t i = 0; i < TP_COUNT(expected); i++) {
        char *shown = json_dumps(attribute(1, expected[i].name), JSON_ENCODE_ANY);
        ck_assert_str_eq(shown, expected[i].shown);
        free(shown);
    }
    ck_assert_uint_eq(json_array_size(json_object_get(node(1), "attrs")), 10 + TP_VALUES_COMMS_COUNT);
    ck_assert_str_eq(json_string_value(attribute(2, "debug")), "missing comms info");
    check_array(2, "inputs", "values", "[[9]]");
}
END_TEST

/* A long string is cut nowhere inside a character, wherever its parts begin. */
START_TEST(a_long_string)
{
    enum { BYTES = 8600 };
    static char long_text[BYTES + 8];
    size_t used = (size_t)_i;
    memset(long_text, 'x', used);
    while (used + 3 <= BYTES) {
        memcpy(long_text + used, "\xe2\x82\xac", 3);
        used += 3;
    }
    uint64_t words[1 + BYTES / 8 + 1] = {tp_input_word(TP_VALUE_STRING, 0, 0, 0, (uint32_t)used)};
    memcpy(words + 1, long_text, used);
    feed_range(&feed, &trainer, "range", BEGIN + 10, BEGIN + 20)->given = values_of(words, 1 + (used + 7) / 8, 1);
    write_trace();
    json_t *value = json_array_get(json_object_get(json_object_get(node(1), "inputs"), "values"), 0);
    ck_assert_uint_eq(json_string_length(value), used);
    ck_assert_mem_eq(json_string_value(value), long_text, used);
}
END_TEST

/* More tensors than are remembered: each has an id that no other has, and keeps it. */
START_TEST(more_tensors_than_the_table_holds)
{
    enum { TENSORS = 70000, A_NODE = 250 };
    struct tp_event_values *all[TENSORS / A_NODE];
    for (size_t n = 0; n < TP_COUNT(all); n++) {
        all[n] = calloc(1, sizeof *all[n] + A_NODE * 2 * sizeof(uint64_t));
        *all[n] = (struct tp_event_values){.count = A_NODE, .words = 2 * A_NODE};
        for (size_t i = 0; i < A_NODE; i++) {
            all[n]->items[2 * i] = tp_input_word(TP_VALUE_TENSOR, 6, 0, TP_INPUT_CONTIGUOUS, 0);
            all[n]->items[2 * i + 1] = UINT64_C(0x7f0000000000) + 64 * (n * A_NODE + i);
        }
        struct tp_event *event = feed_range(&feed, &trainer, "range", BEGIN + 10 * n, BEGIN + 10 * n + 5);
        event->given = event->returned = all[n];
    }
    write_trace();
    json_t *seen = json_object();
    size_t i, n;
    const json_t *each;
    json_t *value;
    json_array_foreach(json_object_get(trace, "nodes"), i, each) {
        char id[32];
        snprintf(id, sizeof id, "%lld", (long long)json_integer_value(json_object_get(each, "id")));
        ck_assert_ptr_null(json_object_get(seen, id));
        json_object_set_new(seen, id, json_true());
        json_t *given = json_object_get(json_object_get(each, "inputs"), "values");
        ck_assert(json_equal(given, json_object_get(json_object_get(each, "outputs"), "values")));
        json_array_foreach(given, n, value) {
            snprintf(id, sizeof id, "%lld", (long long)json_integer_value(json_array_get(value, 0)));
            ck_assert_ptr_null(json_object_get(seen, id));
            json_object_set_new(seen, id, json_true());
        }
    }
    ck_assert_uint_eq(json_object_size(seen), TENSORS + TP_COUNT(all) + 2);
    json_decref(seen);
    for (n = 0; n < TP_COUNT(all); n++)
        free(all[n]);
}
END_TEST

Suite *execution_trace_suite(void)
{
    Suite *suite = suite_create("execution_trace");
    TCase *tcase = tcase_create("execution_trace");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_empty_one);
    tcase_add_loop_test(tcase, times_of_day, 0, (int)TP_COUNT(days));
    tcase_add_loop_test(tcase, nodes, 0, 2);
    tcase_add_test(tcase, tensors);
    tcase_add_loop_test(tcase, new_at_an_old_address, 0, (int)TP_COUNT(outputs));
    tcase_add_test(tcase, other_values);
    tcase_add_test(tcase, communication);
    tcase_add_loop_test(tcase, a_long_string, 0, 3);
    tcase_add_test(tcase, more_tensors_than_the_table_holds);
    suite_add_tcase(suite, tcase);
    return suite;
}
