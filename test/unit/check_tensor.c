/* The writer of inputs, over tensors and values that are laid out here; what it wrote is read as the model reads it. */
#include <stdlib.h>
#include <string.h>

#include "../../collectors/torch/tensor.h"
#include "../../output/inputs.h"
#include "suites.h"

#define INLINE 2

struct value {
    uint64_t payload, tag;
};

struct tensor {
    uint64_t dimensions;
    int64_t numbers[2 * INLINE];
    uint64_t type, keys, flags;
};

struct list {
    const struct value *begin, *end;
    const void *type;
};

struct function {
    const struct value *values;
    uint64_t count;
};

enum { OTHER, TENSOR, INT, LIST };
static const char tensor_type;
static const struct tp_torch_abi abi = {
    .inputs = {.sizes = offsetof(struct tensor, dimensions),
               .inline_dimensions = INLINE,
               .type = offsetof(struct tensor, type),
               .keys = offsetof(struct tensor, keys),
               .flags = offsetof(struct tensor, flags),
               .symbolic = 1,
               .answers_itself = 2,
               .nested_keys = 1,
               .unstrided_keys = 2,
               .list_type = offsetof(struct list, type),
               .tensor_type = &tensor_type,
               .kinds = {[TENSOR] = TP_TORCH_TENSOR, [INT] = TP_TORCH_INT, [LIST] = TP_TORCH_LIST}}};

static uint64_t words[TP_TENSOR_WORDS_MAX + 1];

/* The items, joined; checks the records around them. */
static size_t join(const void *function, unsigned written, uint64_t *items, uint16_t *ret_count, uint8_t *ret_flags)
{
    size_t joined = 0, total = 0;
    tp_tensor_stamp(words, written, 99);
    for (const uint64_t *at = words; at < words + written; at += tp_record_words(*at)) {
        const struct tp_inputs *inputs = (const struct tp_inputs *)at;
        ck_assert_int_eq(tp_record_kind(inputs->head), TP_RECORD_INPUTS);
        ck_assert_uint_eq(tp_record_key(inputs->head), (uintptr_t)function & TP_KEY_MASK);
        ck_assert_uint_eq(inputs->time, 99);
        ck_assert_uint_eq(inputs->offset, joined);
        size_t here = tp_record_words(*at) - TP_INPUTS_WORDS;
        memcpy(items + joined, inputs + 1, here * sizeof *items);
        joined += here;
        total = inputs->words;
        *ret_count = inputs->count;
        *ret_flags = inputs->flags;
    }
    ck_assert_uint_eq(joined, total);
    ck_assert(tp_inputs_sound(items, joined, *ret_count));
    return joined;
}

static uint64_t items[TP_INPUTS_ITEMS_MAX];
static uint16_t count;
static uint8_t flags;

static struct tp_input_cursor write(const struct value *values, size_t value_count)
{
    struct function function = {values, value_count};
    struct tp_torch_values given = tp_torch_values(&abi.inputs, &function);
    memset(words, 0xee, sizeof words);
    unsigned written = tp_tensor_write(&abi.inputs, &function, &given, words, TP_TENSOR_WORDS_MAX);
    ck_assert_uint_le(written, TP_TENSOR_WORDS_MAX);
    ck_assert_uint_eq(words[TP_TENSOR_WORDS_MAX], UINT64_C(0xeeeeeeeeeeeeeeee));
    size_t joined = join(&function, written, items, &count, &flags);
    /* In less room it says what it needs, and writes nothing behind the room. */
    for (unsigned room = 0; room < written; room += written / 7 + 1) {
        memset(words, 0xee, sizeof words);
        ck_assert_uint_ge(tp_tensor_write(&abi.inputs, &function, &given, words, room), written);
        ck_assert_uint_eq(words[room < TP_INPUTS_WORDS ? TP_INPUTS_WORDS : room], UINT64_C(0xeeeeeeeeeeeeeeee));
    }
    return (struct tp_input_cursor){items, items + joined};
}

static struct tp_input next(struct tp_input_cursor *cursor)
{
    struct tp_input input;
    ck_assert(tp_input_next(cursor, &input));
    return input;
}

static void check_tensor(const struct tp_input *input, unsigned type, size_t dimensions, const int64_t *sizes,
                         const int64_t *strides)
{
    int64_t there[TP_INPUT_DIMENSIONS_MAX];
    ck_assert_uint_eq(input->kind, TP_INPUT_TENSOR);
    ck_assert_uint_eq(input->type, type);
    ck_assert_uint_eq(tp_input_sizes(input, there), dimensions);
    if (dimensions)
        ck_assert_mem_eq(there, sizes, dimensions * sizeof *there);
    ck_assert_uint_eq(tp_input_strides(input, there), strides ? dimensions : 0);
    if (strides && dimensions)
        ck_assert_mem_eq(there, strides, dimensions * sizeof *there);
}

START_TEST(no_inputs_no_record)
{
    struct function function = {NULL, 0};
    struct tp_torch_values none = tp_torch_values(&abi.inputs, &function);
    ck_assert_uint_eq(tp_tensor_write(&abi.inputs, &function, &none, words, TP_TENSOR_WORDS_MAX), 0);
}
END_TEST

START_TEST(tensors_as_they_are)
{
    const int64_t apart[] = {2, 3, INT64_C(1) << 33, 1, INT64_C(1) << 40, 7};
    struct tensor plain = {2, {5, 4, 4, 1}, 6, 0, 0}, turned = {2, {4, 5, 1, 4}, 7, 0, 0}, outside = {3, {0}, 6, 0, 0},
                  sparse = {1, {9}, 6, 2, 0}, nested = {1, {9}, 6, 1, 0}, symbolic = {1, {9}, 6, 0, 3},
                  asks = {1, {9, 0, 1}, 6, 0, 2}, scalar = {0, {0}, 4, 0, 0}, strange = {1, {9, 0, 1}, 300, 0, 0};
    outside.numbers[0] = (int64_t)(uintptr_t)apart;
    struct tensor *all[] = {&plain, &turned, &outside, &sparse, &nested, &symbolic, &asks, &scalar, &strange, NULL};
    struct value values[TP_COUNT(all)];
    for (size_t i = 0; i < TP_COUNT(all); i++)
        values[i] = (struct value){(uintptr_t)all[i], TENSOR};
    struct tp_input_cursor cursor = write(values, TP_COUNT(all));
    struct tp_input input = next(&cursor);
    check_tensor(&input, 6, 2, (int64_t[]){5, 4}, (int64_t[]){4, 1});
    ck_assert_uint_eq(input.flags, TP_INPUT_CONTIGUOUS);
    input = next(&cursor);
    check_tensor(&input, 7, 2, (int64_t[]){4, 5}, (int64_t[]){1, 4});
    input = next(&cursor);
    check_tensor(&input, 6, 3, apart, apart + 3);
    input = next(&cursor);
    check_tensor(&input, 6, 1, (int64_t[]){9}, NULL);
    ck_assert_uint_eq(next(&cursor).kind, TP_INPUT_UNDEFINED);
    ck_assert_uint_eq(next(&cursor).kind, TP_INPUT_UNDEFINED);
    input = next(&cursor);
    check_tensor(&input, 6, 1, (int64_t[]){9}, (int64_t[]){1});
    input = next(&cursor);
    check_tensor(&input, 4, 0, NULL, (int64_t[]){0});
    ck_assert_uint_eq(next(&cursor).kind, TP_INPUT_UNDEFINED);
    ck_assert_uint_eq(next(&cursor).kind, TP_INPUT_UNDEFINED);
    ck_assert_uint_eq(flags, 0);
}
END_TEST

/* As many lists of 30 tensors as fill a number of words: one record, several, more than there can be. */
START_TEST(many_words)
{
    int64_t numbers[2 * 40];
    for (size_t i = 0; i < TP_COUNT(numbers); i++)
        numbers[i] = 3 + (int64_t)i;
    struct tensor large = {40, {(int64_t)(uintptr_t)numbers}, 6, 0, 0};
    struct value elements[TP_INPUT_LIST_MAX], values[12];
    for (size_t i = 0; i < TP_COUNT(elements); i++)
        elements[i] = (struct value){(uintptr_t)&large, TENSOR};
    struct list list = {elements, elements + _i, &tensor_type};
    for (size_t i = 0; i < TP_COUNT(values); i++)
        values[i] = (struct value){(uintptr_t)&list, LIST};
    size_t each = 1 + (size_t)_i * 41, fit = TP_INPUTS_ITEMS_MAX / each;
    struct tp_input_cursor cursor = write(values, TP_COUNT(values));
    ck_assert_uint_eq(count, TP_COUNT(values));
    ck_assert_uint_eq(flags, fit < TP_COUNT(values) ? TP_INPUTS_CUT : 0);
    size_t lists = 0;
    for (; cursor.at < cursor.end; lists++) {
        struct tp_input input = next(&cursor);
        ck_assert_uint_eq(input.kind, TP_INPUT_TENSORS);
        ck_assert_uint_eq(input.count, (uint32_t)_i);
        for (int i = 0; i < _i; i++) {
            input = next(&cursor);
            check_tensor(&input, 6, 40, numbers, numbers + 40);
        }
    }
    ck_assert_uint_eq(lists, fit < TP_COUNT(values) ? fit : TP_COUNT(values));
}
END_TEST

START_TEST(more_inputs_than_are_counted)
{
    enum { MANY = TP_INPUTS_COUNT_MAX + 500 };
    static struct value values[MANY];
    for (size_t i = 0; i < MANY; i++)
        values[i] = (struct value){i, INT};
    struct tp_input_cursor cursor = write(values, MANY);
    ck_assert_uint_eq(count, TP_INPUTS_COUNT_MAX);
    ck_assert_uint_eq(flags, TP_INPUTS_CUT);
    for (int64_t i = 0; cursor.at < cursor.end; i++)
        ck_assert_int_eq(next(&cursor).integer, i);
}
END_TEST

/* As torch shows lists: up to 30 elements; of tensors that have no sizes nothing. */
START_TEST(lists)
{
    struct tensor tensor = {1, {9, 0, 1}, 6, 0, 0}, nested = {1, {9}, 6, 1, 0};
    struct value many[31], odd[2] = {{(uintptr_t)&tensor, TENSOR}, {(uintptr_t)&nested, TENSOR}},
                           other[1] = {{0x10, OTHER}}, ints[31];
    for (size_t i = 0; i < TP_COUNT(many); i++) {
        many[i] = odd[0];
        ints[i] = (struct value){i, INT};
    }
    struct list all[] = {{many, many + 31, &tensor_type}, {odd, odd + 2, &tensor_type},   {odd, odd, &tensor_type},
                         {ints, ints + 30, NULL},         {ints, ints + 31, NULL},        {ints, ints, NULL},
                         {other, other + 1, NULL},        {other, other + 1, &tensor_type}, {odd, odd + 1, NULL}};
    const struct {
        enum tp_input_kind kind;
        uint32_t count, elements;
    } expected[] = {{TP_INPUT_TENSORS, 31, 0}, {TP_INPUT_OTHER, 0, 0},   {TP_INPUT_TENSORS, 0, 0},
                    {TP_INPUT_SCALARS, 30, 30}, {TP_INPUT_OTHER, 0, 0},  {TP_INPUT_SCALARS, 0, 0},
                    {TP_INPUT_OTHER, 0, 0},    {TP_INPUT_OTHER, 0, 0},   {TP_INPUT_OTHER, 0, 0}};
    struct value values[TP_COUNT(all)];
    for (size_t i = 0; i < TP_COUNT(all); i++)
        values[i] = (struct value){(uintptr_t)&all[i], LIST};
    struct tp_input_cursor cursor = write(values, TP_COUNT(all));
    for (size_t i = 0; i < TP_COUNT(all); i++) {
        struct tp_input input = next(&cursor);
        ck_assert_uint_eq(input.kind, expected[i].kind);
        ck_assert_uint_eq(input.count, expected[i].count);
        ck_assert_uint_eq(tp_input_elements(&input), expected[i].elements);
        for (uint32_t e = 0; e < tp_input_elements(&input); e++)
            next(&cursor);
    }
}
END_TEST

Suite *tensor_suite(void)
{
    Suite *suite = suite_create("tensor");
    TCase *tcase = tcase_create("tensor");
    tcase_add_test(tcase, no_inputs_no_record);
    tcase_add_test(tcase, tensors_as_they_are);
    tcase_add_loop_test(tcase, many_words, 0, TP_INPUT_LIST_MAX + 1);
    tcase_add_test(tcase, more_inputs_than_are_counted);
    tcase_add_test(tcase, lists);
    suite_add_tcase(suite, tcase);
    return suite;
}
