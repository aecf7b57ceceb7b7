/* Settings that are lists: activities, outputs, grouping, metadata, and the words that a table may be sorted by. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "settings_read.h"

#define BIT(type) (1u << TP_TYPE_##type)

/* The groups and their types as torch's kineto_shim.cpp has them (PyTorch 2.13). */
static const struct {
    const char *name;
    uint32_t types;
} groups[TP_ACTIVITY_COUNT] = {
    [TP_ACTIVITY_CPU] = {"cpu", BIT(CPU_OP) | BIT(CPU_INSTANT_EVENT) | BIT(USER_ANNOTATION) |
                                    BIT(EXTERNAL_CORRELATION) | BIT(XPU_RUNTIME) | BIT(XPU_DRIVER) | BIT(CUDA_RUNTIME) |
                                    BIT(CUDA_DRIVER) | BIT(PYTHON_FUNCTION) | BIT(PRIVATEUSE1_RUNTIME) |
                                    BIT(PRIVATEUSE1_DRIVER)},
    [TP_ACTIVITY_CUDA] = {"cuda", BIT(GPU_MEMCPY) | BIT(GPU_MEMSET) | BIT(GPU_USER_ANNOTATION) |
                                      BIT(CONCURRENT_KERNEL) | BIT(CUDA_RUNTIME) | BIT(CUDA_DRIVER) | BIT(OVERHEAD)},
    [TP_ACTIVITY_XPU] = {"xpu", BIT(GPU_MEMCPY) | BIT(GPU_MEMSET) | BIT(CONCURRENT_KERNEL) | BIT(XPU_RUNTIME) |
                                    BIT(XPU_DRIVER)},
    [TP_ACTIVITY_MTIA] = {"mtia", BIT(MTIA_CCP_EVENTS) | BIT(MTIA_RUNTIME) | BIT(MTIA_INSIGHT) | BIT(MTIA_COUNTERS)},
    [TP_ACTIVITY_HPU] = {"hpu", BIT(HPU_OP)},
    [TP_ACTIVITY_PRIVATEUSE1] = {"privateuse1", BIT(GPU_MEMCPY) | BIT(GPU_MEMSET) | BIT(GPU_USER_ANNOTATION) |
                                                    BIT(CONCURRENT_KERNEL) | BIT(PRIVATEUSE1_RUNTIME) |
                                                    BIT(PRIVATEUSE1_DRIVER)},
};

static const char *const types[TP_TYPE_COUNT] = {
    [TP_TYPE_CPU_OP] = "cpu_op",
    [TP_TYPE_USER_ANNOTATION] = "user_annotation",
    [TP_TYPE_GPU_USER_ANNOTATION] = "gpu_user_annotation",
    [TP_TYPE_GPU_MEMCPY] = "gpu_memcpy",
    [TP_TYPE_GPU_MEMSET] = "gpu_memset",
    [TP_TYPE_CONCURRENT_KERNEL] = "concurrent_kernel",
    [TP_TYPE_EXTERNAL_CORRELATION] = "external_correlation",
    [TP_TYPE_CUDA_RUNTIME] = "cuda_runtime",
    [TP_TYPE_CUDA_DRIVER] = "cuda_driver",
    [TP_TYPE_CPU_INSTANT_EVENT] = "cpu_instant_event",
    [TP_TYPE_PYTHON_FUNCTION] = "python_function",
    [TP_TYPE_OVERHEAD] = "overhead",
    [TP_TYPE_XPU_RUNTIME] = "xpu_runtime",
    [TP_TYPE_XPU_DRIVER] = "xpu_driver",
    [TP_TYPE_PRIVATEUSE1_RUNTIME] = "privateuse1_runtime",
    [TP_TYPE_PRIVATEUSE1_DRIVER] = "privateuse1_driver",
    [TP_TYPE_MTIA_RUNTIME] = "mtia_runtime",
    [TP_TYPE_MTIA_CCP_EVENTS] = "mtia_ccp_events",
    [TP_TYPE_MTIA_INSIGHT] = "mtia_insight",
    [TP_TYPE_MTIA_COUNTERS] = "mtia_counters",
    [TP_TYPE_HPU_OP] = "hpu_op",
};

/* A piece of a value, without the blanks around it. */
struct piece {
    const char *text;
    size_t bytes;
};

static struct piece trim(const char *text, size_t bytes)
{
    while (bytes > 0 && *text == ' ') {
        text++;
        bytes--;
    }
    while (bytes > 0 && text[bytes - 1] == ' ')
        bytes--;
    return (struct piece){text, bytes};
}

static bool is(struct piece piece, const char *word)
{
    return strlen(word) == piece.bytes && memcmp(word, piece.text, piece.bytes) == 0;
}

static bool is_any_case(struct piece piece, const char *word)
{
    return strlen(word) == piece.bytes && strncasecmp(word, piece.text, piece.bytes) == 0;
}

#define SHOW(piece) (int)((piece).bytes < 100 ? (piece).bytes : 100), (piece).text

static bool refuse_type(struct tp_reading *reading, struct piece name, int group)
{
    char names[300] = "";
    size_t used = 0;
    for (int i = 0; i < TP_TYPE_COUNT; i++)
        if (groups[group].types & 1u << i)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", types[i]);
    return tp_refuse(reading, names, "\"%.*s\" is not an activity type of %s", SHOW(name), groups[group].name);
}

/* The names between the brackets of a filter. Nothing between them is nothing of the group. */
static bool read_filter(struct tp_reading *reading, struct piece inside, int group, uint32_t *ret_types)
{
    *ret_types = 0;
    if (trim(inside.text, inside.bytes).bytes == 0)
        return true;
    for (const char *at = inside.text, *end = at + inside.bytes; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct piece name = trim(at, (size_t)((comma ? comma : end) - at));
        int type = 0;
        while (type < TP_TYPE_COUNT && !(groups[group].types & 1u << type && is_any_case(name, types[type])))
            type++;
        if (type == TP_TYPE_COUNT)
            return refuse_type(reading, name, group);
        *ret_types |= 1u << type;
        at = comma ? comma + 1 : end + 1;
    }
    return true;
}

/* One `group` or `group:[types]`. Returns what follows it, or NULL after an error. */
static const char *read_group(struct tp_reading *reading, const char *at, struct tp_activities *activities)
{
    struct piece name = trim(at, strcspn(at, ",:"));
    int group = 0;
    while (group < TP_ACTIVITY_COUNT && !is_any_case(name, groups[group].name))
        group++;
    if (group == TP_ACTIVITY_COUNT) {
        tp_refuse(reading, NULL, "\"%.*s\" is not an activity", SHOW(name));
        return NULL;
    }
    if (activities->groups & 1u << group) {
        tp_refuse(reading, "each activity once", "%s is given more than once", groups[group].name);
        return NULL;
    }
    activities->groups |= 1u << group;
    activities->types[group] = groups[group].types;
    at += strcspn(at, ",:");
    if (*at == ':') {
        at += 1 + strspn(at + 1, " ");
        const char *close = *at == '[' ? strchr(at, ']') : NULL;
        const char *after = close ? close + 1 + strspn(close + 1, " ") : NULL;
        if (!after || (*after && *after != ',')) {
            tp_refuse(reading, NULL, "what follows \"%s:\" is not a filter in brackets", groups[group].name);
            return NULL;
        }
        struct piece inside = {at + 1, (size_t)(close - at - 1)};
        if (!read_filter(reading, inside, group, &activities->types[group]))
            return NULL;
        at = after;
    }
    return at;
}

bool tp_read_activities(struct tp_reading *reading, const char *value, void *field)
{
    struct tp_activities activities = {.set = true};
    for (const char *at = value;; at++) {
        at = read_group(reading, at, &activities);
        if (!at)
            return false;
        if (!*at)
            break;
    }
    if (!(activities.groups & 1u << TP_ACTIVITY_CPU))
        return tp_refuse(reading, "cpu, with others or alone", "\"%s\" leaves nothing to observe: of these none is "
                                                              "in this build yet", value);
    for (int group = 0; group < TP_ACTIVITY_COUNT; group++)
        if (group != TP_ACTIVITY_CPU && activities.groups & 1u << group) {
            tp_note(reading, "%s is not in this build yet; the rest goes on", groups[group].name);
            activities.groups &= ~(1u << group);
            activities.types[group] = 0;
        }
    *(struct tp_activities *)field = activities;
    return true;
}

static const struct {
    const char *name;
    bool here;
} outputs[TP_OUTPUT_COUNT] = {
    [TP_OUTPUT_TENSORBOARD] = {"tensorboard", true},
    [TP_OUTPUT_CHROME] = {"chrome", true},
    [TP_OUTPUT_TABLE] = {"table", true},
    [TP_OUTPUT_STACKS] = {"stacks", false},
    [TP_OUTPUT_MEMORY_TIMELINE_HTML] = {"memory_timeline:html", false},
    [TP_OUTPUT_MEMORY_TIMELINE_JSON] = {"memory_timeline:json", false},
    [TP_OUTPUT_MEMORY_TIMELINE_RAW] = {"memory_timeline:raw", false},
    [TP_OUTPUT_MEMORY_SNAPSHOT] = {"memory_snapshot", false},
    [TP_OUTPUT_EXECUTION_TRACE] = {"execution_trace", true},
    [TP_OUTPUT_EVENTS] = {"events", true},
    [TP_OUTPUT_REPORT] = {"report", false},
    [TP_OUTPUT_EXEC] = {"exec:", false}, /* and the rest of the value, commas included */
};

bool tp_read_outputs(struct tp_reading *reading, const char *value, void *field)
{
    uint32_t chosen = 0;
    bool none = false;
    size_t items = 0;
    for (const char *at = value; at; items++) {
        size_t length = strcspn(at, ",");
        struct piece name = trim(at, length);
        at = at[length] ? at + length + 1 : NULL;
        int output = 0;
        while (output < TP_OUTPUT_EXEC && !is(name, outputs[output].name))
            output++;
        if (output == TP_OUTPUT_EXEC) {
            if (name.bytes > 5 && strncmp(name.text, "exec:", 5) == 0)
                at = NULL;
            else if (is(name, "none"))
                none = true;
            else
                return tp_refuse(reading, NULL, "\"%.*s\" is not an output", SHOW(name));
        }
        if (none)
            continue;
        if (outputs[output].here)
            chosen |= 1u << output;
        else
            tp_note(reading, "%.*s is not in this build yet; the rest goes on",
                    output == TP_OUTPUT_EXEC ? 4 : (int)name.bytes, name.text);
    }
    if (none && items > 1)
        return tp_refuse(reading, NULL, "\"%s\": none stands alone", value);
    *(uint32_t *)field = chosen;
    return true;
}

bool tp_read_group_by(struct tp_reading *reading, const char *value, void *field)
{
    for (const char *at = value; at;) {
        size_t length = strcspn(at, ",");
        struct piece name = trim(at, length);
        const char *number = name.bytes > 6 && strncmp(name.text, "stack:", 6) == 0 ? name.text + 6 : NULL;
        bool depth = number && name.bytes <= 12 && strspn(number, "0123456789") >= name.bytes - 6;
        if (!is(name, "input_shape") && !is(name, "overload_name") && !depth)
            return tp_refuse(reading, NULL, "\"%.*s\" is not a way to group", SHOW(name));
        at = at[length] ? at + length + 1 : NULL;
    }
    if (field)
        *(const char **)field = value;
    return true;
}

bool tp_read_metadata(struct tp_reading *reading, const char *value, void *field)
{
    for (const char *at = value; at;) {
        size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        struct piece pair = {at, length};
        if (!equals || equals == at)
            return tp_refuse(reading, NULL, "\"%.*s\" is not key=value", SHOW(pair));
        at = at[length] ? at + length + 1 : NULL;
    }
    *(const char **)field = value;
    return true;
}

bool tp_read_sort_key(struct tp_reading *reading, const char *value, void *field)
{
    static const char *const whole[] = {"key", "count", "flops"};
    static const char *const devices[] = {"cpu", "device", "cuda", "xpu", "privateuse1"};
    static const char *const keys[] = {"%s_time", "%s_time_total", "self_%s_time_total", "%s_memory_usage",
                                       "self_%s_memory_usage"};
    (void)reading;
    bool known = false;
    for (size_t i = 0; i < TP_COUNT(whole); i++)
        known |= strcmp(value, whole[i]) == 0;
    for (size_t i = 0; i < TP_COUNT(keys); i++)
        for (size_t j = 0; j < TP_COUNT(devices); j++) {
            char key[64];
            snprintf(key, sizeof key, keys[i], devices[j]);
            known |= strcmp(value, key) == 0;
        }
    if (known)
        *(const char **)field = value;
    return known;
}
