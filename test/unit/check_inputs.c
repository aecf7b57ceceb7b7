#include <stdlib.h>
#include <string.h>

#include "../../output/inputs.h"
#include "suites.h"

static struct tp_input first_of(const uint64_t *words, size_t count)
{
    struct tp_input_cursor cursor = {words, words + count};
    struct tp_input input;
    ck_assert(tp_input_next(&cursor, &input));
    ck_assert_ptr_eq(cursor.at, cursor.end);
    return input;
}

static void check_numbers(const int64_t *numbers, size_t count, const int64_t *expected, size_t expected_count)
{
    ck_assert_uint_eq(count, expected_count);
    ck_assert_mem_eq(numbers, expected, count * sizeof *numbers);
}

START_TEST(tensors)
{
    int64_t numbers[TP_INPUT_DIMENSIONS_MAX];
    const uint64_t apart[] = {tp_input_word(TP_INPUT_TENSOR, 6, 3, 0, 0), 5 | UINT64_C(4294967295) << 32, 2,
                              1 | UINT64_C(7) << 32, 9};
    struct tp_input input = first_of(apart, TP_COUNT(apart));
    check_numbers(numbers, tp_input_sizes(&input, numbers), (int64_t[]){5, 4294967295, 2}, 3);
    check_numbers(numbers, tp_input_strides(&input, numbers), (int64_t[]){1, 7, 9}, 3);
    ck_assert_str_eq(tp_input_type_name(input.type), "float");
    const uint64_t contiguous[] = {tp_input_word(TP_INPUT_TENSOR, 200, 4, TP_INPUT_CONTIGUOUS, 0),
                                   3 | UINT64_C(0) << 32, 5 | UINT64_C(1) << 32};
    input = first_of(contiguous, TP_COUNT(contiguous));
    check_numbers(numbers, tp_input_sizes(&input, numbers), (int64_t[]){3, 0, 5, 1}, 4);
    check_numbers(numbers, tp_input_strides(&input, numbers), (int64_t[]){5, 5, 1, 1}, 4);
    ck_assert_str_eq(tp_input_type_name(input.type), "");
    const uint64_t wide[] = {tp_input_word(TP_INPUT_TENSOR, 6, 2, TP_INPUT_WIDE | TP_INPUT_UNSTRIDED, 0),
                             UINT64_C(1) << 40, 3};
    input = first_of(wide, TP_COUNT(wide));
    check_numbers(numbers, tp_input_sizes(&input, numbers), (int64_t[]){INT64_C(1) << 40, 3}, 2);
    ck_assert_uint_eq(tp_input_strides(&input, numbers), 0);
}
END_TEST

START_TEST(numbers)
{
    const uint64_t small[] = {tp_input_word(TP_INPUT_INT, 0, 0, 0, (uint32_t)-7)};
    ck_assert_int_eq(first_of(small, 1).integer, -7);
    const uint64_t large[] = {tp_input_word(TP_INPUT_INT, 0, 0, TP_INPUT_WIDE, 0), (uint64_t)INT64_MIN};
    ck_assert_int_eq(first_of(large, 2).integer, INT64_MIN);
    const double parts[] = {1.5, -2};
    uint64_t number[3] = {TP_INPUT_COMPLEX};
    memcpy(number + 1, parts, sizeof parts);
    struct tp_input input = first_of(number, 3);
    ck_assert_double_eq(tp_input_double(&input, 0), 1.5);
    ck_assert_double_eq(tp_input_double(&input, 1), -2);
}
END_TEST

/* Sound ones; then the same with the last word missing are not. */
static const struct {
    uint64_t words[6];
    size_t count, inputs;
} sound[] = {
    {{TP_INPUT_OTHER}, 1, 1},
    {{TP_INPUT_DOUBLE, 1}, 2, 1},
    {{TP_INPUT_TENSOR | 2 << 16, 1, 2}, 3, 1},
    {{TP_INPUT_TENSOR | 3 << 16 | TP_INPUT_CONTIGUOUS << 24, 1, 2}, 3, 2},
    {{TP_INPUT_TENSORS | UINT64_C(2) << 32, TP_INPUT_TENSOR, TP_INPUT_TENSOR}, 3, 1},
    {{TP_INPUT_TENSORS | TP_INPUT_LONG << 24 | UINT64_C(4000) << 32, TP_INPUT_INT}, 2, 2},
    {{TP_INPUT_SCALARS | UINT64_C(3) << 32, TP_INPUT_INT, TP_INPUT_DOUBLE, 0, TP_INPUT_SYMBOL}, 5, 1},
};

START_TEST(sound_words)
{
    ck_assert(tp_inputs_sound(sound[_i].words, sound[_i].count, sound[_i].inputs));
    ck_assert(tp_inputs_sound(sound[_i].words, sound[_i].count, sound[_i].inputs + 1)); /* one was cut */
    ck_assert(!tp_inputs_sound(sound[_i].words, sound[_i].count + 1, sound[_i].inputs)); /* a word too many */
    struct tp_input_cursor all = {sound[_i].words, sound[_i].words + sound[_i].count};
    struct tp_input last = {0};
    size_t items = 0;
    while (tp_input_next(&all, &last))
        items++;
    if (items == 1 && sound[_i].count > 1)
        ck_assert(!tp_inputs_sound(sound[_i].words, sound[_i].count - 1, sound[_i].inputs));
    else
        ck_assert(!tp_inputs_sound(sound[_i].words, sound[_i].count, sound[_i].inputs - 1));
}
END_TEST

static const uint64_t unsound[][3] = {
    {TP_INPUT_NONE},
    {TP_INPUT_KINDS},
    {255},
    {TP_INPUT_TENSOR | 255 << 16, 1, 2},
    {TP_INPUT_TENSORS | UINT64_C(1) << 32, TP_INPUT_INT, TP_INPUT_INT},
    {TP_INPUT_SCALARS | UINT64_C(1) << 32, TP_INPUT_TENSOR, TP_INPUT_INT},
    {TP_INPUT_SCALARS | UINT64_C(0xffffffff) << 32, TP_INPUT_INT, TP_INPUT_INT},
    {TP_INPUT_SCALARS | UINT64_C(1) << 32, TP_INPUT_SCALARS, TP_INPUT_INT},
};

START_TEST(unsound_words)
{
    ck_assert(!tp_inputs_sound(unsound[_i], 3, 3));
}
END_TEST

/* Of any words nothing behind them is read (a sanitizer looks), and it ends. */
START_TEST(any_words)
{
    unsigned good = 0;
    srand(1);
    for (int turn = 0; turn < 20000; turn++) {
        size_t count = (size_t)(rand() % 12);
        uint64_t *words = malloc(count * sizeof *words + 1);
        for (size_t i = 0; i < count; i++)
            words[i] = tp_input_word((enum tp_input_kind)(rand() % 13), (unsigned)rand() % 60, (unsigned)rand() % 5,
                                     (unsigned)rand() % 16, (uint32_t)rand() % 4);
        good += tp_inputs_sound(words, count, 4);
        struct tp_input_cursor cursor = {words, words + count};
        struct tp_input input;
        int64_t numbers_there[TP_INPUT_DIMENSIONS_MAX];
        size_t items = 0;
        while (tp_input_next(&cursor, &input)) {
            items++;
            if (input.kind == TP_INPUT_TENSOR)
                ck_assert_uint_ge(tp_input_sizes(&input, numbers_there), tp_input_strides(&input, numbers_there));
        }
        ck_assert_uint_le(items, count);
        free(words);
    }
    ck_assert_uint_gt(good, 100);
}
END_TEST

Suite *inputs_suite(void)
{
    Suite *suite = suite_create("inputs");
    TCase *tcase = tcase_create("inputs");
    tcase_add_test(tcase, tensors);
    tcase_add_test(tcase, numbers);
    tcase_add_loop_test(tcase, sound_words, 0, (int)TP_COUNT(sound));
    tcase_add_loop_test(tcase, unsound_words, 0, (int)TP_COUNT(unsound));
    tcase_add_test(tcase, any_words);
    suite_add_tcase(suite, tcase);
    return suite;
}
