/* check.h: `tprof check FILE`: is this trace sound? */
#ifndef TP_CHECK_H
#define TP_CHECK_H

int tp_command_check(int argc, char **argv);

#endif
