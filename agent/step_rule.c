#include <errno.h>
#include <string.h>

#include "steps.h"

static const char where[] = "TPROF_STEP";
static const char accepted[] = "auto, optimizer, dataloader, range:NAME, python:QUALIFIED.NAME, "
                               "every:TIME (a whole number and ns, us, ms, s or min; at least 1ms), none";

#define PERIOD_MIN_NS 1000000 /* a window a step makes a file a step: shorter ones could not be written as fast as they come */

static int parse_period(const char *text, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"min", UINT64_C(60000000000)}};
    uint64_t count = 0;
    const char *unit = text;
    for (; *unit >= '0' && *unit <= '9'; unit++) {
        if (__builtin_mul_overflow(count, 10, &count) || __builtin_add_overflow(count, (uint64_t)(*unit - '0'), &count))
            return -EINVAL;
    }
    for (size_t i = 0; i < TP_COUNT(units); i++) {
        if (strcmp(unit, units[i].name) == 0)
            return count == 0 || __builtin_mul_overflow(count, units[i].ns, ret_ns) ? -EINVAL
                   : *ret_ns < PERIOD_MIN_NS                                        ? -ERANGE
                                                                                    : 0;
    }
    return -EINVAL;
}

int tp_step_rule_parse(const char *text, struct tp_step_rule *ret_rule, struct tp_error *error)
{
    static const struct {
        const char *name;
        enum tp_step_rule_kind kind;
    } words[] = {
        {"auto", TP_STEP_AUTO},
        {"optimizer", TP_STEP_OPTIMIZER},
        {"dataloader", TP_STEP_DATALOADER},
        {"none", TP_STEP_NONE},
    }, prefixes[] = {
        {"range:", TP_STEP_RANGE},
        {"python:", TP_STEP_PYTHON},
        {"every:", TP_STEP_EVERY},
    };
    for (size_t i = 0; i < TP_COUNT(words); i++) {
        if (strcmp(text, words[i].name) == 0) {
            *ret_rule = (struct tp_step_rule){.kind = words[i].kind};
            return 0;
        }
    }
    for (size_t i = 0; i < TP_COUNT(prefixes); i++) {
        size_t length = strlen(prefixes[i].name);
        if (strncmp(text, prefixes[i].name, length) != 0)
            continue;
        struct tp_step_rule rule = {.kind = prefixes[i].kind};
        int failed = 0;
        if (rule.kind != TP_STEP_EVERY)
            rule.name = text + length;
        else
            failed = parse_period(text + length, &rule.period_ns);
        if (failed) {
            tp_error_set(error, where, accepted, failed == -ERANGE ? "'%s' is too short" : "'%s' is not a time", text + length);
            return -EINVAL;
        }
        if (rule.name && rule.name[0] == '\0') {
            tp_error_set(error, where, accepted, "'%s' has no name", text);
            return -EINVAL;
        }
        *ret_rule = rule;
        return 0;
    }
    tp_error_set(error, where, accepted, "'%s' is not a rule of steps", text);
    return -EINVAL;
}
