#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    KIND_flag, KIND_schedule, KIND_step, KIND_outputs, KIND_text, KIND_children, KIND_level, KIND_rows, KIND_megabytes,
    KIND_log, KIND_later,
};

struct setting {
    const char *name; /* with the prefix */
    enum kind kind;
    size_t offset;
    const char *preset;
    const char *accepted; /* of a later one: what it is about */
};

static const struct setting table[] = {
#define SETTING(name, kind, field, preset, accepted) \
    {"TPROF_" #name, KIND_##kind, offsetof(struct tp_settings, field), preset, accepted},
#define LATER(name, what) {"TPROF_" #name, KIND_later, 0, NULL, what},
#include "settings.def"
#undef SETTING
#undef LATER
};

static int word_at(const char *value, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(value, words[i]) == 0)
            return (int)i;
    return -1;
}

static bool number_in(const char *value, long long least, long long most, long long *ret_number)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number < least || number > most)
        return false;
    *ret_number = number;
    return true;
}

static bool read_outputs(const char *value, uint32_t *ret_outputs)
{
    static const char *const words[] = {"tensorboard", "chrome", "table"};
    uint32_t outputs = 0;
    if (strcmp(value, "none") == 0) {
        *ret_outputs = 0;
        return true;
    }
    for (const char *at = value; at;) {
        const char *comma = strchr(at, ',');
        char item[32];
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (length >= sizeof item)
            return false;
        snprintf(item, sizeof item, "%.*s", (int)length, at);
        int word = word_at(item, words, TP_COUNT(words));
        if (word < 0)
            return false;
        outputs |= 1u << word;
        at = comma ? comma + 1 : NULL;
    }
    *ret_outputs = outputs;
    return true;
}

/* False, with error set or not: the value is not one that is accepted. */
static bool apply(struct tp_settings *settings, const struct setting *row, const char *value, struct tp_error *error)
{
    static const char *const children[] = {"auto", "all", "none"};
    static const char *const levels[] = {"quiet", "warn", "info", "debug"};
    void *field = (char *)settings + row->offset;
    long long number;
    int word;
    switch (row->kind) {
    case KIND_flag:
        if (!number_in(value, 0, 1, &number) || value[1])
            return false;
        *(bool *)field = number;
        return true;
    case KIND_schedule:
        settings->schedule_set = true;
        return tp_schedule_parse(value, &settings->schedule, error) == 0;
    case KIND_step:
        return tp_step_rule_parse(value, &settings->step, error) == 0;
    case KIND_outputs:
        return read_outputs(value, &settings->outputs);
    case KIND_text:
        *(const char **)field = value;
        return true;
    case KIND_children:
        if ((word = word_at(value, children, TP_COUNT(children))) < 0)
            return false;
        settings->children = (enum tp_children)word;
        return true;
    case KIND_log:
        if ((word = word_at(value, levels, TP_COUNT(levels))) < 0)
            return false;
        settings->log = (enum tp_log_level)word;
        return true;
    case KIND_level:
        if (!number_in(value, 1, 9, &number))
            return false;
        settings->gzip_level = (int)number;
        return true;
    case KIND_rows:
        if (!number_in(value, -1, INT32_MAX, &number))
            return false;
        settings->row_limit = number;
        return true;
    case KIND_megabytes:
        if (!number_in(value, 8, 65536, &number))
            return false;
        settings->buffer_bytes = (uint64_t)number << 20;
        return true;
    case KIND_later:
        return true;
    }
    return false;
}

/* Levenshtein's, on names of at most 63 characters. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[64];
    size_t length = strlen(b);
    if (length >= TP_COUNT(row) || strlen(a) >= TP_COUNT(row))
        return UINT32_MAX;
    for (size_t j = 0; j <= length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; a[i]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < length; j++) {
            unsigned best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (diagonal + 1 < best)
                best = diagonal + 1;
            row[j + 1] = best;
        }
    }
    return row[length];
}

static void note_unknown(const char *name, struct tp_error *note)
{
    const char *nearest = NULL;
    unsigned least = 5;
    for (size_t i = 0; i < TP_COUNT(table); i++)
        if (distance(name, table[i].name) < least) {
            least = distance(name, table[i].name);
            nearest = table[i].name;
        }
    tp_error_set(note, name, NULL, nearest ? "is not known; is %s meant?" : "is not known", nearest);
}

static struct tp_error *next_line(struct tp_error *lines, unsigned *count)
{
    static struct tp_error beyond;
    beyond.set = true;
    return (*count)++ < TP_SETTINGS_MAX_LINES ? &lines[*count - 1] : &beyond;
}

static void read_variable(struct tp_settings *settings, const char *variable, struct tp_settings_report *report)
{
    const char *equals = strchr(variable, '=');
    char name[64];
    if (!equals || !equals[1] || (size_t)(equals - variable) >= sizeof name)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(equals - variable), variable);
    if (strncmp(name, "TPROF_", 6) != 0) {
        if (strcmp(name, "ENABLE_PYTORCH_EXECUTION_TRACE") == 0 && strcmp(equals + 1, "1") == 0)
            tp_error_set(next_line(report->note, &report->notes), name, NULL,
                         "this build does not write execution traces yet; the rest goes on");
        return;
    }
    for (size_t i = 0; i < TP_COUNT(table); i++) {
        if (strcmp(table[i].name, name) != 0)
            continue;
        if (table[i].kind == KIND_later) {
            if (strcmp(equals + 1, "0") != 0)
                tp_error_set(next_line(report->note, &report->notes), name, NULL,
                             "this build does not have %s yet; the rest goes on", table[i].accepted);
            return;
        }
        struct tp_error error = {0};
        if (!apply(settings, &table[i], equals + 1, &error)) {
            tp_error_set(&error, name, table[i].accepted, "\"%s\"", equals + 1);
            *next_line(report->error, &report->errors) = error;
        }
        return;
    }
    note_unknown(name, next_line(report->note, &report->notes));
}

int tp_settings_load(struct tp_settings *ret_settings, char *const *environment, struct tp_settings_report *report)
{
    *ret_settings = (struct tp_settings){
        .schedule = {.wait = 1, .warmup = 1, .active = 3, .repeat = 1}, .post_processing_timeout_s = -1};
    ret_settings->activities.groups = 1u << TP_ACTIVITY_CPU;
    ret_settings->activities.types[TP_ACTIVITY_CPU] = UINT32_MAX;
    for (size_t i = 0; i < TP_COUNT(table); i++)
        if (table[i].preset)
            apply(ret_settings, &table[i], table[i].preset, NULL);
    for (char *const *variable = environment; *variable; variable++)
        read_variable(ret_settings, *variable, report);
    return report->errors ? -EINVAL : 0;
}
