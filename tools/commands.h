/* commands.h: what each command of tprof is: its arguments from its own name on; returns the exit status. */
#ifndef TP_COMMANDS_H
#define TP_COMMANDS_H

#define COMMAND(name, function, help) int function(int argc, char **argv);
#include "commands.def"
#undef COMMAND

/* Exit statuses; a command that starts a program has env(1)'s too. */
enum { TP_DONE = 0, TP_FAILED = 1, TP_WRONG_USE = 2 };

#endif
