#include "run_sample.h"

#include <string.h>

void sample_init(struct run_sample *sample)
{
    *sample = (struct run_sample){0};
    tp_arena_init(&sample->arena, 0);
    sample->settings.row_limit = 20;
    sample->identity = (struct tp_identity){.host = "node1", .process = "python", .pid = 4000, .world_size = 1};
    tp_step_times_init(&sample->steps, &sample->arena, 0);
    for (uint64_t i = 0; i < 10; i++)
        tp_step_times_add(&sample->steps, i, i * 10000000, (i + 1) * 10000000 - 1000, TP_STEP_KIND_TRAINING);
    struct tp_averages *averages = tp_averages_new(&sample->arena, 0);
    struct tp_event events[] = {
        {.start_ns = 0, .end_ns = 3000000, .self_ns = 1000000, .name = "aten::linear", .parent = UINT64_MAX},
        {.start_ns = 1, .end_ns = 2000001, .self_ns = 2000000, .name = "aten::addmm", .parent = 0, .index = 1},
    };
    for (size_t i = 0; i < TP_COUNT(events); i++)
        events[i].name_bytes = (uint32_t)strlen(events[i].name);
    tp_averages_segment(averages, events, TP_COUNT(events));
    sample->files[0] = (struct tp_report_file){.path = "/data/tprof/node1_4000.1.pt.trace.json.gz", .bytes = 1234567};
    sample->files[1] = (struct tp_report_file){.path = "/data/tprof/node1_4000.2.table.txt", .bytes = 999};
    sample->summary = (struct tp_report_file){.path = "/data/tprof/node1_4000.3.summary.json", .bytes = 2048};
    sample->cycles[0] = (struct tp_report_cycle){
        .window_begin_ns = 20000000, .window_end_ns = 50000000, .first_step = 2, .last_step = 4, .has_steps = true,
        .counts = {.kept = 2}, .files = sample->files, .file_count = 2,
    };
    sample->run = (struct tp_run_report){
        .identity = &sample->identity,
        .settings = &sample->settings,
        .clock_begin = {.realtime_ns = 1000},
        .map = {.ns_per_tick = UINT64_C(1) << TP_CLOCK_SHIFT},
        .averages = averages,
        .steps = &sample->steps,
        .cycles = sample->cycles,
        .cycle_count = 1,
        .files = &sample->summary,
        .file_count = 1,
        .cost = {.background_cpu_ns = 12345678, .edge_ns = 23456, .attach_ns = 1234567, .held_bytes = 5 << 20,
                 .budget_bytes = 256u << 20},
    };
}

void sample_free(struct run_sample *sample)
{
    tp_arena_free(&sample->arena);
}
