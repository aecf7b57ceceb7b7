/* check_driver: `tprof check` alone. */
#include "../../tools/check.h"

int main(int argc, char **argv)
{
    return tp_command_check(argc, argv);
}
