/*
 * findings.h: what is wrong with a file: the first of each kind in words, in the order of the file, all of them
 * counted. Beside them notes: what is odd about the file and yet no fault, with the first of each kind in words. Uses the heap; when memory is out, a finding is
 * still counted.
 */
#ifndef TP_FINDINGS_H
#define TP_FINDINGS_H

#include <stdio.h>

#include "../agent/base.h"

#define FINDINGS_SHOWN 20

enum finding_kind {
    FINDING_GZIP,
    FINDING_JSON,
    FINDING_TOP_LEVEL,
    FINDING_EVENT,
    FINDING_DURATION,
    FINDING_NESTING,
    FINDING_DUPLICATE,
    FINDING_BEGIN_END,
    FINDING_ASYNC,
    FINDING_FLOW,
    FINDING_CAUSALITY,
    FINDING_INDEX,
    FINDING_STEP,
    FINDING_COUNT,
    FINDING_WINDOW,
    FINDING_KINDS,
};

enum note_kind {
    NOTE_OPEN_ARRAY,
    NOTE_EARLY,
    NOTE_COARSE,
    NOTE_LAYERS,
    NOTE_DEVICE,
    NOTE_HALF_FLOW,
    NOTE_KINDS,
};

struct finding {
    uint64_t event, offset; /* UINT64_MAX: not about one event; about no place */
    char *text;
};

struct findings {
    uint64_t count[FINDING_KINDS];
    struct finding shown[FINDING_KINDS][FINDINGS_SHOWN];
    uint64_t note_count[NOTE_KINDS];
    struct finding first_note[NOTE_KINDS];
};

#define NO_PLACE UINT64_MAX

const char *finding_kind_name(enum finding_kind kind);
void findings_add(struct findings *findings, enum finding_kind kind, uint64_t event, uint64_t offset,
                  const char *format, ...) TP_PRINTF(5, 6);
void findings_note(struct findings *findings, enum note_kind kind, uint64_t event, uint64_t offset, const char *format,
                   ...) TP_PRINTF(5, 6);
uint64_t findings_total(const struct findings *findings);
void findings_print(const struct findings *findings, FILE *file);
/* The members "counts", "findings" and "notes" of an object, without a comma around them. */
void findings_print_json(const struct findings *findings, FILE *file);
/* A JSON string with its quotes. */
void print_json_string(const char *text, FILE *file);
void findings_free(struct findings *findings);

#endif
