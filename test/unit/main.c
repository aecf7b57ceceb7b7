/* Runs every suite. A suite is a file check_NAME.c that mirrors a file of the tree; its maker stands in suites.def. */
#include <stdlib.h>

#include "suites.h"

int main(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "120", 0); /* seconds a test may take: only a hang is worth telling, however busy the machine */
    SRunner *runner = srunner_create(NULL);
#define SUITE(maker) srunner_add_suite(runner, maker());
#include "suites.def"
#undef SUITE
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
