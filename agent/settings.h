/*
 * settings.h: every TPROF_ variable, read once, const after. settings.def has one row per setting: name, type, default and
 * what is accepted. Empty counts as unset.
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
    bool enabled;
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
 * the nearest known one, a setting whose feature this build does not have yet, an output that switched a recording on. */
#define TP_SETTINGS_MAX_LINES 24
struct tp_settings_report {
    unsigned errors, notes;
    struct tp_error error[TP_SETTINGS_MAX_LINES];
    struct tp_error note[TP_SETTINGS_MAX_LINES];
};

/*
 * Reads the variables of environ-style strings ("NAME=value", NULL at the end), whose texts the result points into. Returns
 * 0, or -EINVAL when report->errors > 0. The report is zeroed by the caller.
 */
int tp_settings_load(struct tp_settings *ret_settings, char *const *environment, struct tp_settings_report *report);

#endif
