/* run.c: `tprof run`: sets the environment and becomes the program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../agent/nearest.h"
#include "../agent/settings.h"
#include "commands.h"
#include "options.h"
#include "preload.h"

enum { CANNOT_START = 126, NOT_FOUND = 127 };

extern char **environ;

static void print_help(void)
{
    printf("usage: tprof run [options] [--] PROGRAM [arguments]\n"
           "\n"
           "Starts PROGRAM with libtprof.so in front of LD_PRELOAD. Each setting is an option, and wins over its "
           "variable;\na file of --config is read here, and what it sets is handed over as variables.\n"
           "\n");
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char option[TP_OPTION_MAX], text[400];
        const struct tp_setting *setting = tp_setting(i);
        tp_option_name(i, option);
        tp_setting_accepted(i, text, sizeof text);
        printf("  --%s VALUE\n      %s%s\n      %s\n      unset: %s\n", option, setting->help,
               setting->later ? " (not in this build yet)" : "", text,
               setting->preset ? setting->preset : setting->unset);
    }
    printf("\n"
           "  --help\n      this text\n"
           "\n"
           "Exit status: that of PROGRAM; 2 wrong use or a bad setting, 126 PROGRAM cannot be started, 127 it is "
           "not there.\n");
}

static void print_lines(const struct tp_error *lines, unsigned count)
{
    for (unsigned i = 0; i < count && i < TP_SETTINGS_MAX_LINES; i++) {
        char line[800];
        tp_error_line(&lines[i], line, sizeof line);
        fprintf(stderr, "tprof run: %s\n", line);
    }
    if (count > TP_SETTINGS_MAX_LINES)
        fprintf(stderr, "tprof run: and %u more such lines\n", count - TP_SETTINGS_MAX_LINES);
}

static int refuse_option(const char *word)
{
    char names[TP_SETTINGS_COUNT][TP_OPTION_MAX];
    struct tp_nearest nearest;
    tp_nearest_init(&nearest, word);
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        tp_option_name(i, names[i]);
        tp_nearest_offer(&nearest, names[i]);
    }
    fprintf(stderr, "tprof run: there is no option --%s%s%s%s\n", word, nearest.found ? "; is --" : " (tprof run "
                                                                                                    "--help)",
            nearest.found ? nearest.found : "", nearest.found ? " meant?" : "");
    return TP_WRONG_USE;
}

/* Takes the options into the environment. Index of the program, 0 after --help, or -1 after an error. */
static int take_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--") == 0)
            return i + 1;
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help();
            return 0;
        }
        if (word[0] != '-')
            return i;
        char name[TP_OPTION_MAX];
        size_t length = strcspn(word, "=");
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        unsigned setting = strncmp(name, "--", 2) == 0 ? tp_option_setting(name + 2) : TP_SETTINGS_COUNT;
        if (setting == TP_SETTINGS_COUNT) {
            refuse_option(name + strspn(name, "-"));
            return -1;
        }
        const char *value = word[length] ? word + length + 1 : argv[i + 1];
        if (!value) {
            fprintf(stderr, "tprof run: %s needs a value\n", name);
            return -1;
        }
        i += word[length] == '\0';
        if (setenv(tp_setting(setting)->name, value, 1)) {
            fprintf(stderr, "tprof run: %s: %s\n", name, strerror(errno));
            return -1;
        }
    }
    return argc;
}

/* What the file sets and the environment does not. False after an error, which was said. */
static bool take_file(struct tp_arena *arena, struct tp_settings_report *report)
{
    const char *path = getenv("TPROF_CONFIG");
    if (!path || !*path)
        return true;
    struct tp_settings_entry entries[TP_SETTINGS_COUNT] = {{0}};
    int failed = tp_settings_read_file(path, arena, report, entries);
    print_lines(report->error, report->errors);
    print_lines(report->note, report->notes);
    if (failed)
        return false;
    /* Read as the agent would read it, so that a bad value is told with its place in the file. */
    struct tp_settings settings;
    *report = (struct tp_settings_report){0};
    if (tp_settings_load(&settings, environ, arena, report) < 0) {
        print_lines(report->error, report->errors);
        return false;
    }
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        const char *old = entries[i].name ? getenv(entries[i].name) : "";
        if ((!old || !*old) && entries[i].value && *entries[i].value && setenv(entries[i].name, entries[i].value, 1)) {
            fprintf(stderr, "tprof run: %s: %s\n", entries[i].name, strerror(errno));
            return false;
        }
    }
    unsetenv("TPROF_CONFIG");
    *report = (struct tp_settings_report){0};
    return true;
}

int tp_command_run(int argc, char **argv)
{
    static struct tp_settings_report report;
    struct tp_settings settings;
    struct tp_arena arena;
    struct tp_error error = {0};
    char library[TP_PRELOAD_PATH];
    int program = take_options(argc, argv);
    if (program == 0)
        return TP_DONE;
    if (program < 0)
        return TP_WRONG_USE;
    if (program >= argc) {
        fprintf(stderr, "tprof run: which program? (tprof run --help)\n");
        return TP_WRONG_USE;
    }
    tp_arena_init(&arena, 0);
    if (!take_file(&arena, &report))
        return TP_WRONG_USE;
    if (tp_settings_load(&settings, environ, &arena, &report) < 0) {
        print_lines(report.error, report.errors);
        return TP_WRONG_USE;
    }
    tp_arena_free(&arena);
    if (tp_preload_find(library, &error) < 0 || tp_preload_set(library, &error) < 0) {
        print_lines(&error, 1);
        return TP_WRONG_USE;
    }
    execvp(argv[program], argv + program);
    int status = errno == ENOENT ? NOT_FOUND : CANNOT_START;
    fprintf(stderr, "tprof run: %s: %s\n", argv[program], strerror(errno));
    return status;
}
