#include <stdint.h>
#include <stdlib.h>

#include "../../agent/heap_sort.h"
#include "suites.h"

#define MANY 1000

struct item {
    uint32_t key, number;
    char more[TP_HEAP_ITEM_MAX - 8];
};

static bool has_lower_key(const void *a, const void *b)
{
    return ((const struct item *)a)->key < ((const struct item *)b)->key;
}

static bool is_lower(const void *a, const void *b)
{
    return *(const uint16_t *)a < *(const uint16_t *)b;
}

/* Each item whole, and each of them still there. */
START_TEST(items_are_in_order)
{
    static struct item items[MANY];
    static bool seen[MANY];
    size_t count = (size_t)_i;
    uint32_t keys = count < 10 ? 3 : (uint32_t)count / 2;
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct item){.key = (uint32_t)rand() % keys, .number = (uint32_t)i};
        memset(items[i].more, (int)(i % 251), sizeof items[i].more);
        seen[i] = false;
    }
    tp_heap_sort(items, count, sizeof *items, has_lower_key);
    for (size_t i = 0; i < count; i++) {
        ck_assert(i == 0 || items[i - 1].key <= items[i].key);
        ck_assert(!seen[items[i].number]);
        seen[items[i].number] = true;
        for (size_t byte = 0; byte < sizeof items[i].more; byte++)
            ck_assert_int_eq((unsigned char)items[i].more[byte], (int)(items[i].number % 251));
    }
}
END_TEST

START_TEST(small_items)
{
    uint16_t rising[] = {1, 2, 3, 4, 5}, falling[] = {5, 4, 3, 2, 1}, expected[] = {1, 2, 3, 4, 5};
    tp_heap_sort(rising, TP_COUNT(rising), sizeof *rising, is_lower);
    tp_heap_sort(falling, TP_COUNT(falling), sizeof *falling, is_lower);
    ck_assert_mem_eq(rising, expected, sizeof expected);
    ck_assert_mem_eq(falling, expected, sizeof expected);
}
END_TEST

Suite *heap_sort_suite(void)
{
    Suite *suite = suite_create("heap_sort");
    TCase *tcase = tcase_create("heap_sort");
    tcase_add_loop_test(tcase, items_are_in_order, 0, 40);
    tcase_add_loop_test(tcase, items_are_in_order, MANY - 1, MANY + 1);
    tcase_add_test(tcase, small_items);
    suite_add_tcase(suite, tcase);
    return suite;
}
