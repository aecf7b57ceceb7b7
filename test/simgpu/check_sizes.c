#include "suites.h"

#include "simgpu.h"

static const unsigned versions[] = {17, 18, 19, 24, 26, 28, 130000, 130001, 130100, 130200, 130300, 130500};
enum { VERSIONS = sizeof versions / sizeof *versions };

START_TEST(records_only_grow)
{
    for (unsigned kind = 1; kind < 256; kind++)
        for (int i = 0; i < VERSIONS; i++) {
            size_t bytes = sim_record_bytes(kind, versions[i]);
            ck_assert_uint_eq(bytes % 8, 0);
            ck_assert_uint_le(bytes, 256);
            if (i)
                ck_assert_uint_ge(bytes, sim_record_bytes(kind, versions[i - 1]));
        }
}
END_TEST

START_TEST(a_version_has_its_sizes)
{
    static const struct {
        unsigned kind, version, bytes;
    } known[] = {{10, 17, 176}, {10, 24, 208}, {10, 130001, 216}, {10, 130300, 248}, {3, 24, 208}, {1, 24, 88}, {1, 26, 96},
                 {36, 24, 24},  {36, 26, 56},  {38, 24, 40},      {17, 24, 40},      {17, 130001, 56}, {5, 17, 40}, {255, 17, 64}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        ck_assert_uint_eq(sim_record_bytes(known[i].kind, known[i].version), known[i].bytes);
    ck_assert_uint_eq(sim_record_bytes(0, 130001), 0);
    ck_assert_uint_eq(sim_record_bytes(40, 130001), 0);
}
END_TEST

Suite *sizes_suite(void)
{
    Suite *suite = suite_create("sizes");
    TCase *all = tcase_create("sizes");
    tcase_add_test(all, records_only_grow);
    tcase_add_test(all, a_version_has_its_sizes);
    suite_add_tcase(suite, all);
    return suite;
}
