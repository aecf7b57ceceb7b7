/* tprof.c: the command. Its parts stand in commands.def; each has its own file, and its own --help. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../agent/nearest.h"
#include "commands.h"
#include "jansson_table.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
#define COMMAND(name, function, help) {name, function, help},
#include "commands.def"
#undef COMMAND
};

static void usage(void)
{
    printf("usage: tprof COMMAND [arguments]\n"
           "\n"
           "Records what a PyTorch program does, without a change to it.\n"
           "\n");
    for (size_t i = 0; i < TP_COUNT(commands); i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].help);
    printf("\n"
           "  --help     this text; tprof COMMAND --help says more\n"
           "  --version  which tprof this is\n"
           "\n"
           "Exit status: 0 done, 1 the check failed, 2 wrong use.\n");
}

/* What was said must have been heard, whatever came of it. An error may be older than the last of the output. */
static int finish_output(const char *command, int status)
{
    bool failed = ferror(stdout), flushed = fflush(stdout) == 0;
    if (flushed && !failed)
        return status;
    fprintf(stderr, "tprof%s%s: stdout: %s\n", command ? " " : "", command ? command : "",
            flushed ? "not all of it could be written" : strerror(errno));
    return TP_WRONG_USE;
}

static int refuse(const char *name)
{
    struct tp_nearest nearest;
    tp_nearest_init(&nearest, name);
    fprintf(stderr, "tprof: there is no command \"%s\"", name);
    for (size_t i = 0; i < TP_COUNT(commands); i++)
        tp_nearest_offer(&nearest, commands[i].name);
    if (nearest.found)
        fprintf(stderr, "; is %s meant?\n", nearest.found);
    else
        for (size_t i = 0; i < TP_COUNT(commands); i++)
            fprintf(stderr, "%s%s%s", i ? ", " : "; there are ", commands[i].name,
                    i + 1 < TP_COUNT(commands) ? "" : "\n");
    return TP_WRONG_USE;
}

int main(int argc, char **argv)
{
    tp_link_jansson();
    if (argc < 2) {
        fprintf(stderr, "tprof: which command? (tprof --help)\n");
        return TP_WRONG_USE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        usage();
        return finish_output(NULL, TP_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tprof %s\n", TP_VERSION);
        return finish_output(NULL, TP_DONE);
    }
    for (size_t i = 0; i < TP_COUNT(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return finish_output(commands[i].name, commands[i].run(argc - 1, argv + 1));
    return refuse(argv[1]);
}
