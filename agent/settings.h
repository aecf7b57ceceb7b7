/*
 * settings.h: every TPROF_ variable and its JSON twin, read once, const after.
 *
 * settings.def has one row per setting: name, type, bounds, default, help. The parser, the nearest-name hint, the
 * options of `tprof run`, the pages, the completions and docs/settings.md all come from it. Empty counts as unset.
 * The environment wins over the file of TPROF_CONFIG.
 *
 * Threads: load is called once, before any thread of ours exists; the result is read by all.
 */
#ifndef TP_SETTINGS_H
#define TP_SETTINGS_H

#include "arena.h"
#include "base.h"
#include "error.h"
#include "log.h"
#include "schedule.h"
#include "steps.h"

/* torch.profiler.ProfilerActivity; bits of tp_activities.groups. */
enum tp_activity {
    TP_ACTIVITY_CPU,
    TP_ACTIVITY_CUDA,
    TP_ACTIVITY_XPU,
    TP_ACTIVITY_MTIA,
    TP_ACTIVITY_HPU,
    TP_ACTIVITY_PRIVATEUSE1,
    TP_ACTIVITY_COUNT,
};

/* libkineto::ActivityType by torch's names (torch/profiler); bits of tp_activities.types[group]. */
enum tp_activity_type {
    TP_TYPE_CPU_OP,
    TP_TYPE_USER_ANNOTATION,
    TP_TYPE_GPU_USER_ANNOTATION,
    TP_TYPE_GPU_MEMCPY,
    TP_TYPE_GPU_MEMSET,
    TP_TYPE_CONCURRENT_KERNEL,
    TP_TYPE_EXTERNAL_CORRELATION,
    TP_TYPE_CUDA_RUNTIME,
    TP_TYPE_CUDA_DRIVER,
    TP_TYPE_CPU_INSTANT_EVENT,
    TP_TYPE_PYTHON_FUNCTION,
    TP_TYPE_OVERHEAD,
    TP_TYPE_XPU_RUNTIME,
    TP_TYPE_XPU_DRIVER,
    TP_TYPE_PRIVATEUSE1_RUNTIME,
    TP_TYPE_PRIVATEUSE1_DRIVER,
    TP_TYPE_MTIA_RUNTIME,
    TP_TYPE_MTIA_CCP_EVENTS,
    TP_TYPE_MTIA_INSIGHT,
    TP_TYPE_MTIA_COUNTERS,
    TP_TYPE_HPU_OP,
    TP_TYPE_COUNT,
};

struct tp_activities {
    bool set;                           /* else: all that are there */
    uint32_t groups;                    /* 1 << enum tp_activity */
    uint32_t types[TP_ACTIVITY_COUNT];  /* 1 << enum tp_activity_type; all of the group's where no filter was given */
    const char *privateuse1;            /* the backend's registered name, or NULL */
};

/* Outputs of TPROF_ON_TRACE_READY; bits of tp_settings.outputs. */
enum tp_output {
    TP_OUTPUT_TENSORBOARD,
    TP_OUTPUT_CHROME,
    TP_OUTPUT_TABLE,
    TP_OUTPUT_STACKS,
    TP_OUTPUT_MEMORY_TIMELINE_HTML,
    TP_OUTPUT_MEMORY_TIMELINE_JSON,
    TP_OUTPUT_MEMORY_TIMELINE_RAW,
    TP_OUTPUT_MEMORY_SNAPSHOT,
    TP_OUTPUT_EXECUTION_TRACE,
    TP_OUTPUT_EVENTS,
    TP_OUTPUT_REPORT,
    TP_OUTPUT_EXEC,
    TP_OUTPUT_COUNT,
};

enum tp_children { TP_CHILDREN_AUTO, TP_CHILDREN_ALL, TP_CHILDREN_NONE };
enum tp_hook_way { TP_HOOK_AUTO, TP_HOOK_INTERPOSE, TP_HOOK_CALLBACK };
enum tp_heap_way { TP_HEAP_OFF, TP_HEAP_COUNT, TP_HEAP_STACKS };

/* The fields of torch._C._profiler._ExperimentalConfig (PyTorch 2.13) that change what this build does. */
struct tp_experimental_config {
    bool trace_only;
    bool profile_all_threads;
    bool capture_overload_names;
};

struct tp_settings {
    const char *const *given; /* by row of settings.def: the value as the user gave it, or NULL */
    bool enabled;
    const char *config;
    bool strict;
    struct tp_activities activities;
    struct tp_schedule schedule;
    bool schedule_set; /* false: the unset schedule of the README, recording from step 0 */
    struct tp_step_rule step;
    uint32_t outputs;          /* 1 << enum tp_output */
    const char *exec_commands; /* of `exec:COMMAND`, one a line, or NULL */
    const char *dir;           /* as given, escapes unexpanded */
    const char *spool_dir;     /* NULL: chosen */
    enum tp_children children;
    const char *worker_name;   /* as given; NULL: default */
    bool use_gzip;
    int gzip_level;
    bool use_python_export;
    bool record_shapes, profile_memory, with_stack, with_flops, with_modules, acc_events;
    struct tp_experimental_config experimental_config;
    const char *sort_by; /* NULL: default */
    int64_t row_limit;
    const char *group_by;
    const char *metadata;      /* key=value,... as given, checked; or NULL */
    const char *metadata_json; /* a JSON object as given, checked; or NULL */
    const char *trace_id;      /* as given; NULL: a random UUID */
    double post_processing_timeout_s; /* negative: none */
    uint64_t buffer_bytes;
    enum tp_hook_way hook;
    enum tp_heap_way heap;
    enum tp_log_level log;
    bool execution_trace; /* ENABLE_PYTORCH_EXECUTION_TRACE */
    bool execution_trace_extras;
};

/* What load has to say. errors: bad values, after which the settings must not be used. notes: an unknown variable with
 * the nearest known one, a setting whose feature this build does not have yet. The counts go on where the lines end. */
#define TP_SETTINGS_MAX_LINES 24
struct tp_settings_report {
    unsigned errors, notes;
    struct tp_error error[TP_SETTINGS_MAX_LINES];
    struct tp_error note[TP_SETTINGS_MAX_LINES];
};

/*
 * Reads the variables of environ-style strings ("NAME=value", NULL at the end) and the JSON file that they name.
 * Texts of the result live in the arena or in the strings. Of a variable that is there twice the first counts, as for
 * getenv(). Returns 0, or -EINVAL when report->errors > 0. The report is zeroed by the caller.
 */
int tp_settings_load(struct tp_settings *ret_settings, char *const *environment, struct tp_arena *arena,
                     struct tp_settings_report *report);

/* True if these variables, or the file that they name, ask that a bad setting ends the process. Reads the file only. */
bool tp_settings_strict(char *const *environment);

/* What a JSON file sets, as variables would: for `tprof run`, which hands them over. In the order of settings.def. */
struct tp_settings_entry {
    const char *name, *value; /* of the variable; NULL: not in the file */
    unsigned line, column;    /* of the key, from 1 */
};

/* Fills entries[TP_SETTINGS_COUNT]; what is wrong with the file goes into the report. 0 or -EINVAL. */
int tp_settings_read_file(const char *path, struct tp_arena *arena, struct tp_settings_report *report,
                          struct tp_settings_entry *entries);

/* One row of settings.def, for people: help, pages, completions. */
struct tp_setting {
    const char *name;     /* of the variable */
    const char *preset;   /* the default, as a value; NULL: see unset */
    const char *unset;    /* what happens where it is unset and has no default */
    const char *later;    /* what this build does not have yet ("shapes are"), or NULL */
    const char *help;
};

enum {
#define SETTING(name, ...) TP_SETTING_##name,
#define LATER(name, ...) TP_SETTING_##name,
#include "settings.def"
#undef SETTING
#undef LATER
    TP_SETTINGS_COUNT,
};

const struct tp_setting *tp_setting(unsigned index);
void tp_setting_accepted(unsigned index, char *text, size_t size); /* in words: "1 to 9" */
/* For completions: the words that it may be ("0 1", "auto all none"); false where it is not one of a few words. */
bool tp_setting_words(unsigned index, char *text, size_t size);

/* What is done with a field of torch's _ExperimentalConfig. */
struct tp_experimental_field {
    const char *name, *type, *how, *why;
};
const struct tp_experimental_field *tp_experimental_fields(size_t *ret_count);

/* Opens libjansson at run time unless the command, which links it, gave its own table. */
struct tp_jansson;
extern const struct tp_jansson *tp_settings_jansson;

#endif
