/* check_driver: `tprof check` alone. */
#include "../../tools/commands.h"

int main(int argc, char **argv)
{
    return tp_command_check(argc, argv);
}
