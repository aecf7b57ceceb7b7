/* tprof.c: the command: a table of what it can do. Exit status: that of the command; 2 for wrong use. */
#include <stdio.h>
#include <string.h>

#include "check.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"check", tp_command_check, "is this trace sound?"},
};

static void usage(FILE *to)
{
    fprintf(to, "usage: tprof COMMAND [arguments]     tprof COMMAND --help says more\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("tprof %s\n", TP_VERSION);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "tprof: no command \"%s\"\n", argv[1]);
    usage(stderr);
    return 2;
}
