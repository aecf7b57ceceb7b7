/*
 * Order and names as pytorch/kineto output_json.cpp and torch/profiler/profiler.py write them (PyTorch 2.13.0). Where
 * torch turns a backslash of a value into '/' and breaks on a quote, ours are escaped.
 *
 * The tprof object has version 1 of its form: a key may be added, a changed meaning is a new "format".
 */
#include "chrome_head.h"

#include <string.h>

#define BASE_PERIOD_NS (UINT64_C(7889238) * 1000000000)

uint64_t tp_chrome_base_ns(uint64_t realtime_ns)
{
    return realtime_ns / BASE_PERIOD_NS * BASE_PERIOD_NS;
}

/* A member of the user's metadata: key and value as they stand in the setting. */
struct member {
    const char *key, *value;
    size_t key_bytes, value_bytes;
};

/* The next key=value of a list; where it goes on, NULL at the end. */
static const char *next_pair(const char *list, struct member *ret)
{
    while (list && *list) {
        size_t length = strcspn(list, ",");
        const char *equals = memchr(list, '=', length), *after = list + length + (list[length] == ',');
        if (equals && equals > list) {
            *ret = (struct member){list, equals + 1, (size_t)(equals - list), (size_t)(list + length - equals - 1)};
            return after;
        }
        list = after;
    }
    return NULL;
}

static const char *skip_space(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

/* Behind a string of valid JSON, of which text is the opening quote. */
static const char *skip_string(const char *text)
{
    for (text++; *text && *text != '"'; text++)
        if (*text == '\\' && text[1])
            text++;
    return *text ? text + 1 : text;
}

/* Behind a value of valid JSON. */
static const char *skip_value(const char *text)
{
    int depth = 0;
    while (*text) {
        if (*text == '"') {
            text = skip_string(text);
            continue;
        }
        if (depth == 0 && strchr(",}] \t\r\n", *text))
            break;
        depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
        text++;
    }
    return text;
}

/* The next member of a valid JSON object; key without its quotes, value as it is. NULL at the end. */
static const char *next_member(const char *text, struct member *ret)
{
    text += strspn(text, " \t\r\n{,");
    if (*text != '"')
        return NULL;
    const char *key = text + 1;
    text = skip_string(text);
    size_t key_bytes = (size_t)(text - key - 1);
    const char *value = skip_space(skip_space(text) + 1);
    text = skip_value(value);
    *ret = (struct member){key, value, key_bytes, (size_t)(text - value)};
    return text;
}

static bool is_named(const struct member *member, const char *name)
{
    return member->key_bytes == strlen(name) && memcmp(member->key, name, member->key_bytes) == 0;
}

/* True if a later setting has the same key: it counts, as in torch, where each add replaces. */
static bool overridden(const struct tp_settings *settings, const struct member *member, const char *rest, bool json)
{
    struct member later;
    for (const char *at = json ? NULL : rest; (at = next_pair(at, &later));)
        if (later.key_bytes == member->key_bytes && memcmp(later.key, member->key, member->key_bytes) == 0)
            return true;
    for (const char *at = json ? rest : settings->metadata_json; at && (at = next_member(at, &later));)
        if (later.key_bytes == member->key_bytes && memcmp(later.key, member->key, member->key_bytes) == 0)
            return true;
    return false;
}

/* The keys that make the file what it is are not the user's to set. */
static bool is_reserved(const struct member *member)
{
    static const char *const names[] = {"schemaVersion",       "deviceProperties", "displayTimeUnit",
                                        "baseTimeNanoseconds", "traceEvents",      "tprof", "traceName"};
    for (size_t i = 0; i < TP_COUNT(names); i++)
        if (is_named(member, names[i]))
            return true;
    return false;
}

static void tell_reserved(const char *setting, const struct member *member)
{
    if (is_reserved(member))
        tp_log(TP_LOG_WARN, "%s: \"%.*s\" is a key of every trace, and is left out; any other is taken", setting,
               (int)(member->key_bytes < 64 ? member->key_bytes : 64), member->key);
}

void tp_chrome_tell_reserved(const struct tp_settings *settings)
{
    struct member member;
    for (const char *at = settings->metadata; (at = next_pair(at, &member));)
        tell_reserved("TPROF_METADATA", &member);
    for (const char *at = settings->metadata_json; at && (at = next_member(at, &member));)
        tell_reserved("TPROF_METADATA_JSON", &member);
}

static bool user_sets(const struct tp_settings *settings, const char *name)
{
    struct member member;
    for (const char *at = settings->metadata; (at = next_pair(at, &member));)
        if (is_named(&member, name))
            return true;
    for (const char *at = settings->metadata_json; at && (at = next_member(at, &member));)
        if (is_named(&member, name))
            return true;
    return false;
}

static void write_user_metadata(struct tp_json *json, const struct tp_settings *settings)
{
    struct member member;
    for (const char *at = settings->metadata; (at = next_pair(at, &member));) {
        if (is_reserved(&member) || overridden(settings, &member, at, false))
            continue;
        tp_json_key_bytes(json, member.key, member.key_bytes);
        tp_json_string(json, member.value, member.value_bytes);
    }
    for (const char *at = settings->metadata_json; at && (at = next_member(at, &member));) {
        if (is_reserved(&member) || overridden(settings, &member, at, true))
            continue;
        tp_json_raw(json, member.key - 1, member.key_bytes + 2);
        tp_sink_put(json->sink, ":", 1);
        json->after_key = true;
        tp_json_raw(json, member.value, member.value_bytes);
    }
}

static void write_text_member(struct tp_json *json, const struct tp_settings *settings, const char *key,
                              const char *value)
{
    if (!value || !value[0] || user_sets(settings, key))
        return;
    tp_json_text_member(json, key, value);
}

static void write_flag(struct tp_json *json, const struct tp_settings *settings, const char *key, bool on)
{
    if (on && !user_sets(settings, key))
        tp_json_u64_member(json, key, 1);
}

/* Always there, unlike torch's: HolisticTraceAnalysis asks every file for its rank. */
static void write_distributed(struct tp_json *json, const struct tp_cycle_report *report)
{
    const struct tp_identity *identity = report->identity;
    if (user_sets(report->settings, "distributedInfo"))
        return;
    tp_json_key(json, "distributedInfo");
    tp_json_open_object(json);
    tp_json_u64_member(json, "rank", identity->rank);
    tp_json_u64_member(json, "world_size", identity->world_size ? identity->world_size : 1);
    tp_json_close_object(json);
}

void tp_chrome_write_head(struct tp_json *json, const struct tp_cycle_report *report)
{
    const struct tp_settings *settings = report->settings;
    tp_json_u64_member(json, "schemaVersion", 1);
    tp_json_key(json, "deviceProperties");
    tp_json_open_array(json);
    tp_json_close_array(json);
    /* torch's Python exporter has what Python added and nothing of Kineto's own. */
    bool kineto = !settings->use_python_export;
    if (kineto)
        write_text_member(json, settings, "trace_id", report->trace_id);
    write_flag(json, settings, "profile_memory", settings->profile_memory);
    write_flag(json, settings, "with_stack", settings->with_stack);
    write_flag(json, settings, "record_shapes", settings->record_shapes);
    write_flag(json, settings, "with_modules", settings->with_modules);
    write_flag(json, settings, "with_flops", settings->with_flops);
    write_distributed(json, report);
    if (kineto) {
        write_text_member(json, settings, "host_name", report->identity->host);
        write_text_member(json, settings, "PT_PROFILER_JOB_NAME", report->identity->job_name);
        write_text_member(json, settings, "PT_PROFILER_JOB_VERSION", report->identity->job_version);
        write_text_member(json, settings, "PT_PROFILER_JOB_ATTEMPT_INDEX", report->identity->job_attempt);
    }
    write_user_metadata(json, settings);
    tp_json_text_member(json, "displayTimeUnit", "ms");
    tp_json_u64_member(json, "baseTimeNanoseconds", tp_chrome_base_ns(report->window_begin_ns));
}

static void write_clock(struct tp_json *json, const char *key, const struct tp_clock_pair *pair)
{
    tp_json_key(json, key);
    tp_json_open_object(json);
    tp_json_u64_member(json, "ticks", pair->ticks);
    tp_json_u64_member(json, "monotonic_ns", pair->monotonic_ns);
    tp_json_u64_member(json, "realtime_ns", pair->realtime_ns);
    tp_json_close_object(json);
}

static const char *kind_name(enum tp_step_kind kind)
{
    switch (kind) {
    case TP_STEP_KIND_TRAINING: return "training";
    case TP_STEP_KIND_BATCH: return "batch";
    case TP_STEP_KIND_TIME: return "time";
    case TP_STEP_KIND_WHOLE: return "whole";
    }
    return "";
}

/* True times: the slices of the trace may be drawn elsewhere (step_slices.h). */
static void write_steps(struct tp_json *json, const struct tp_cycle_report *report)
{
    tp_json_key(json, "steps");
    tp_json_open_array(json);
    for (size_t i = 0; i < report->step_count; i++) {
        const struct tp_step_span *step = &report->steps[i];
        tp_json_open_object(json);
        tp_json_u64_member(json, "number", step->number);
        tp_json_u64_member(json, "start_ns", step->start_ns);
        tp_json_u64_member(json, "end_ns", step->end_ns);
        tp_json_text_member(json, "kind", kind_name(step->kind));
        tp_json_u64_member(json, "tid", step->thread.os_id);
        tp_json_close_object(json);
    }
    tp_json_close_array(json);
}

void tp_chrome_write_tail(struct tp_json *json, const struct tp_cycle_report *report,
                          const struct tp_model_counts *counts, uint64_t shown)
{
    const struct tp_identity *identity = report->identity;
    tp_json_key(json, "tprof");
    tp_json_open_object(json);
    tp_json_u64_member(json, "format", 1);
    tp_json_text_member(json, "version", TP_VERSION);
    tp_json_u64_member(json, "cycle", report->cycle);
    tp_json_u64_member(json, "kept", counts->kept);
    tp_json_u64_member(json, "lost", counts->lost + counts->unwritten + report->lost_before);
    tp_json_u64_member(json, "shown", shown);
    tp_json_u64_member(json, "unfinished", counts->unfinished);
    tp_json_u64_member(json, "names_cut", counts->names_cut);
    tp_json_u64_member(json, "inputs_cut", counts->inputs_cut);
    tp_json_u64_member(json, "damaged", counts->damaged);
    tp_json_key(json, "partial");
    tp_json_bool(json, report->partial);
    if (report->partial_why)
        tp_json_text_member(json, "why", report->partial_why);
    if (report->lost_before)
        tp_json_u64_member(json, "complete_from_ns", report->dropped_end_ns);
    tp_json_key(json, "window");
    tp_json_open_object(json);
    tp_json_u64_member(json, "begin_ns", report->window_begin_ns);
    tp_json_u64_member(json, "end_ns", report->window_end_ns);
    tp_json_close_object(json);
    tp_json_key(json, "clock");
    tp_json_open_object(json);
    write_clock(json, "begin", &report->clock_begin);
    write_clock(json, "end", &report->clock_end);
    tp_json_key(json, "ticks_per_ns");
    tp_json_double(json, report->ticks_per_ns);
    tp_json_close_object(json);
    if (identity->boot_id[0])
        tp_json_text_member(json, "boot_id", identity->boot_id);
    tp_json_u64_member(json, "pid", identity->pid);
    if (identity->rank_set)
        tp_json_u64_member(json, "rank", identity->rank);
    write_steps(json, report);
    tp_json_close_object(json);
    tp_json_text_member(json, "traceName", report->trace_name ? report->trace_name : "");
}
