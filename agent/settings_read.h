/*
 * settings_read.h: how one value is read; between settings.c, settings_lists.c and settings_json.c alone.
 *
 * A reader gets a text, the same whether it comes from the environment or from a file, and writes the row's field,
 * which is NULL for a setting that has no effect yet: then it only checks. false: the value is not accepted; unless
 * the reader said more by tp_refuse, the line says what is accepted.
 */
#ifndef TP_SETTINGS_READ_H
#define TP_SETTINGS_READ_H

#include "settings.h"

struct tp_reading {
    struct tp_settings *settings;
    struct tp_settings_report *report;
    struct tp_arena *arena;
    unsigned row; /* TP_SETTING_... */
    /* Of a value from a file. */
    const char *file;
    unsigned line, column;
};

typedef bool tp_reader(struct tp_reading *reading, const char *value, void *field);

/* settings_lists.c */
tp_reader tp_read_activities, tp_read_outputs, tp_read_group_by, tp_read_metadata, tp_read_sort_key;
/* settings_json.c */
tp_reader tp_read_experimental, tp_read_json_object;

/* An error or a note on the value that is being read. tp_refuse returns false. accepted NULL: the row's. */
bool tp_refuse(struct tp_reading *reading, const char *accepted, const char *format, ...) TP_PRINTF(3, 4);
void tp_note(struct tp_reading *reading, const char *format, ...) TP_PRINTF(2, 3);

/* Which forms of JSON a setting takes in a file. Texts always. */
enum {
    TP_TAKES_BOOLEAN = 1, /* as 0 and 1 */
    TP_TAKES_NUMBER = 2,
    TP_TAKES_LIST = 4,    /* of texts, as one text with commas */
    TP_TAKES_PAIRS = 8,   /* an object, as key=value,... */
    TP_TAKES_OBJECT = 16, /* an object, as it stands */
};
unsigned tp_setting_takes(unsigned row);

/* The row whose key this is in a file; TP_SETTINGS_COUNT: none. */
unsigned tp_setting_by_key(const char *key, size_t bytes);
/* A line on a name that is not known; file NULL: a variable. */
void tp_note_unknown(struct tp_reading *reading, const char *name);

/* What a file of this text sets. A part of tp_settings_read_file, for the fuzzer. path is for messages. */
int tp_settings_read_text(const char *text, size_t bytes, const char *path, struct tp_arena *arena,
                          struct tp_settings_report *report, struct tp_settings_entry *entries);

#endif
