/*
 * Settings that are JSON: the file of TPROF_CONFIG, TPROF_EXPERIMENTAL_CONFIG, TPROF_METADATA_JSON.
 *
 * A file becomes what the environment would hold: a text a setting, read by the same readers. jansson parses and
 * checks; it does not keep where a member stands, so a scan over the text that it found valid tells line, column, and
 * the value as it is written (numbers and objects keep their digits).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json_library.h"
#include "nearest.h"
#include "settings_read.h"

#define FILE_LIMIT (1u << 20)

static const struct tp_experimental_field fields[] = {
#define FIELD(name, type, how, why) {#name, #type, #how, why},
#include "experimental.def"
#undef FIELD
};

const struct tp_experimental_field *tp_experimental_fields(size_t *ret_count)
{
    *ret_count = TP_COUNT(fields);
    return fields;
}

/* The text of the file in the arena; NULL with the error set. */
static char *read_file(const char *path, struct tp_arena *arena, size_t *ret_bytes, struct tp_reading *reading)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int failed = file < 0 || fstat(file, &status) < 0 ? errno : 0;
    char *text = NULL;
    if (failed) {
        tp_refuse(reading, "", "cannot be read: %s", strerror(failed));
    } else if (!S_ISREG(status.st_mode)) {
        tp_refuse(reading, "", "is not a file");
    } else if (status.st_size > FILE_LIMIT) {
        tp_refuse(reading, "", "is longer than 1 MiB");
    } else if (!(text = tp_arena_alloc(arena, (size_t)status.st_size + 1))) {
        tp_refuse(reading, "", "cannot be read: no memory");
    }
    size_t bytes = 0;
    while (text && bytes < (size_t)status.st_size) {
        ssize_t n = read(file, text + bytes, (size_t)status.st_size - bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            tp_refuse(reading, "", "cannot be read: %s", strerror(errno));
            text = NULL;
        }
        if (n <= 0)
            break;
        bytes += (size_t)n;
    }
    if (file >= 0)
        close(file);
    *ret_bytes = bytes;
    return text;
}

#ifdef TP_HAVE_JANSSON

/* A member of the outermost object of a valid text. */
struct member {
    const char *key, *value; /* the key without its quotes, as it is written */
    size_t key_bytes, value_bytes;
};

static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

static const char *skip_value(const char *at)
{
    for (int depth = 0;; at++) {
        if (*at == '"')
            at = skip_string(at) - 1;
        else if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        /* Behind a string, a bracket or the last digit of a number. */
        if (depth == 0 && (strchr(" \t\r\n,}]", at[1]) || at[1] == '\0'))
            return at + 1;
    }
}

/* False at the end of the object. *at begins at the opening bracket. */
static bool next_member(const char **at, struct member *ret)
{
    *at += strspn(*at, " \t\r\n,{");
    if (**at != '"')
        return false;
    const char *behind_key = skip_string(*at);
    *ret = (struct member){.key = *at + 1, .key_bytes = (size_t)(behind_key - *at - 2)};
    ret->value = behind_key + strspn(behind_key, " \t\r\n");
    ret->value += 1 + strspn(ret->value + 1, " \t\r\n"); /* behind the colon */
    *at = skip_value(ret->value);
    ret->value_bytes = (size_t)(*at - ret->value);
    return true;
}

/* The member of this key, if it is written without escapes. */
static bool find_member(const char *text, const char *key, struct member *ret)
{
    while (next_member(&text, ret))
        if (strlen(key) == ret->key_bytes && memcmp(key, ret->key, ret->key_bytes) == 0)
            return true;
    return false;
}

/* Lines and columns count from 1, columns in bytes. */
static void find_place(const char *text, const char *at, unsigned *ret_line, unsigned *ret_column)
{
    *ret_line = 1;
    const char *line = text;
    for (const char *c = text; c < at; c++)
        if (*c == '\n') {
            ++*ret_line;
            line = c + 1;
        }
    *ret_column = (unsigned)(at - line) + 1;
}

/* Parses a text that must be one object. NULL with the error set. */
static json_t *parse_object(const struct tp_jansson *jansson, const char *text, size_t bytes,
                            struct tp_reading *reading)
{
    json_error_t error;
    json_t *root = jansson->json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (root && json_is_object(root))
        return root;
    if (root) {
        jansson->json_delete(root);
        tp_refuse(reading, "a JSON object", "is not an object");
    } else if (reading->file) {
        reading->line = error.line > 0 ? (unsigned)error.line : 0;
        reading->column = error.column > 0 ? (unsigned)error.column : 0;
        tp_refuse(reading, "", "%s", error.text);
    } else {
        tp_refuse(reading, NULL, "line %d, column %d: %s", error.line, error.column, error.text);
    }
    return NULL;
}

/* Text that grows in the arena; NULL bytes: no memory. */
struct joined {
    struct tp_arena *arena;
    char *bytes;
    size_t used, room;
};

static void join(struct joined *joined, const char *text)
{
    size_t length = strlen(text);
    if (joined->used + length + 1 > joined->room) {
        size_t room = 2 * (joined->used + length + 32);
        char *bytes = tp_arena_alloc(joined->arena, room);
        if (bytes && joined->used)
            memcpy(bytes, joined->bytes, joined->used);
        joined->bytes = bytes;
        joined->room = bytes ? room : 0;
        if (!bytes)
            return;
    }
    memcpy(joined->bytes + joined->used, text, length + 1);
    joined->used += length;
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        "an object", "a list", "a text", "a number", "a number", "true", "false", "null",
    };
    return names[json_typeof(value)];
}

/* A text or a number; NULL: something else. Numbers are written as they came in. */
static const char *scalar(const struct tp_jansson *jansson, const json_t *value, char *room, size_t size)
{
    if (json_is_string(value))
        return jansson->json_string_value(value);
    if (json_is_integer(value))
        snprintf(room, size, "%" JSON_INTEGER_FORMAT, jansson->json_integer_value(value));
    else if (json_is_real(value))
        snprintf(room, size, "%.17g", jansson->json_real_value(value));
    else
        return NULL;
    return room;
}

static const char *join_list(const struct tp_jansson *jansson, const json_t *list, struct tp_reading *reading)
{
    struct joined joined = {.arena = reading->arena};
    size_t count = jansson->json_array_size(list);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = jansson->json_array_get(list, i);
        if (!json_is_string(item)) {
            tp_refuse(reading, NULL, "%s in the list is not a text", type_name(item));
            return NULL;
        }
        if (i > 0)
            join(&joined, ",");
        join(&joined, jansson->json_string_value(item));
    }
    if (count == 0 || !joined.bytes) {
        tp_refuse(reading, NULL, "the list is empty");
        return NULL;
    }
    return joined.bytes;
}

static const char *join_pairs(const struct tp_jansson *jansson, json_t *object, struct tp_reading *reading)
{
    struct joined joined = {.arena = reading->arena};
    for (void *at = jansson->json_object_iter(object); at; at = jansson->json_object_iter_next(object, at)) {
        const json_t *value = jansson->json_object_iter_value(at);
        const char *key = jansson->json_object_iter_key(at);
        char number[64];
        const char *text = scalar(jansson, value, number, sizeof number);
        if (!text) {
            tp_refuse(reading, NULL, "\"%s\" is %s", key, type_name(value));
            return NULL;
        }
        /* The list that this becomes has no way to write these. */
        if (strpbrk(key, ",=") || strchr(text, ',')) {
            tp_refuse(reading, "such text in metadata_json", "\"%s\" holds a comma or an equals sign", key);
            return NULL;
        }
        if (joined.used > 0)
            join(&joined, ",");
        join(&joined, key);
        join(&joined, "=");
        join(&joined, text);
    }
    return joined.bytes ? joined.bytes : ""; /* {}: nothing is set */
}

/* What the environment would hold. NULL with an error set; "" is unset. */
static const char *value_text(const struct tp_jansson *jansson, json_t *value, const struct member *member,
                              struct tp_reading *reading)
{
    unsigned takes = tp_setting_takes(reading->row);
    if (json_is_null(value))
        return "";
    if (json_is_string(value)) {
        const char *text = jansson->json_string_value(value);
        return tp_arena_copy(reading->arena, text, strlen(text));
    }
    if ((json_is_boolean(value) && takes & TP_TAKES_BOOLEAN))
        return json_is_true(value) ? "1" : "0";
    if ((json_is_number(value) && takes & TP_TAKES_NUMBER) || (json_is_object(value) && takes & TP_TAKES_OBJECT))
        return tp_arena_copy(reading->arena, member->value, member->value_bytes);
    if (json_is_array(value) && takes & TP_TAKES_LIST)
        return join_list(jansson, value, reading);
    if (json_is_object(value) && takes & TP_TAKES_PAIRS)
        return join_pairs(jansson, value, reading);
    tp_refuse(reading, NULL, "%s is not accepted", type_name(value));
    return NULL;
}

int tp_settings_read_text(const char *text, size_t bytes, const char *path, struct tp_arena *arena,
                          struct tp_settings_report *report, struct tp_settings_entry *entries)
{
    unsigned errors = report->errors;
    struct tp_reading reading = {.report = report, .arena = arena, .row = TP_SETTINGS_COUNT, .file = path};
    struct tp_json_library library;
    const char *missing = tp_json_library_open(&library);
    if (missing) {
        tp_refuse(&reading, "", "%s", missing);
        return -EINVAL;
    }
    const struct tp_jansson *jansson = library.functions;
    json_t *root = parse_object(jansson, text, bytes, &reading);
    for (void *at = root ? jansson->json_object_iter(root) : NULL; at; at = jansson->json_object_iter_next(root, at)) {
        const char *key = jansson->json_object_iter_key(at);
        struct member member;
        bool found = find_member(text, key, &member);
        reading.line = reading.column = 0;
        if (found)
            find_place(text, member.key - 1, &reading.line, &reading.column);
        reading.row = found ? tp_setting_by_key(member.key, member.key_bytes) : TP_SETTINGS_COUNT;
        if (reading.row == TP_SETTINGS_COUNT) {
            tp_note_unknown(&reading, key);
            continue;
        }
        if (reading.row == TP_SETTING_TPROF_CONFIG) {
            tp_refuse(&reading, "the environment names the file", "a file cannot name another one");
            continue;
        }
        const char *value = value_text(jansson, jansson->json_object_iter_value(at), &member, &reading);
        const char *name = tp_setting(reading.row)->name;
        entries[reading.row] = (struct tp_settings_entry){name, value, reading.line, reading.column};
    }
    if (root)
        jansson->json_delete(root);
    tp_json_library_close(&library);
    return report->errors > errors ? -EINVAL : 0;
}

/* True or false, 0 or 1; false: the field has another type, which was said. */
static bool read_field_flag(const struct tp_jansson *jansson, const json_t *value, struct tp_reading *reading,
                            const char *name, bool *ret_flag)
{
    json_int_t number = json_is_integer(value) ? jansson->json_integer_value(value) : -1;
    if (!json_is_boolean(value) && number != 0 && number != 1)
        return tp_refuse(reading, "true or false", "%s is %s", name, type_name(value));
    *ret_flag = json_is_true(value) || number == 1;
    return true;
}

/* True if the field asks for something, that is if it is not torch's default. */
static bool read_field(const struct tp_jansson *jansson, const json_t *value, struct tp_reading *reading,
                       const struct tp_experimental_field *field, bool *ret_asks)
{
    if (strcmp(field->type, "flag") == 0)
        return read_field_flag(jansson, value, reading, field->name, ret_asks);
    if (strcmp(field->type, "text") == 0) {
        if (!json_is_string(value))
            return tp_refuse(reading, "a text", "%s is %s", field->name, type_name(value));
        *ret_asks = jansson->json_string_value(value)[0] != '\0';
        return true;
    }
    if (!json_is_array(value))
        return tp_refuse(reading, "a list of texts", "%s is %s", field->name, type_name(value));
    *ret_asks = jansson->json_array_size(value) > 0;
    for (size_t i = 0; i < jansson->json_array_size(value); i++)
        if (!json_is_string(jansson->json_array_get(value, i)))
            return tp_refuse(reading, "a list of texts", "%s holds %s", field->name,
                             type_name(jansson->json_array_get(value, i)));
    return true;
}

static void apply_field(struct tp_reading *reading, const struct tp_experimental_field *field, bool asks,
                        struct tp_experimental_config *config)
{
    if (strcmp(field->name, "trace_only") == 0)
        config->trace_only = asks;
    else if (strcmp(field->name, "capture_overload_names") == 0)
        config->capture_overload_names = asks;
    else if (strcmp(field->how, "ALWAYS") == 0 && !asks)
        tp_note(reading, "%s cannot be switched off: %s", field->name, field->why);
    else if (strcmp(field->how, "LATER") == 0 && asks)
        tp_note(reading, "%s is not in this build yet (%s); the rest goes on", field->name, field->why);
    else if (strcmp(field->how, "REFUSED") == 0 && asks)
        tp_note(reading, "%s has no effect here: %s", field->name, field->why);
}

static bool refuse_field(struct tp_reading *reading, const char *name)
{
    struct tp_nearest nearest;
    tp_nearest_init(&nearest, name);
    for (size_t i = 0; i < TP_COUNT(fields); i++)
        tp_nearest_offer(&nearest, fields[i].name);
    return tp_refuse(reading, NULL, "\"%s\" is not a field%s%s%s", name, nearest.found ? "; is " : "",
                     nearest.found ? nearest.found : "", nearest.found ? " meant?" : "");
}

bool tp_read_experimental(struct tp_reading *reading, const char *value, void *field)
{
    struct tp_json_library library;
    const char *missing = tp_json_library_open(&library);
    if (missing) {
        tp_note(reading, "is not read: %s", missing);
        return true;
    }
    const struct tp_jansson *jansson = library.functions;
    json_t *root = parse_object(jansson, value, strlen(value), reading);
    bool good = root;
    for (void *at = root ? jansson->json_object_iter(root) : NULL; at; at = jansson->json_object_iter_next(root, at)) {
        const char *key = jansson->json_object_iter_key(at);
        size_t i = 0;
        bool asks = false;
        while (i < TP_COUNT(fields) && strcmp(fields[i].name, key) != 0)
            i++;
        if (i == TP_COUNT(fields))
            good = refuse_field(reading, key);
        else if (read_field(jansson, jansson->json_object_iter_value(at), reading, &fields[i], &asks))
            apply_field(reading, &fields[i], asks, field);
        else
            good = false;
    }
    if (root)
        jansson->json_delete(root);
    tp_json_library_close(&library);
    return good;
}

bool tp_read_json_object(struct tp_reading *reading, const char *value, void *field)
{
    struct tp_json_library library;
    const char *missing = tp_json_library_open(&library);
    if (missing) {
        tp_note(reading, "is left out: %s", missing);
        return true;
    }
    json_t *root = parse_object(library.functions, value, strlen(value), reading);
    if (root) {
        *(const char **)field = value;
        library.functions->json_delete(root);
    }
    tp_json_library_close(&library);
    return root;
}

#else

int tp_settings_read_text(const char *text, size_t bytes, const char *path, struct tp_arena *arena,
                          struct tp_settings_report *report, struct tp_settings_entry *entries)
{
    (void)text, (void)bytes, (void)entries;
    struct tp_reading reading = {.report = report, .arena = arena, .row = TP_SETTINGS_COUNT, .file = path};
    struct tp_json_library library;
    tp_refuse(&reading, "", "%s", tp_json_library_open(&library));
    return -EINVAL;
}

bool tp_read_experimental(struct tp_reading *reading, const char *value, void *field)
{
    (void)value, (void)field;
    struct tp_json_library library;
    tp_note(reading, "is not read: %s", tp_json_library_open(&library));
    return true;
}

bool tp_read_json_object(struct tp_reading *reading, const char *value, void *field)
{
    return tp_read_experimental(reading, value, field);
}

#endif

int tp_settings_read_file(const char *path, struct tp_arena *arena, struct tp_settings_report *report,
                          struct tp_settings_entry *entries)
{
    struct tp_reading reading = {.report = report, .arena = arena, .row = TP_SETTINGS_COUNT, .file = path};
    size_t bytes;
    char *text = read_file(path, arena, &bytes, &reading);
    return text ? tp_settings_read_text(text, bytes, path, arena, report, entries) : -EINVAL;
}

bool tp_settings_strict(char *const *environment)
{
    const char *values[2] = {NULL, NULL};
    static const char *const names[] = {"TPROF_STRICT=", "TPROF_CONFIG="};
    for (char *const *variable = environment; *variable; variable++)
        for (size_t i = 0; i < TP_COUNT(names); i++) {
            size_t length = strlen(names[i]);
            if (strncmp(*variable, names[i], length) == 0 && (*variable)[length] && !values[i])
                values[i] = *variable + length;
        }
    if (values[0] || !values[1])
        return values[0] && strcmp(values[0], "1") == 0;
    /* In each shell and tool of the job: jansson is opened only for a file that speaks of it. */
    struct tp_settings_report *report;
    struct tp_settings_entry entries[TP_SETTINGS_COUNT] = {{0}};
    struct tp_arena arena;
    size_t bytes;
    bool strict = false;
    tp_arena_init(&arena, 0);
    if ((report = tp_arena_alloc(&arena, sizeof *report))) {
        struct tp_reading reading = {.report = report, .arena = &arena, .row = TP_SETTINGS_COUNT, .file = values[1]};
        char *text = read_file(values[1], &arena, &bytes, &reading);
        if (text && memmem(text, bytes, "\"strict\"", 8)) {
            tp_settings_read_text(text, bytes, values[1], &arena, report, entries);
            const char *value = entries[TP_SETTING_TPROF_STRICT].value;
            strict = value && strcmp(value, "1") == 0;
        }
    }
    tp_arena_free(&arena);
    return strict;
}
