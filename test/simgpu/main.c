#include <stdlib.h>

#include "suites.h"

int main(void)
{
    SRunner *runner = srunner_create(NULL);
#define SUITE(maker) srunner_add_suite(runner, maker());
#include "suites.def"
#undef SUITE
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
