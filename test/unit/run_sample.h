/* run_sample.h: a hand-made report of a run, for the tests of what is printed and of summary.json. */
#ifndef TP_RUN_SAMPLE_H
#define TP_RUN_SAMPLE_H

#include "../../output/log_report.h"

struct run_sample {
    struct tp_arena arena;
    struct tp_settings settings;
    struct tp_identity identity;
    struct tp_step_times steps;
    struct tp_report_file files[2], summary;
    struct tp_report_cycle cycles[8];
    struct tp_run_report run;
};

/* One whole cycle over steps 2..4 of 10; two rows; nothing lost. */
void sample_init(struct run_sample *sample);
void sample_free(struct run_sample *sample);

#endif
