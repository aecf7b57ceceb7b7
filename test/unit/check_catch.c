/* What C++ throws is caught, by the runtime's own functions: libstdc++ is loaded as PyTorch loads it. */
#include <dlfcn.h>
#include <pthread.h>

#include "../../collectors/torch/catch.h"
#include "suites.h"

static struct {
    void (*throws)(const char *); /* std::__throw_length_error */
    int (*uncaught)(void);        /* std::uncaught_exceptions */
} cxx;

static bool found(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_NOW);
    if (!library || !tp_catch_find(library))
        return false;
    *(void **)&cxx.throws = dlsym(library, "_ZSt20__throw_length_errorPKc");
    *(void **)&cxx.uncaught = dlsym(library, "_ZSt19uncaught_exceptionsv");
    return cxx.throws && cxx.uncaught;
}

static void returns(void *argument)
{
    ++*(int *)argument;
}

static void throws(void *argument)
{
    ++*(int *)argument;
    cxx.throws("too long");
    ++*(int *)argument;
}

static void catches_itself(void *argument)
{
    if (!tp_catch(throws, argument))
        ++*(int *)argument;
}

static void throws_behind(void *argument)
{
    catches_itself(argument);
    throws(argument);
}

START_TEST(what_returns_returns)
{
    int count = 0;
    ck_assert(tp_catch(returns, &count));
    ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(what_throws_is_caught)
{
    int count = 0;
    volatile double kept = 0.25;
    for (int i = 0; i < 1000; i++)
        ck_assert(!tp_catch(throws, &count));
    ck_assert_int_eq(count, 1000);
    ck_assert_int_eq(cxx.uncaught(), 0);
    ck_assert(kept == 0.25);
}
END_TEST

START_TEST(the_inner_one_catches)
{
    int count = 0;
    ck_assert(tp_catch(catches_itself, &count));
    ck_assert_int_eq(count, 2);
    ck_assert(!tp_catch(throws_behind, &count));
    ck_assert_int_eq(count, 5);
    ck_assert_int_eq(cxx.uncaught(), 0);
}
END_TEST

static void leaves(void *argument)
{
    pthread_exit(argument);
}

static void *thread(void *argument)
{
    tp_catch(leaves, argument);
    return NULL;
}

START_TEST(a_thread_that_leaves_is_not_held)
{
    pthread_t left;
    void *result;
    int here;
    ck_assert_int_eq(pthread_create(&left, NULL, thread, &here), 0);
    pthread_join(left, &result);
    ck_assert_ptr_eq(result, &here);
}
END_TEST

Suite *catch_suite(void)
{
    Suite *suite = suite_create("catch");
    TCase *tcase = tcase_create("catch");
    if (found()) {
        tcase_add_test(tcase, what_returns_returns);
        tcase_add_test(tcase, what_throws_is_caught);
        tcase_add_test(tcase, the_inner_one_catches);
        tcase_add_test(tcase, a_thread_that_leaves_is_not_held);
    }
    suite_add_tcase(suite, tcase);
    return suite;
}
