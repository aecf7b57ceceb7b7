#include "findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../output/json.h"

const char *finding_kind_name(enum finding_kind kind)
{
    static const char *const names[FINDING_KINDS] = {
        [FINDING_GZIP] = "gzip",
        [FINDING_JSON] = "json",
        [FINDING_TOP_LEVEL] = "top-level",
        [FINDING_EVENT] = "event",
        [FINDING_DURATION] = "duration",
        [FINDING_NESTING] = "nesting",
        [FINDING_DUPLICATE] = "duplicate",
        [FINDING_BEGIN_END] = "begin-end",
        [FINDING_ASYNC] = "async",
        [FINDING_FLOW] = "flow",
        [FINDING_CAUSALITY] = "causality",
        [FINDING_INDEX] = "index",
        [FINDING_STEP] = "step",
        [FINDING_COUNT] = "count",
        [FINDING_WINDOW] = "window",
    };
    return names[kind];
}

static const char *const note_names[NOTE_KINDS] = {
    [NOTE_OPEN_ARRAY] = "open-array", [NOTE_EARLY] = "early",   [NOTE_COARSE] = "coarse",
    [NOTE_LAYERS] = "layers",         [NOTE_DEVICE] = "device", [NOTE_HALF_FLOW] = "half-flow",
};

static struct finding finding_of(uint64_t event, uint64_t offset, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?'; /* a name may hold anything; a finding is one line */
    return (struct finding){event, offset, strdup(text)};
}

/* In the file. What is about no event or place comes last. */
static bool is_earlier(uint64_t event, uint64_t offset, const struct finding *than)
{
    return event != than->event ? event < than->event : offset < than->offset;
}

void findings_add(struct findings *findings, enum finding_kind kind, uint64_t event, uint64_t offset,
                  const char *format, ...)
{
    struct finding *shown = findings->shown[kind];
    size_t count = findings->count[kind]++ < FINDINGS_SHOWN ? (size_t)findings->count[kind] - 1 : FINDINGS_SHOWN;
    size_t at = count;
    while (at > 0 && is_earlier(event, offset, &shown[at - 1]))
        at--;
    if (at == FINDINGS_SHOWN)
        return;
    if (count == FINDINGS_SHOWN)
        free(shown[--count].text);
    memmove(&shown[at + 1], &shown[at], (count - at) * sizeof *shown);
    va_list arguments;
    va_start(arguments, format);
    shown[at] = finding_of(event, offset, format, arguments);
    va_end(arguments);
}

void findings_note(struct findings *findings, enum note_kind kind, uint64_t event, uint64_t offset, const char *format,
                   ...)
{
    struct finding *first = &findings->first_note[kind];
    if (findings->note_count[kind]++ > 0 && !is_earlier(event, offset, first))
        return;
    free(first->text);
    va_list arguments;
    va_start(arguments, format);
    *first = finding_of(event, offset, format, arguments);
    va_end(arguments);
}

uint64_t findings_total(const struct findings *findings)
{
    uint64_t total = 0;
    for (size_t kind = 0; kind < FINDING_KINDS; kind++)
        total += findings->count[kind];
    return total;
}

static void print_finding(const struct finding *finding, FILE *file)
{
    if (finding->event != NO_PLACE)
        fprintf(file, "event %llu, ", (unsigned long long)finding->event);
    if (finding->offset != NO_PLACE)
        fprintf(file, "byte %llu: ", (unsigned long long)finding->offset);
    fprintf(file, "%s\n", finding->text ? finding->text : "(no memory for the text)");
}

void findings_print(const struct findings *findings, FILE *file)
{
    for (unsigned kind = 0; kind < FINDING_KINDS; kind++) {
        const char *name = finding_kind_name((enum finding_kind)kind);
        uint64_t count = findings->count[kind], shown = count < FINDINGS_SHOWN ? count : FINDINGS_SHOWN;
        for (uint64_t i = 0; i < shown; i++) {
            fprintf(file, "%s: ", name);
            print_finding(&findings->shown[kind][i], file);
        }
        if (count > shown)
            fprintf(file, "%s: and %llu more\n", name, (unsigned long long)(count - shown));
    }
    for (unsigned kind = 0; kind < NOTE_KINDS; kind++) {
        uint64_t count = findings->note_count[kind];
        if (count == 0)
            continue;
        fprintf(file, "note: %s: ", note_names[kind]);
        if (count > 1)
            fprintf(file, "%llu times, first ", (unsigned long long)count);
        print_finding(&findings->first_note[kind], file);
    }
}

void print_json_string(const char *text, FILE *file)
{
    size_t bytes = strlen(text);
    char *escaped = malloc(bytes * TP_JSON_ESCAPE_MAX + 1);
    size_t length = escaped ? tp_json_escape(escaped, text, bytes) : 0;
    fprintf(file, "\"%.*s\"", (int)length, escaped ? escaped : "");
    free(escaped);
}

/* The members that place and name it, and the closing brace. */
static void print_finding_json(const struct finding *finding, FILE *file)
{
    if (finding->event != NO_PLACE)
        fprintf(file, "\"event\":%llu,", (unsigned long long)finding->event);
    if (finding->offset != NO_PLACE)
        fprintf(file, "\"byte\":%llu,", (unsigned long long)finding->offset);
    fprintf(file, "\"text\":");
    print_json_string(finding->text ? finding->text : "", file);
    fprintf(file, "}");
}

void findings_print_json(const struct findings *findings, FILE *file)
{
    const char *comma = "";
    fprintf(file, "\"counts\":{");
    for (unsigned kind = 0; kind < FINDING_KINDS; kind++) {
        if (findings->count[kind] == 0)
            continue;
        fprintf(file, "%s\"%s\":%llu", comma, finding_kind_name((enum finding_kind)kind),
                (unsigned long long)findings->count[kind]);
        comma = ",";
    }
    fprintf(file, "},\"findings\":[");
    comma = "";
    for (unsigned kind = 0; kind < FINDING_KINDS; kind++)
        for (uint64_t i = 0; i < findings->count[kind] && i < FINDINGS_SHOWN; i++) {
            fprintf(file, "%s\n{\"kind\":\"%s\",", comma, finding_kind_name((enum finding_kind)kind));
            print_finding_json(&findings->shown[kind][i], file);
            comma = ",";
        }
    fprintf(file, "],\"notes\":[");
    comma = "";
    for (unsigned kind = 0; kind < NOTE_KINDS; kind++) {
        if (findings->note_count[kind] == 0)
            continue;
        fprintf(file, "%s\n{\"kind\":\"%s\",\"count\":%llu,", comma, note_names[kind],
                (unsigned long long)findings->note_count[kind]);
        print_finding_json(&findings->first_note[kind], file);
        comma = ",";
    }
    fprintf(file, "]");
}

void findings_free(struct findings *findings)
{
    for (size_t kind = 0; kind < FINDING_KINDS; kind++)
        for (size_t i = 0; i < FINDINGS_SHOWN; i++)
            free(findings->shown[kind][i].text);
    for (size_t kind = 0; kind < NOTE_KINDS; kind++)
        free(findings->first_note[kind].text);
}
