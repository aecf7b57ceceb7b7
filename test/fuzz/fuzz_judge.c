/*
 * `tprof check` on any trace: whatever stands in it is judged, each finding is one line, and what is said as JSON is
 * JSON and UTF-8.
 */
#include <string.h>

#include "../../tools/trace_judge.h"
#include "../unit/bytes_from.h"
#include "must.h"

static void check_lines(const struct findings *findings)
{
    char *text;
    size_t bytes, lines = 0, wanted = 0;
    FILE *file = open_memstream(&text, &bytes);
    must(file);
    findings_print(findings, file);
    fclose(file);
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    for (size_t kind = 0; kind < FINDING_KINDS; kind++)
        wanted += findings->count[kind] < FINDINGS_SHOWN ? findings->count[kind] : FINDINGS_SHOWN + 1;
    for (size_t kind = 0; kind < FINDING_KINDS; kind++)
        wanted -= findings->count[kind] == FINDINGS_SHOWN; /* none of them is left out */
    for (size_t kind = 0; kind < NOTE_KINDS; kind++)
        wanted += findings->note_count[kind] > 0;
    must(lines == wanted);
    free(text);
}

static void check_json(const struct findings *findings)
{
    char *text;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    must(file);
    fputc('{', file);
    findings_print_json(findings, file);
    fputc('}', file);
    fclose(file);
    struct tp_arena arena;
    struct bytes_from from;
    tp_arena_init(&arena, 0);
    struct tp_json_in *json = tp_json_in_new(bytes_from(&from, text, bytes, 4096), &arena);
    must(json && tp_json_in_next(json) == TP_JSON_OBJECT && tp_json_in_skip(json));
    must(tp_json_in_next(json) == TP_JSON_END);
    tp_arena_free(&arena);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_arena arena;
    struct bytes_from bytes;
    struct findings findings;
    struct tp_trace_in_result result;
    memset(&findings, 0, sizeof findings);
    tp_arena_init(&arena, 0);
    struct judge *judge = judge_new(&findings);
    must(judge);
    struct tp_trace_in_options options = {.source = bytes_from(&bytes, (const char *)data, size, 4096),
                                          .context = judge, .event = judge_event, .member = judge_member,
                                          .twice = judge_twice};
    if (tp_trace_in_read(&options, &arena, &result) == 0) {
        struct judge_counts counts;
        judge_end(judge, &counts);
        must(counts.slices + counts.flows <= result.events && counts.rows <= result.events);
    }
    must(judge_what_else(judge));
    judge_free(judge);
    tp_arena_free(&arena);
    check_lines(&findings);
    check_json(&findings);
    findings_free(&findings);
    return 0;
}
