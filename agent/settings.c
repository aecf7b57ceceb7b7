#include "settings.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nearest.h"
#include "settings_read.h"

#define NAME_MAX_BYTES 64

static void describe_bounds(unsigned row, char *text, size_t size);
static long long least(unsigned row), most(unsigned row);
static const char *accepted(unsigned row);

static bool read_number(unsigned row, const char *value, long long *ret_number)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    /* strtoll passes over blanks and a plus sign; a number is digits alone, with a minus sign at most. */
    if (end == value || *end || errno || strspn(value, "-0123456789") != strlen(value) || number < least(row) ||
        number > most(row))
        return false;
    *ret_number = number;
    return true;
}

static bool read_flag(struct tp_reading *reading, const char *value, void *field)
{
    (void)reading;
    if ((value[0] != '0' && value[0] != '1') || value[1])
        return false;
    if (field)
        *(bool *)field = value[0] == '1';
    return true;
}

static bool read_exactly_one(struct tp_reading *reading, const char *value, void *field)
{
    (void)reading;
    if (field)
        *(bool *)field = strcmp(value, "1") == 0;
    return true;
}

static bool read_integer(struct tp_reading *reading, const char *value, void *field)
{
    long long number;
    if (!read_number(reading->row, value, &number))
        return false;
    *(int *)field = (int)number;
    return true;
}

static bool read_integer64(struct tp_reading *reading, const char *value, void *field)
{
    long long number;
    if (!read_number(reading->row, value, &number))
        return false;
    *(int64_t *)field = number;
    return true;
}

static bool read_megabytes(struct tp_reading *reading, const char *value, void *field)
{
    long long number;
    if (!read_number(reading->row, value, &number))
        return false;
    *(uint64_t *)field = (uint64_t)number << 20;
    return true;
}

static bool read_seconds(struct tp_reading *reading, const char *value, void *field)
{
    (void)reading;
    char *end;
    double seconds = strtod(value, &end);
    if (strspn(value, "0123456789.eE+-") != strlen(value) || *end || end == value || !isfinite(seconds) || seconds < 0)
        return false;
    if (field)
        *(double *)field = seconds;
    return true;
}

static bool read_text(struct tp_reading *reading, const char *value, void *field)
{
    (void)reading;
    if (field)
        *(const char **)field = value;
    return true;
}

/* The place of the value among the row's words gives the value of the enum. */
static bool read_choice(struct tp_reading *reading, const char *value, void *field)
{
    int place = 0;
    for (const char *word = accepted(reading->row); *word; place++) {
        size_t length = strcspn(word, "|");
        if (strlen(value) == length && memcmp(word, value, length) == 0) {
            if (field)
                memcpy(field, &place, sizeof place);
            return true;
        }
        word += length + (word[length] == '|');
    }
    return false;
}

/* A wrong escape is told here, and not when the first file is to be written. */
static bool read_pattern(struct tp_reading *reading, const char *value, void *field)
{
    for (const char *escape = strchr(value, '%'); escape; escape = strchr(escape + 2, '%'))
        if (!escape[1] || !strchr("hprtsc%", escape[1]))
            return tp_refuse(reading, NULL, "\"%s\": %%%.1s is not an escape", value, escape + 1);
    return read_text(reading, value, field);
}

static bool read_schedule(struct tp_reading *reading, const char *value, void *field)
{
    struct tp_error error = {0};
    if (tp_schedule_parse(value, field, &error) < 0)
        return tp_refuse(reading, error.accepted, "%s", error.what);
    reading->settings->schedule_set = true;
    return true;
}

static bool read_step(struct tp_reading *reading, const char *value, void *field)
{
    struct tp_error error = {0};
    struct tp_step_rule rule;
    if (tp_step_rule_parse(value, &rule, &error) < 0)
        return tp_refuse(reading, error.accepted, "%s", error.what);
    if (rule.kind == TP_STEP_PYTHON) {
        tp_note(reading, "steps that a Python function ends are not in this build yet; auto is used");
        return true;
    }
    *(struct tp_step_rule *)field = rule;
    return true;
}

static bool read_trace_id(struct tp_reading *reading, const char *value, void *field)
{
    if (strncmp(value, "exec:", 5) != 0)
        return read_pattern(reading, value, field);
    if (!value[5])
        return false;
    tp_note(reading, "exec: is not in this build yet; trace_id is random");
    return true;
}

static bool read_device(struct tp_reading *reading, const char *value, void *field)
{
    size_t letters = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const char *number = value + letters + 1;
    if (letters == 0 || (value[letters] && (value[letters] != ':' || !*number || number[strspn(number, "0123456789")])))
        return false;
    return read_text(reading, value, field);
}

#define read_activities tp_read_activities
#define read_outputs tp_read_outputs
#define read_group_by tp_read_group_by
#define read_metadata tp_read_metadata
#define read_sort_key tp_read_sort_key
#define read_experimental tp_read_experimental
#define read_json_object tp_read_json_object

#define TAKES_flag TP_TAKES_BOOLEAN | TP_TAKES_NUMBER
#define TAKES_exactly_one TP_TAKES_BOOLEAN | TP_TAKES_NUMBER
#define TAKES_integer TP_TAKES_NUMBER
#define TAKES_integer64 TP_TAKES_NUMBER
#define TAKES_megabytes TP_TAKES_NUMBER
#define TAKES_seconds TP_TAKES_NUMBER
#define TAKES_text 0
#define TAKES_choice 0
#define TAKES_pattern 0
#define TAKES_schedule TP_TAKES_PAIRS
#define TAKES_step 0
#define TAKES_trace_id 0
#define TAKES_device 0
#define TAKES_activities TP_TAKES_LIST
#define TAKES_outputs TP_TAKES_LIST
#define TAKES_group_by TP_TAKES_LIST
#define TAKES_metadata TP_TAKES_PAIRS
#define TAKES_sort_key 0
#define TAKES_experimental TP_TAKES_OBJECT
#define TAKES_json_object TP_TAKES_OBJECT

struct row {
    struct tp_setting shown;
    tp_reader *read;
    size_t offset;
    long long least, most;
    const char *accepted;
    unsigned takes;
};

#define VALUE(text) text, NULL
#define UNSET(text) NULL, text
#define SETTING(name, kind, field, least, most, preset, accepted, help) \
    SETTING_(name, kind, field, least, most, preset, accepted, help)
#define SETTING_(name, kind, field, least, most, preset, unset, accepted, help) \
    {{#name, preset, unset, NULL, help}, read_##kind, offsetof(struct tp_settings, field), least, most, accepted, \
     TAKES_##kind},
#define LATER(name, kind, least, most, preset, accepted, what, help) \
    LATER_(name, kind, least, most, preset, accepted, what, help)
#define LATER_(name, kind, least, most, preset, unset, accepted, what, help) \
    {{#name, preset, unset, what, help}, read_##kind, 0, least, most, accepted, TAKES_##kind},

static const struct row rows[TP_SETTINGS_COUNT] = {
#include "settings.def"
};
#undef SETTING
#undef LATER

static long long least(unsigned row)
{
    return rows[row].least;
}

static long long most(unsigned row)
{
    return rows[row].most;
}

static const char *accepted(unsigned row)
{
    return rows[row].accepted;
}

unsigned tp_setting_takes(unsigned row)
{
    return rows[row].takes;
}

const struct tp_setting *tp_setting(unsigned index)
{
    return &rows[index].shown;
}

bool tp_setting_words(unsigned index, char *text, size_t size)
{
    tp_reader *read = rows[index].read;
    if (read != read_flag && read != read_choice)
        return false;
    snprintf(text, size, "%s", read == read_flag ? "0 1" : rows[index].accepted);
    for (char *c = text; *c; c++)
        if (*c == '|')
            *c = ' ';
    return true;
}

void tp_setting_accepted(unsigned index, char *text, size_t size)
{
    if (!rows[index].accepted) {
        describe_bounds(index, text, size);
        return;
    }
    size_t used = 0;
    for (const char *c = rows[index].accepted; *c && used + 3 < size; c++) {
        text[used++] = *c == '|' ? ',' : *c;
        if (*c == '|')
            text[used++] = ' ';
    }
    text[used] = '\0';
}

static void describe_bounds(unsigned row, char *text, size_t size)
{
    if (rows[row].read == read_flag)
        snprintf(text, size, "0 or 1");
    else
        snprintf(text, size, "%lld to %lld", least(row), most(row));
}

static struct tp_error *next_line(struct tp_error *lines, unsigned *count)
{
    return (*count)++ < TP_SETTINGS_MAX_LINES ? &lines[*count - 1] : NULL;
}

/* "gzip_level" of TPROF_GZIP_LEVEL: its key in a file. */
static const char *key_of(unsigned row)
{
    const char *name = rows[row].shown.name;
    return strncmp(name, "TPROF_", 6) == 0 ? name + 6 : name;
}

static void lower(char *text)
{
    for (; *text; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
}

static void set_line(struct tp_error *line, const struct tp_reading *reading, const char *accepted_text,
                     const char *format, va_list arguments)
{
    char what[sizeof line->what], key[NAME_MAX_BYTES] = "";
    vsnprintf(what, sizeof what, format, arguments);
    if (!reading->file) {
        tp_error_set(line, rows[reading->row].shown.name, accepted_text, "%s", what);
        return;
    }
    size_t length = strlen(reading->file), shown = 120; /* of a long path the end tells more */
    if (reading->row < TP_SETTINGS_COUNT)
        snprintf(key, sizeof key, "%s: ", key_of(reading->row));
    lower(key);
    char place[40] = "";
    if (reading->line)
        snprintf(place, sizeof place, ":%u:%u", reading->line, reading->column);
    tp_error_set(line, "TPROF_CONFIG", accepted_text, "%s%s%s: %s%s", length > shown ? "..." : "",
                 reading->file + (length > shown ? length - shown : 0), place, key, what);
}

bool tp_refuse(struct tp_reading *reading, const char *accepted_text, const char *format, ...)
{
    char text[sizeof ((struct tp_error *)0)->accepted] = "";
    if (!accepted_text && reading->row < TP_SETTINGS_COUNT)
        tp_setting_accepted(reading->row, text, sizeof text);
    va_list arguments;
    va_start(arguments, format);
    set_line(next_line(reading->report->error, &reading->report->errors), reading, accepted_text ? accepted_text : text,
             format, arguments);
    va_end(arguments);
    return false;
}

void tp_note(struct tp_reading *reading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_line(next_line(reading->report->note, &reading->report->notes), reading, NULL, format, arguments);
    va_end(arguments);
}

void tp_note_unknown(struct tp_reading *reading, const char *name)
{
    struct tp_nearest nearest;
    const char *word = strncasecmp(name, "TPROF_", 6) == 0 && !reading->file ? name + 6 : name;
    tp_nearest_init(&nearest, word);
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++)
        tp_nearest_offer(&nearest, key_of(i));
    char meant[NAME_MAX_BYTES + 32] = "";
    if (nearest.found) {
        char found[NAME_MAX_BYTES];
        bool whole = reading->file || strncmp(nearest.found, "ENABLE_", 7) == 0;
        snprintf(found, sizeof found, "%s%s", whole ? "" : "TPROF_", nearest.found);
        if (reading->file)
            lower(found);
        snprintf(meant, sizeof meant, "; is %s meant?", found);
    }
    reading->row = TP_SETTINGS_COUNT;
    if (reading->file)
        tp_note(reading, "%s is not known%s", name, meant);
    else
        tp_error_set(next_line(reading->report->note, &reading->report->notes), name, NULL, "is not known%s", meant);
}

unsigned tp_setting_by_key(const char *key, size_t bytes)
{
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char own[NAME_MAX_BYTES];
        snprintf(own, sizeof own, "%s", key_of(i));
        lower(own);
        if (strlen(own) == bytes && memcmp(own, key, bytes) == 0)
            return i;
    }
    return TP_SETTINGS_COUNT;
}

static void read_value(struct tp_reading *reading, const char *value)
{
    const struct row *row = &rows[reading->row];
    unsigned errors = reading->report->errors;
    void *field = row->shown.later ? NULL : (char *)reading->settings + row->offset;
    if (!row->read(reading, value, field)) {
        if (reading->report->errors == errors)
            tp_refuse(reading, NULL, "\"%s\"", value);
        return;
    }
    bool same = row->shown.preset && strcmp(row->shown.preset, value) == 0;
    if (row->read == read_exactly_one)
        same = strcmp(value, "1") != 0;
    if (row->shown.later && !same)
        tp_note(reading, "%s not in this build yet; the rest goes on", row->shown.later);
}

/* The values of the environment, by row; NULL: unset. What is not known is noted. */
static void collect(char *const *environment, const char **values, struct tp_reading *reading)
{
    for (char *const *variable = environment; *variable; variable++) {
        const char *equals = strchr(*variable, '=');
        if (!equals || !equals[1])
            continue;
        size_t length = (size_t)(equals - *variable);
        unsigned row = 0;
        while (row < TP_SETTINGS_COUNT &&
               (strlen(rows[row].shown.name) != length || memcmp(rows[row].shown.name, *variable, length) != 0))
            row++;
        if (row < TP_SETTINGS_COUNT) {
            if (!values[row])
                values[row] = equals + 1;
        } else if (reading && strncmp(*variable, "TPROF_", 6) == 0) {
            char name[sizeof ((struct tp_error *)0)->where];
            snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), *variable);
            tp_note_unknown(reading, name);
        }
    }
}

/* What torch refuses together, and what two settings ask for. */
static void reconcile(struct tp_settings *settings, struct tp_reading *reading, bool with_stack, bool outputs_given)
{
    reading->row = TP_SETTING_TPROF_EXPERIMENTAL_CONFIG;
    reading->file = NULL;
    if (settings->experimental_config.trace_only && with_stack) {
        tp_note(reading, "trace_only=True is incompatible with with_stack=True (stack traces require event "
                         "post-processing). Disabling trace_only.");
        settings->experimental_config.trace_only = false;
    }
    uint32_t refused = settings->outputs & (1u << TP_OUTPUT_TABLE | 1u << TP_OUTPUT_EVENTS);
    if (settings->experimental_config.trace_only && refused) {
        settings->outputs &= ~refused;
        if (!settings->outputs)
            settings->outputs = 1u << TP_OUTPUT_TENSORBOARD;
        if (outputs_given)
            tp_note(reading, "events() is not available when trace_only=True in ExperimentalConfig; the trace is "
                             "written without %s",
                    refused & (refused - 1) ? "table and events" : refused & 1u << TP_OUTPUT_TABLE ? "table" : "events");
    }
    if (settings->execution_trace)
        settings->outputs |= 1u << TP_OUTPUT_EXECUTION_TRACE;
}

static void set_defaults(struct tp_settings *settings, struct tp_reading *reading)
{
    *settings = (struct tp_settings){
        .schedule = {.wait = 1, .warmup = 1, .active = 3, .repeat = 1},
        .post_processing_timeout_s = -1,
        .experimental_config = {.profile_all_threads = true},
    };
    struct tp_settings_report none = {0};
    struct tp_reading defaults = *reading;
    defaults.report = &none;
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        defaults.row = i;
        if (rows[i].shown.preset && !rows[i].shown.later && i != TP_SETTING_TPROF_EXPERIMENTAL_CONFIG)
            rows[i].read(&defaults, rows[i].shown.preset, (char *)settings + rows[i].offset);
    }
    settings->activities.groups = 1u << TP_ACTIVITY_CPU;
    settings->activities.types[TP_ACTIVITY_CPU] = UINT32_MAX;
}

int tp_settings_load(struct tp_settings *ret_settings, char *const *environment, struct tp_arena *arena,
                     struct tp_settings_report *report)
{
    struct tp_reading reading = {.settings = ret_settings, .report = report, .arena = arena};
    const char *nowhere[TP_SETTINGS_COUNT] = {0};
    const char **values = tp_arena_alloc(arena, sizeof nowhere);
    bool kept = values != NULL;
    values = kept ? memset(values, 0, sizeof nowhere) : nowhere;
    struct tp_settings_entry entries[TP_SETTINGS_COUNT] = {{0}};
    set_defaults(ret_settings, &reading);
    collect(environment, values, &reading);
    const char *path = values[TP_SETTING_TPROF_CONFIG];
    if (path)
        tp_settings_read_file(path, arena, report, entries);
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        const char *value = values[i] ? values[i] : entries[i].value;
        reading.row = i;
        reading.file = values[i] ? NULL : path;
        reading.line = entries[i].line;
        reading.column = entries[i].column;
        if (value && *value)
            read_value(&reading, value);
        values[i] = value && *value ? value : NULL;
    }
    ret_settings->given = kept ? values : NULL;
    const char *with_stack = values[TP_SETTING_TPROF_WITH_STACK];
    reconcile(ret_settings, &reading, with_stack && strcmp(with_stack, "1") == 0,
              values[TP_SETTING_TPROF_ON_TRACE_READY] != NULL);
    return report->errors ? -EINVAL : 0;
}
