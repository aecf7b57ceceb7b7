/*
 * The settings from any bytes. The first byte, modulo 3, chooses: 0 an environment, its variables ended by newlines
 * or NUL bytes; 1 the text of a JSON file; 2 the same, read by the jansson that is linked (whose leaks a sanitizer
 * sees) and not by one that is opened, and the entries that come of it are loaded as variables.
 *
 * What must hold: no fault, no piece of the job's heap, an answer that agrees with the report, every text terminated.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/settings_read.h"
#include "../../tools/jansson_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VARIABLES 64

static struct tp_settings_report report;
static struct tp_settings settings;

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_lines(const struct tp_error *lines, unsigned count)
{
    char line[800];
    for (unsigned i = 0; i < count && i < TP_SETTINGS_MAX_LINES; i++) {
        must(lines[i].set);
        must(tp_error_line(&lines[i], line, sizeof line) == strlen(line));
    }
}

static void load(char **variables, struct tp_arena *arena)
{
    report = (struct tp_settings_report){0};
    int status = tp_settings_load(&settings, variables, arena, &report);
    must((status == 0) == (report.errors == 0));
    check_lines(report.error, report.errors);
    check_lines(report.note, report.notes);
    if (status < 0)
        return;
    must(settings.gzip_level >= 1 && settings.gzip_level <= 9 && settings.row_limit >= -1);
    must(settings.buffer_bytes >= 8u << 20 && settings.buffer_bytes <= UINT64_C(65536) << 20);
    must(settings.dir && settings.dir[0] && settings.activities.groups == 1u << TP_ACTIVITY_CPU);
    must(settings.schedule.always || settings.schedule.active > 0);
    must((unsigned)settings.log <= TP_LOG_DEBUG && (unsigned)settings.children <= TP_CHILDREN_NONE);
}

static void load_lines(char *text, size_t bytes, struct tp_arena *arena)
{
    char *variables[VARIABLES + 1];
    size_t count = 0;
    for (char *at = text, *end = text + bytes; at < end && count < VARIABLES; at += strlen(at) + 1) {
        at[strcspn(at, "\n")] = '\0';
        if (strncmp(at, "TPROF_CONFIG=", 13) != 0) /* no file of this machine has a say */
            variables[count++] = at;
    }
    variables[count] = NULL;
    load(variables, arena);
}

static void load_file(const char *text, size_t bytes, bool as_variables, struct tp_arena *arena)
{
    struct tp_settings_entry entries[TP_SETTINGS_COUNT] = {{0}};
    report = (struct tp_settings_report){0};
    int status = tp_settings_read_text(text, bytes, "fuzz.json", arena, &report, entries);
    must((status == 0) == (report.errors == 0));
    check_lines(report.error, report.errors);
    check_lines(report.note, report.notes);
    char *variables[TP_SETTINGS_COUNT + 1];
    size_t count = 0;
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        if (!entries[i].name || !entries[i].value)
            continue;
        must(entries[i].line > 0 && entries[i].column > 0);
        size_t size = strlen(entries[i].name) + strlen(entries[i].value) + 2;
        char *variable = tp_arena_alloc(arena, size);
        must(variable);
        strcat(strcat(strcpy(variable, entries[i].name), "="), entries[i].value);
        variables[count++] = variable;
    }
    variables[count] = NULL;
    if (status == 0 && as_variables)
        load(variables, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_arena arena;
    if (size < 1)
        return 0;
    tp_arena_init(&arena, 0);
    tp_settings_jansson = NULL;
    if (data[0] % 3 == 2)
        tp_link_jansson();
    char *text = tp_arena_copy(&arena, (const char *)data + 1, size - 1);
    must(text);
    if (data[0] % 3 == 0)
        load_lines(text, size - 1, &arena);
    else
        load_file(text, size - 1, data[0] % 3 == 2, &arena);
    tp_arena_free(&arena);
    return 0;
}
