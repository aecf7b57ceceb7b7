#include "suites.h"

#include "simgpu.h"

START_TEST(every_call_fails)
{
    sim_faults_set("cudaMalloc=2");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(sim_fault("cudaMalloc"), 2);
    ck_assert_int_eq(sim_fault("cudaMallocAsync"), 0);
    ck_assert_int_eq(sim_fault("cuda"), 0);
}
END_TEST

START_TEST(the_nth_call_fails)
{
    sim_faults_set("cudaFree=9,cuptiSubscribe=39@2");
    int wanted[] = {0, 39, 0, 0};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(sim_fault("cuptiSubscribe"), wanted[i]);
}
END_TEST

START_TEST(the_nth_call_and_later_ones_fail)
{
    sim_faults_set("cudaLaunchKernel=719@3+");
    int wanted[] = {0, 0, 719, 719};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(sim_fault("cudaLaunchKernel"), wanted[i]);
}
END_TEST

START_TEST(numbers_of_records_are_not_counted)
{
    sim_faults_set("drop=7,late=2000000");
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(sim_fault_number("drop"), 7);
    ck_assert_uint_eq(sim_fault_number("late"), 2000000);
    ck_assert_uint_eq(sim_fault_number("shuffle"), 0);
    sim_faults_set("");
    ck_assert_uint_eq(sim_fault_number("drop"), 0);
}
END_TEST

START_TEST(what_is_no_fault_is_refused)
{
    static const char *const texts[] = {"cudaMalloc", "cudaMalloc=", "=2", "cudaMalloc=2@0", "cudaMalloc=2@3-", "a=1;b=2", "a=1@"};
    sim_faults_set(texts[_i]);
}
END_TEST

Suite *faults_suite(void)
{
    Suite *suite = suite_create("faults");
    TCase *all = tcase_create("faults");
    tcase_add_test(all, every_call_fails);
    tcase_add_test(all, the_nth_call_fails);
    tcase_add_test(all, the_nth_call_and_later_ones_fail);
    tcase_add_test(all, numbers_of_records_are_not_counted);
    tcase_add_loop_exit_test(all, what_is_no_fault_is_refused, 2, 0, 7);
    suite_add_tcase(suite, all);
    return suite;
}
