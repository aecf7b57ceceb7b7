/* Every setting from the environment: unset, empty, good, bad; what is said of it. The file: check_settings_file.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/nearest.h"
#include "../../agent/settings.h"
#include "../../output/table.h"
#include "suites.h"

static struct tp_settings settings;
static struct tp_settings_report report;
static struct tp_arena arena;

static int load(const char *const *variables)
{
    report = (struct tp_settings_report){0};
    memset(&settings, 0, sizeof settings);
    return tp_settings_load(&settings, (char *const *)variables, &arena, &report);
}

static int load_one(const char *name, const char *value)
{
    static char variable[4096];
    snprintf(variable, sizeof variable, "%s=%s", name, value);
    return load((const char *const[]){variable, NULL});
}

static const char *line(const struct tp_error *error)
{
    static char text[800];
    tp_error_line(error, text, sizeof text);
    return text;
}

static void set_up(void)
{
    tp_arena_init(&arena, 0);
}

static void tear_down(void)
{
    tp_arena_free(&arena);
}

START_TEST(unset_is_the_default)
{
    ck_assert_int_eq(load((const char *const[]){NULL}), 0);
    ck_assert_uint_eq(report.errors + report.notes, 0);
    ck_assert(settings.enabled && !settings.strict && !settings.activities.set && !settings.schedule_set);
    ck_assert_uint_eq(settings.activities.groups, 1u << TP_ACTIVITY_CPU);
    ck_assert_uint_eq(settings.schedule.wait, 1);
    ck_assert_uint_eq(settings.schedule.active, 3);
    ck_assert_int_eq(settings.step.kind, TP_STEP_AUTO);
    ck_assert_uint_eq(settings.outputs, 1u << TP_OUTPUT_TENSORBOARD | 1u << TP_OUTPUT_TABLE);
    ck_assert_str_eq(settings.dir, "./tprof");
    ck_assert_ptr_null(settings.spool_dir);
    ck_assert_int_eq(settings.children, TP_CHILDREN_AUTO);
    ck_assert_ptr_null(settings.worker_name);
    ck_assert(settings.use_gzip && settings.gzip_level == 1 && !settings.use_python_export);
    ck_assert(settings.experimental_config.profile_all_threads && !settings.experimental_config.trace_only);
    ck_assert_ptr_null(settings.sort_by);
    ck_assert_int_eq(settings.row_limit, 20);
    ck_assert(settings.post_processing_timeout_s < 0);
    ck_assert_uint_eq(settings.buffer_bytes, 256u << 20);
    ck_assert_int_eq(settings.hook, TP_HOOK_AUTO);
    ck_assert_int_eq(settings.log, TP_LOG_WARN);
}
END_TEST

/* _i: each setting. */
START_TEST(empty_is_unset)
{
    load((const char *const[]){NULL});
    struct tp_settings unset;
    memcpy(&unset, &settings, sizeof unset);
    ck_assert_int_eq(load_one(tp_setting((unsigned)_i)->name, ""), 0);
    ck_assert_ptr_null(settings.given[_i]);
    settings.given = unset.given; /* each load has its own array */
    ck_assert_mem_eq(&settings, &unset, sizeof settings);
    ck_assert_uint_eq(report.notes, 0);
}
END_TEST

/* What is said of a default that is given must be nothing: a script that spells all of them out is a good one. */
START_TEST(default_is_accepted_in_silence)
{
    const struct tp_setting *setting = tp_setting((unsigned)_i);
    if (setting->preset) {
        ck_assert_int_eq(load_one(setting->name, setting->preset), 0);
        ck_assert_uint_eq(report.notes, 0);
    }
    ck_assert_int_ne(setting->preset != NULL, setting->unset != NULL);
}
END_TEST

static const struct {
    const char *name, *value, *note; /* what the note ends with, or NULL */
} good[] = {
    {"TPROF_ENABLED", "0", NULL},
    {"TPROF_STRICT", "1", NULL},
    {"TPROF_ACTIVITIES", "cpu", NULL},
    {"TPROF_ACTIVITIES", "CPU:[CPU_OP , user_annotation]", NULL},
    {"TPROF_ACTIVITIES", "cpu, cuda:[gpu_memcpy,cuda_runtime]", "cuda is not in this build yet; the rest goes on"},
    {"TPROF_ACTIVITIES", "privateuse1:[],cpu:[]", "privateuse1 is not in this build yet; the rest goes on"},
    {"TPROF_SCHEDULE", "always", NULL},
    {"TPROF_SCHEDULE", "wait=2,warmup=0,active=1", NULL},
    {"TPROF_STEP", "range:epoch", NULL},
    {"TPROF_STEP", "every:250ms", NULL},
    {"TPROF_STEP", "python:a.b", "steps that a Python function ends are not in this build yet; auto is used"},
    {"TPROF_ON_TRACE_READY", "none", NULL},
    {"TPROF_ON_TRACE_READY", "chrome , table", NULL},
    {"TPROF_ON_TRACE_READY", "execution_trace", NULL},
    {"TPROF_ON_TRACE_READY", "memory_timeline:raw", "memory_timeline:raw is not in this build yet; the rest goes on"},
    {"TPROF_ON_TRACE_READY", "table,exec:cp a,b c", "exec is not in this build yet; the rest goes on"},
    {"TPROF_DIR", "/a/%h_%p%r%t%s%c%%", NULL},
    {"TPROF_SPOOL_DIR", "/tmp", NULL},
    {"TPROF_CHILDREN", "all", NULL},
    {"TPROF_WORKER_NAME", "w%r", NULL},
    {"TPROF_USE_GZIP", "0", NULL},
    {"TPROF_GZIP_LEVEL", "9", NULL},
    {"TPROF_USE_PYTHON_EXPORT", "1", NULL},
    {"TPROF_RECORD_SHAPES", "1", NULL},
    {"TPROF_PROFILE_MEMORY", "1", "allocations of tensors are not in this build yet; the rest goes on"},
    {"TPROF_WITH_STACK", "1", "Python stacks are not in this build yet; the rest goes on"},
    {"TPROF_WITH_FLOPS", "1", NULL},
    {"TPROF_WITH_MODULES", "1", "module hierarchies are not in this build yet; the rest goes on"},
    {"TPROF_ACC_EVENTS", "1", NULL},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"trace_only\": true, \"capture_overload_names\": 1}", NULL},
    {"TPROF_SORT_BY", "self_cuda_time_total", NULL},
    {"TPROF_ROW_LIMIT", "-1", NULL},
    {"TPROF_GROUP_BY", "input_shape, stack:5,overload_name", "grouping is not in this build yet; the rest goes on"},
    {"TPROF_STACKS_METRIC", "self_xpu_time_total", "exported stacks are not in this build yet; the rest goes on"},
    {"TPROF_MEMORY_DEVICE", "cuda:1", "memory timelines are not in this build yet; the rest goes on"},
    {"TPROF_METADATA", "a=b,c=d=e,f=", NULL},
    {"TPROF_METADATA_JSON", "{\"a\": [1.50, \"\\u00e4\"]}", NULL},
    {"TPROF_TRACE_ID", "job-%p", NULL},
    {"TPROF_TRACE_ID", "exec:date", "exec: is not in this build yet; trace_id is random"},
    {"TPROF_POST_PROCESSING_TIMEOUT_S", "2.5", NULL},
    {"TPROF_HEAP", "stacks", "the native heap is not in this build yet; the rest goes on"},
    {"TPROF_GRAPH_LANES", "all", "lanes of CUDA graphs are not in this build yet; the rest goes on"},
    {"TPROF_CUDA_GRAPH_ANNOTATIONS", "a.json", "annotations of CUDA graphs are not in this build yet; the rest goes "
                                               "on"},
    {"TPROF_BUFFER_MB", "8", NULL},
    {"TPROF_HOOK", "callback", NULL},
    {"TPROF_HOOK", "interpose", NULL},
    {"TPROF_CONTROL", "1", "control of a running program is not in this build yet; the rest goes on"},
    {"TPROF_PLUGINS", "/a.so:/b.so", "plug-ins are not in this build yet; the rest goes on"},
    {"TPROF_LOG", "debug", NULL},
    {"ENABLE_PYTORCH_EXECUTION_TRACE", "1", NULL},
    {"ENABLE_PYTORCH_EXECUTION_TRACE", "yes", NULL}, /* PyTorch takes all but 1 for off */
    {"ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "1", "resources of execution traces are not in this build yet; the "
                                                   "rest goes on"},
};

START_TEST(good_value)
{
    char expected[400] = "";
    ck_assert_int_eq(load_one(good[_i].name, good[_i].value), 0);
    if (good[_i].note)
        snprintf(expected, sizeof expected, "%s: %s", good[_i].name, good[_i].note);
    ck_assert_uint_eq(report.notes, good[_i].note ? 1 : 0);
    ck_assert_str_eq(report.notes ? line(&report.note[0]) : "", expected);
}
END_TEST

#define DEVICE_KEYS \
    "key, count, flops, cpu_time, cpu_time_total, self_cpu_time_total, cpu_memory_usage, self_cpu_memory_usage, or " \
    "one of the last five with device, cuda, xpu or privateuse1 in place of cpu"
#define GROUPS \
    "a list of cpu, cuda, xpu, mtia, hpu, privateuse1, each with a filter where wanted, as in cpu:[cpu_op]"
#define SCHEDULES NULL /* check_schedule.c */

static const struct {
    const char *name, *value, *what, *accepted; /* NULL: not looked at here */
} bad[] = {
    {"TPROF_ENABLED", "yes", "\"yes\"", "0 or 1"},
    {"TPROF_ENABLED", "01", "\"01\"", "0 or 1"},
    {"TPROF_ENABLED", " 1", "\" 1\"", "0 or 1"},
    {"TPROF_STRICT", "2", "\"2\"", "0 or 1"},
    {"TPROF_ACTIVITIES", "gpu", "\"gpu\" is not an activity", GROUPS},
    {"TPROF_ACTIVITIES", "cpu,", "\"\" is not an activity", GROUPS},
    {"TPROF_ACTIVITIES", "cpu,CPU", "cpu is given more than once", "each activity once"},
    {"TPROF_ACTIVITIES", "cuda", "\"cuda\" leaves nothing to observe: of these none is in this build yet",
     "cpu, with others or alone"},
    {"TPROF_ACTIVITIES", "cpu,mtia:[cpu_op]", "\"cpu_op\" is not an activity type of mtia",
     "mtia_runtime, mtia_ccp_events, mtia_insight, mtia_counters"},
    {"TPROF_ACTIVITIES", "cpu:[kernel]", "\"kernel\" is not an activity type of cpu",
     "cpu_op, user_annotation, external_correlation, cuda_runtime, cuda_driver, cpu_instant_event, python_function, "
     "xpu_runtime, xpu_driver, privateuse1_runtime, privateuse1_driver"},
    {"TPROF_ACTIVITIES", "cpu:[cpu_op,]", "\"\" is not an activity type of cpu", NULL},
    {"TPROF_ACTIVITIES", "cpu:cpu_op", "what follows \"cpu:\" is not a filter in brackets", GROUPS},
    {"TPROF_ACTIVITIES", "cpu:[cpu_op", "what follows \"cpu:\" is not a filter in brackets", GROUPS},
    {"TPROF_ACTIVITIES", "cpu:[]cuda", "what follows \"cpu:\" is not a filter in brackets", GROUPS},
    {"TPROF_SCHEDULE", "wait=1", "active must be 1 or more: no step would be recorded", SCHEDULES},
    {"TPROF_SCHEDULE", "active=1,active=2", "active is set twice in 'active=1,active=2'", SCHEDULES},
    {"TPROF_STEP", "epoch", "'epoch' is not a rule of steps", NULL},
    {"TPROF_STEP", "every:0s", "'0s' is not a time", NULL},
    {"TPROF_ON_TRACE_READY", "chrome,svg", "\"svg\" is not an output", NULL},
    {"TPROF_ON_TRACE_READY", "chrome,,table", "\"\" is not an output", NULL},
    {"TPROF_ON_TRACE_READY", "none,chrome", "\"none,chrome\": none stands alone", NULL},
    {"TPROF_ON_TRACE_READY", "exec:", "\"exec:\" is not an output", NULL},
    {"TPROF_DIR", "/a/%x", "\"/a/%x\": %x is not an escape", "a folder; %h %p %r %t %s %c %% are filled in"},
    {"TPROF_DIR", "/a/%", "\"/a/%\": % is not an escape", NULL},
    {"TPROF_CHILDREN", "some", "\"some\"", "auto, all, none"},
    {"TPROF_CHILDREN", "auto|all", "\"auto|all\"", "auto, all, none"},
    {"TPROF_WORKER_NAME", "%d", "\"%d\": %d is not an escape", "a name; %h %p %r %t %s %c %% are filled in"},
    {"TPROF_USE_GZIP", "true", "\"true\"", "0 or 1"},
    {"TPROF_GZIP_LEVEL", "0", "\"0\"", "1 to 9"},
    {"TPROF_GZIP_LEVEL", "10", "\"10\"", "1 to 9"},
    {"TPROF_GZIP_LEVEL", "6x", "\"6x\"", "1 to 9"},
    {"TPROF_GZIP_LEVEL", "+6", "\"+6\"", "1 to 9"},
    {"TPROF_GZIP_LEVEL", "99999999999999999999", "\"99999999999999999999\"", "1 to 9"},
    {"TPROF_USE_PYTHON_EXPORT", "no", "\"no\"", "0 or 1"},
    {"TPROF_RECORD_SHAPES", "x", "\"x\"", "0 or 1"},
    {"TPROF_PROFILE_MEMORY", "x", "\"x\"", "0 or 1"},
    {"TPROF_WITH_STACK", "x", "\"x\"", "0 or 1"},
    {"TPROF_WITH_FLOPS", "x", "\"x\"", "0 or 1"},
    {"TPROF_WITH_MODULES", "x", "\"x\"", "0 or 1"},
    {"TPROF_ACC_EVENTS", "x", "\"x\"", "0 or 1"},
    {"TPROF_EXPERIMENTAL_CONFIG", "[]", "is not an object", "a JSON object"},
    {"TPROF_EXPERIMENTAL_CONFIG", "{", "line 1, column 1: string or '}' expected near end of file",
     "a JSON object with the fields of torch's _ExperimentalConfig"},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"traceonly\": true}", "\"traceonly\" is not a field; is trace_only meant?",
     "a JSON object with the fields of torch's _ExperimentalConfig"},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"zzzz\": true}", "\"zzzz\" is not a field", NULL},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"trace_only\": \"yes\"}", "trace_only is a text", "true or false"},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"trace_only\": 2}", "trace_only is a number", "true or false"},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"profiler_metrics\": true}", "profiler_metrics is true", "a list of texts"},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"profiler_metrics\": [1]}", "profiler_metrics holds a number", "a list of texts"},
    {"TPROF_EXPERIMENTAL_CONFIG", "{\"custom_profiler_config\": null}", "custom_profiler_config is null", "a text"},
    {"TPROF_SORT_BY", "self_time", "\"self_time\"", DEVICE_KEYS},
    {"TPROF_ROW_LIMIT", "-2", "\"-2\"", "-1 to 2147483647"},
    {"TPROF_ROW_LIMIT", "1e3", "\"1e3\"", "-1 to 2147483647"},
    {"TPROF_GROUP_BY", "shape", "\"shape\" is not a way to group", "a list of input_shape, stack:N, overload_name"},
    {"TPROF_GROUP_BY", "stack:", "\"stack:\" is not a way to group", NULL},
    {"TPROF_GROUP_BY", "stack:5x", "\"stack:5x\" is not a way to group", NULL},
    {"TPROF_STACKS_METRIC", "count", "\"count\"",
     "self_cpu_time_total, self_cuda_time_total, self_xpu_time_total, self_privateuse1_time_total"},
    {"TPROF_MEMORY_DEVICE", "cuda:", "\"cuda:\"", "a device, as in cpu or cuda:0"},
    {"TPROF_MEMORY_DEVICE", ":0", "\":0\"", NULL},
    {"TPROF_METADATA", "a", "\"a\" is not key=value", "key=value,..."},
    {"TPROF_METADATA", "a=1,=2", "\"=2\" is not key=value", "key=value,..."},
    {"TPROF_METADATA", "a=1,", "\"\" is not key=value", "key=value,..."},
    {"TPROF_METADATA_JSON", "1", "line 1, column 1: '[' or '{' expected near '1'", "a JSON object"},
    {"TPROF_METADATA_JSON", "{\"a\": 1, \"a\": 2}", "line 1, column 12: duplicate object key near '\"a\"'", NULL},
    {"TPROF_METADATA_JSON", "{} x", "line 1, column 4: end of file expected near 'x'", NULL},
    {"TPROF_TRACE_ID", "%q", "\"%q\": %q is not an escape", NULL},
    {"TPROF_TRACE_ID", "exec:", "\"exec:\"", NULL},
    {"TPROF_POST_PROCESSING_TIMEOUT_S", "-1", "\"-1\"", "seconds, 0 or more"},
    {"TPROF_POST_PROCESSING_TIMEOUT_S", "inf", "\"inf\"", "seconds, 0 or more"},
    {"TPROF_POST_PROCESSING_TIMEOUT_S", "0x10", "\"0x10\"", "seconds, 0 or more"},
    {"TPROF_POST_PROCESSING_TIMEOUT_S", "1e999", "\"1e999\"", "seconds, 0 or more"},
    {"TPROF_HEAP", "on", "\"on\"", "off, count, stacks"},
    {"TPROF_GRAPH_LANES", "some", "\"some\"", "none, all"},
    {"TPROF_BUFFER_MB", "7", "\"7\"", "8 to 65536"},
    {"TPROF_BUFFER_MB", "65537", "\"65537\"", "8 to 65536"},
    {"TPROF_BUFFER_MB", "256MB", "\"256MB\"", "8 to 65536"},
    {"TPROF_HOOK", "both", "\"both\"", "auto, interpose, callback"},
    {"TPROF_CONTROL", "x", "\"x\"", "0 or 1"},
    {"TPROF_LOG", "WARN", "\"WARN\"", "quiet, warn, info, debug"},
};

START_TEST(bad_value)
{
    ck_assert_int_eq(load_one(bad[_i].name, bad[_i].value), -EINVAL);
    ck_assert_uint_eq(report.errors, 1);
    ck_assert_str_eq(report.error[0].where, bad[_i].name);
    ck_assert_str_eq(report.error[0].what, bad[_i].what);
    ck_assert(report.error[0].accepted[0] != '\0');
    if (bad[_i].accepted)
        ck_assert_str_eq(report.error[0].accepted, bad[_i].accepted);
}
END_TEST

/* A new row of settings.def must come with its tests. */
START_TEST(every_setting_is_tested)
{
    static const char *const any_text[] = {"TPROF_SPOOL_DIR", "TPROF_CUDA_GRAPH_ANNOTATIONS", "TPROF_PLUGINS",
                                           "ENABLE_PYTORCH_EXECUTION_TRACE", "ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS"};
    const char *name = tp_setting((unsigned)_i)->name;
    bool in_good = false, in_bad = false;
    for (size_t i = 0; i < TP_COUNT(good); i++)
        in_good |= strcmp(good[i].name, name) == 0;
    for (size_t i = 0; i < TP_COUNT(bad); i++)
        in_bad |= strcmp(bad[i].name, name) == 0;
    for (size_t i = 0; i < TP_COUNT(any_text); i++)
        in_bad |= strcmp(any_text[i], name) == 0;
    ck_assert_msg(strcmp(name, "TPROF_CONFIG") == 0 || (in_good && in_bad), "%s", name);
}
END_TEST

START_TEST(values_arrive)
{
    ck_assert_int_eq(load((const char *const[]){"TPROF_GZIP_LEVEL=9", "TPROF_ROW_LIMIT=-1", "TPROF_BUFFER_MB=65536",
                                                "TPROF_CHILDREN=none", "TPROF_LOG=debug", "TPROF_USE_GZIP=0",
                                                "TPROF_STEP=range:a b", "TPROF_ON_TRACE_READY=chrome,stacks",
                                                "TPROF_SCHEDULE=active=2", "TPROF_HOOK=interpose",
                                                "TPROF_METADATA=a=b", "TPROF_METADATA_JSON={\"x\":1}",
                                                "TPROF_ACTIVITIES=cpu:[Cpu_Op],xpu", "TPROF_WITH_STACK=1",
                                                "TPROF_SORT_BY=count", "TPROF_WORKER_NAME=w", NULL}),
                     0);
    ck_assert_int_eq(settings.gzip_level, 9);
    ck_assert_int_eq(settings.row_limit, -1);
    ck_assert_uint_eq(settings.buffer_bytes, UINT64_C(65536) << 20);
    ck_assert_int_eq(settings.children, TP_CHILDREN_NONE);
    ck_assert_int_eq(settings.log, TP_LOG_DEBUG);
    ck_assert(!settings.use_gzip);
    ck_assert_int_eq(settings.step.kind, TP_STEP_RANGE);
    ck_assert_str_eq(settings.step.name, "a b");
    ck_assert_uint_eq(settings.outputs, 1u << TP_OUTPUT_CHROME);
    ck_assert(settings.schedule_set && settings.schedule.active == 2 && settings.schedule.repeat == 0);
    ck_assert_int_eq(settings.hook, TP_HOOK_INTERPOSE);
    ck_assert_str_eq(settings.metadata, "a=b");
    ck_assert_str_eq(settings.metadata_json, "{\"x\":1}");
    ck_assert(settings.activities.set);
    ck_assert_uint_eq(settings.activities.groups, 1u << TP_ACTIVITY_CPU);
    ck_assert_uint_eq(settings.activities.types[TP_ACTIVITY_CPU], 1u << TP_TYPE_CPU_OP);
    ck_assert_uint_eq(settings.activities.types[TP_ACTIVITY_XPU], 0);
    ck_assert(!settings.with_stack); /* what this build cannot do is not claimed in the trace */
    ck_assert_str_eq(settings.sort_by, "count");
    ck_assert_str_eq(settings.worker_name, "w");
}
END_TEST

START_TEST(no_filter_is_all_of_the_group)
{
    load_one("TPROF_ACTIVITIES", "cpu");
    uint32_t types = settings.activities.types[TP_ACTIVITY_CPU];
    ck_assert(types & 1u << TP_TYPE_CPU_OP && types & 1u << TP_TYPE_USER_ANNOTATION);
    ck_assert(!(types & 1u << TP_TYPE_GPU_MEMCPY));
    load_one("TPROF_ACTIVITIES", "cpu:[ ]");
    ck_assert(settings.activities.set && settings.activities.groups == 1u << TP_ACTIVITY_CPU);
    ck_assert_uint_eq(settings.activities.types[TP_ACTIVITY_CPU], 0);
}
END_TEST

START_TEST(experimental_fields)
{
    ck_assert_int_eq(load((const char *const[]){"TPROF_EXPERIMENTAL_CONFIG={\"verbose\": true, "
                                                "\"adjust_timestamps\": true, \"profile_all_threads\": false, "
                                                "\"profiler_metrics\": [\"a\"], \"custom_profiler_config\": \"\", "
                                                "\"record_python_gc_info\": false, \"capture_overload_names\": "
                                                "true}", NULL}),
                     0);
    ck_assert_uint_eq(report.notes, 4);
    ck_assert_str_eq(line(&report.note[0]),
                     "TPROF_EXPERIMENTAL_CONFIG: verbose is not in this build yet (call stacks in the trace come "
                     "with Python stacks); the rest goes on");
    ck_assert_str_eq(line(&report.note[1]), "TPROF_EXPERIMENTAL_CONFIG: adjust_timestamps has no effect here: it is "
                                            "for Vulkan devices, whose operators have no end of their own");
    ck_assert_str_eq(line(&report.note[2]), "TPROF_EXPERIMENTAL_CONFIG: profile_all_threads cannot be switched off: "
                                            "all threads are observed, also those that the program started before");
    ck_assert_str_eq(line(&report.note[3]), "TPROF_EXPERIMENTAL_CONFIG: profiler_metrics has no effect here: "
                                            "CUPTI's range profiler; newer Kineto has dropped it");
    ck_assert(settings.experimental_config.profile_all_threads && settings.experimental_config.capture_overload_names);
    size_t count;
    tp_experimental_fields(&count);
    ck_assert_uint_eq(count, 14); /* of torch 2.13's signature */
}
END_TEST

START_TEST(trace_only_refuses_tables_and_events)
{
    static const char only[] = "TPROF_EXPERIMENTAL_CONFIG={\"trace_only\": true}";
    ck_assert_int_eq(load((const char *const[]){only, NULL}), 0);
    ck_assert_uint_eq(settings.outputs, 1u << TP_OUTPUT_TENSORBOARD);
    ck_assert_uint_eq(report.notes, 0);
    ck_assert_int_eq(load((const char *const[]){only, "TPROF_ON_TRACE_READY=chrome,table", NULL}), 0);
    ck_assert_uint_eq(settings.outputs, 1u << TP_OUTPUT_CHROME);
    static const char reason[] = "TPROF_EXPERIMENTAL_CONFIG: events() is not available when trace_only=True in "
                                 "ExperimentalConfig; the trace is written without %s";
    static const struct {
        const char *outputs, *refused;
        uint32_t left;
    } cases[] = {{"TPROF_ON_TRACE_READY=chrome,table", "table", 1u << TP_OUTPUT_CHROME},
                 {"TPROF_ON_TRACE_READY=events,tensorboard", "events", 1u << TP_OUTPUT_TENSORBOARD},
                 {"TPROF_ON_TRACE_READY=events,table", "table and events", 1u << TP_OUTPUT_TENSORBOARD}};
    for (size_t i = 0; i < TP_COUNT(cases); i++) {
        char expected[300];
        ck_assert_int_eq(load((const char *const[]){only, cases[i].outputs, NULL}), 0);
        ck_assert_uint_eq(settings.outputs, cases[i].left);
        snprintf(expected, sizeof expected, reason, cases[i].refused);
        ck_assert_str_eq(line(&report.note[0]), expected);
    }
    /* As torch: not together with stacks. */
    ck_assert_int_eq(load((const char *const[]){only, "TPROF_WITH_STACK=1", NULL}), 0);
    ck_assert(!settings.experimental_config.trace_only);
    ck_assert_uint_eq(settings.outputs, 1u << TP_OUTPUT_TENSORBOARD | 1u << TP_OUTPUT_TABLE);
    ck_assert_str_eq(line(&report.note[1]),
                     "TPROF_EXPERIMENTAL_CONFIG: trace_only=True is incompatible with with_stack=True (stack traces "
                     "require event post-processing). Disabling trace_only.");
}
END_TEST

static const struct {
    const char *name, *said;
} unknown[] = {
    {"TPROF_SCHEDUEL", "TPROF_SCHEDUEL: is not known; is TPROF_SCHEDULE meant?"},
    {"TPROF_LGO", "TPROF_LGO: is not known; is TPROF_LOG meant?"},
    {"TPROF_dir", "TPROF_dir: is not known; is TPROF_DIR meant?"},
    {"TPROF_ENABLE", "TPROF_ENABLE: is not known; is TPROF_ENABLED meant?"},
    {"TPROF_QUANTUM", "TPROF_QUANTUM: is not known"},
    {"TPROF_", "TPROF_: is not known"},
};

START_TEST(unknown_variable)
{
    ck_assert_int_eq(load_one(unknown[_i].name, "1"), 0);
    ck_assert_uint_eq(report.notes, 1);
    ck_assert_str_eq(line(&report.note[0]), unknown[_i].said);
}
END_TEST

START_TEST(others_variables_are_not_ours)
{
    ck_assert_int_eq(load((const char *const[]){"PATH=/bin", "TPROF", "=x", "MY_TPROF_DIR=x", "TPROFDIR=x", NULL}), 0);
    ck_assert_uint_eq(report.notes, 0);
}
END_TEST

START_TEST(the_first_of_two_counts)
{
    static const char *const variables[] = {"TPROF_GZIP_LEVEL=", "TPROF_GZIP_LEVEL=3", "TPROF_GZIP_LEVEL=x", NULL};
    ck_assert_int_eq(load(variables), 0);
    ck_assert_int_eq(settings.gzip_level, 3);
}
END_TEST

START_TEST(more_lines_than_there_is_room_for)
{
    char texts[64][32];
    const char *variables[65] = {0};
    for (size_t i = 0; i < TP_COUNT(texts); i++) {
        snprintf(texts[i], sizeof texts[i], "TPROF_%c%c%zu=1", (int)('A' + i % 26), (int)('Z' - i % 26), i);
        variables[i] = texts[i];
    }
    ck_assert_int_eq(load(variables), 0);
    ck_assert_uint_eq(report.notes, 64);
    ck_assert(report.note[TP_SETTINGS_MAX_LINES - 1].set);
    size_t count = 0;
    char errors[TP_SETTINGS_COUNT][64];
    const char *wrong[TP_SETTINGS_COUNT + 1] = {0};
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++)
        if (i != TP_SETTING_TPROF_CONFIG) {
            snprintf(errors[count], sizeof errors[count], "%s=%%", tp_setting(i)->name);
            wrong[count] = errors[count];
            count++;
        }
    ck_assert_int_eq(load(wrong), -EINVAL);
    ck_assert_uint_gt(report.errors, TP_SETTINGS_MAX_LINES);
    ck_assert(report.error[TP_SETTINGS_MAX_LINES - 1].set);
}
END_TEST

START_TEST(a_long_value_is_cut)
{
    static char value[8192];
    memset(value, 'x', sizeof value - 1);
    static char variable[sizeof value + 32];
    snprintf(variable, sizeof variable, "TPROF_SORT_BY=%s", value);
    ck_assert_int_eq(load((const char *const[]){variable, NULL}), -EINVAL);
    ck_assert_uint_eq(strlen(report.error[0].what), sizeof report.error[0].what - 1);
}
END_TEST

/* The list in settings_lists.c and the one that sorts must not drift apart. */
START_TEST(every_sort_key_can_sort)
{
    static const char *const forms[] = {"%s_time", "%s_time_total", "self_%s_time_total", "%s_memory_usage",
                                        "self_%s_memory_usage", "key", "count", "flops"};
    static const char *const devices[] = {"cpu", "device", "cuda", "xpu", "privateuse1"};
    for (size_t i = 0; i < TP_COUNT(forms); i++)
        for (size_t j = 0; j < TP_COUNT(devices); j++) {
            char key[64];
            snprintf(key, sizeof key, forms[i], devices[j]);
            ck_assert_int_eq(load_one("TPROF_SORT_BY", key), 0);
            ck_assert_msg(tp_table_knows_sort(key), "%s", key);
        }
}
END_TEST

START_TEST(nearest_word)
{
    static const struct {
        const char *word, *candidates[3], *found;
    } rows[] = {
        {"chekc", {"run", "check", "doctor"}, "check"},
        {"CHECK", {"run", "check", "doctor"}, "check"},
        {"docto", {"run", "check", "doctor"}, "doctor"},
        {"xyz", {"run", "check", "doctor"}, NULL},
        {"", {"run", "check", "doctor"}, NULL},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", {"run", "check", "a"}, NULL},
    };
    for (size_t i = 0; i < TP_COUNT(rows); i++) {
        struct tp_nearest nearest;
        tp_nearest_init(&nearest, rows[i].word);
        for (size_t j = 0; j < 3; j++)
            tp_nearest_offer(&nearest, rows[i].candidates[j]);
        ck_assert_pstr_eq(nearest.found, rows[i].found);
    }
}
END_TEST

Suite *settings_suite(void)
{
    Suite *suite = suite_create("settings");
    TCase *tests = tcase_create("environment");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, unset_is_the_default);
    tcase_add_loop_test(tests, empty_is_unset, 0, TP_SETTINGS_COUNT);
    tcase_add_loop_test(tests, default_is_accepted_in_silence, 0, TP_SETTINGS_COUNT);
    tcase_add_loop_test(tests, good_value, 0, TP_COUNT(good));
    tcase_add_loop_test(tests, bad_value, 0, TP_COUNT(bad));
    tcase_add_loop_test(tests, every_setting_is_tested, 0, TP_SETTINGS_COUNT);
    tcase_add_test(tests, values_arrive);
    tcase_add_test(tests, no_filter_is_all_of_the_group);
    tcase_add_test(tests, experimental_fields);
    tcase_add_test(tests, trace_only_refuses_tables_and_events);
    tcase_add_loop_test(tests, unknown_variable, 0, TP_COUNT(unknown));
    tcase_add_test(tests, others_variables_are_not_ours);
    tcase_add_test(tests, the_first_of_two_counts);
    tcase_add_test(tests, more_lines_than_there_is_room_for);
    tcase_add_test(tests, a_long_value_is_cut);
    tcase_add_test(tests, every_sort_key_can_sort);
    tcase_add_test(tests, nearest_word);
    suite_add_tcase(suite, tests);
    return suite;
}
