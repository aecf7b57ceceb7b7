#include "recover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../agent/spool_in.h"
#include "delivery.h"
#include "folder.h"

#define MAX_SETTINGS 96

/* The settings as the process had them, but for what it has done itself already. */
static bool read_settings(const struct tp_spool_process *process, struct tp_settings *settings, struct tp_arena *arena,
                          struct tp_error *error)
{
    char *variables[MAX_SETTINGS + 1];
    size_t count = 0;
    for (const char *at = process->settings; *at && count < MAX_SETTINGS; at += strlen(at) + 1)
        if (strncmp(at, "TPROF_CONFIG=", 13) != 0)
            variables[count++] = (char *)at;
    variables[count] = NULL;
    struct tp_settings_report *report = tp_arena_alloc(arena, sizeof *report);
    if (!report)
        return false;
    memset(report, 0, sizeof *report);
    if (tp_settings_load(settings, variables, arena, report) == 0)
        return true;
    *error = report->error[0];
    return false;
}

/* The rate of the clock is best known between two moments far apart; a process that died young has them close together. */
static struct tp_clock_pair last_moment(const struct tp_spool_in *in)
{
    const struct tp_clock_pair *first = &in->state->process.attached, *last = &in->state->header.last;
    return last->ticks > first->ticks ? *last : *first;
}

static void deliver(struct tp_spool_in *in, struct tp_delivery *delivery)
{
    const struct tp_spool_state *state = in->state;
    uint64_t steps = state->header.steps;
    for (uint64_t n = in->first_step; n < steps; n++) {
        const struct tp_spool_step *step = &state->steps[n % TP_SPOOL_STEPS];
        if (step->end >= step->begin)
            tp_delivery_step(delivery, step->number, step->begin, step->end, (enum tp_step_kind)(step->kind % TP_STEP_KIND_COUNT));
    }
    for (size_t i = 0; i < in->cycle_count; i++)
        tp_delivery_cycle(delivery, &in->cycles[i], in->bytes);
    struct tp_delivery_end end = {
        .ended = "died", .clock = last_moment(in), .edges = steps, .next_step = steps > 0 ? steps : 0};
    tp_delivery_finish(delivery, &end);
}

static int write_files(struct tp_spool_in *in, const struct tp_settings *settings, const _Atomic bool *stop,
                       struct tp_recovered *ret, struct tp_error *error)
{
    const struct tp_spool_process *process = &in->state->process;
    struct tp_delivery_process of = {.settings = settings,
                                     .identity = &process->identity,
                                     .log = &in->spool.log,
                                     .names = in->spool.names,
                                     .folder = process->folder,
                                     .attached = process->attached,
                                     .pytorch = process->pytorch[0] ? process->pytorch : NULL,
                                     .observed = process->observed[0] ? process->observed : NULL,
                                     .command = process->command[0] ? process->command : NULL,
                                     .died = true,
                                     .died_at_ns = ret->died_at_ns,
                                     .stop = stop};
    struct tp_delivery *delivery = tp_delivery_new(&of);
    if (!delivery) {
        tp_error_set(error, "spool", NULL, "no memory to write its files");
        return -ENOMEM;
    }
    deliver(in, delivery);
    struct tp_delivery_totals totals = tp_delivery_totals(delivery);
    tp_delivery_free(delivery);
    ret->files = totals.files;
    ret->kept = totals.kept;
    if (stop && atomic_load(stop))
        return -ECANCELED;
    if (totals.failures) {
        tp_error_set(error, "spool", NULL, "%llu files could not be written; it is kept", (unsigned long long)totals.failures);
        return -EIO;
    }
    return 0;
}

bool tp_recover_is_name(const char *name)
{
    return tp_spool_in_is_name(name);
}

int tp_recover(int folder, const char *name, const _Atomic bool *stop, struct tp_recovered *ret, struct tp_error *error)
{
    memset(ret, 0, sizeof *ret);
    struct tp_arena arena;
    tp_arena_init(&arena, 64u << 20);
    /* Its pool wants whole cache lines, more than an arena promises. */
    char *room = tp_arena_alloc(&arena, sizeof(struct tp_spool_in) + _Alignof(struct tp_spool_in));
    struct tp_spool_in *in = (struct tp_spool_in *)tp_round_up((uintptr_t)room, _Alignof(struct tp_spool_in));
    if (!room) {
        tp_error_set(error, name, NULL, "no memory to read it");
        return -ENOMEM;
    }
    int failed = tp_spool_in_open(in, folder, name, &arena, error);
    if (!failed) {
        const struct tp_spool_process *process = &in->state->process;
        struct tp_settings settings;
        snprintf(ret->process, sizeof ret->process, "%s", process->identity.process);
        snprintf(ret->host, sizeof ret->host, "%s", process->identity.host);
        snprintf(ret->folder, sizeof ret->folder, "%s", process->folder);
        ret->pid = process->identity.pid;
        ret->died_at_ns = last_moment(in).realtime_ns;
        ret->from_chunks = in->from_chunks;
        ret->damaged = in->damaged;
        ret->chunks_lost = in->chunks_lost;
        if (process->folder[0] != '/' || !read_settings(process, &settings, &arena, error)) {
            tp_error_set(error, name, NULL, "its settings are not whole");
            failed = -EINVAL;
        } else {
            ret->unwanted = !tp_delivery_is_wanted(&settings, process->child, in->state->header.steps, process->saw_backward);
            failed = ret->unwanted ? 0 : write_files(in, &settings, stop, ret, error);
        }
        tp_spool_in_close(in, folder, name, !failed);
    }
    tp_arena_free(&arena);
    return failed;
}

void tp_recovered_line(const struct tp_recovered *r, const char *name, char *line, size_t size)
{
    int at = snprintf(line, size, "%s: wrote %llu files of %s (%s, process %u), which died, to %s: %llu operators and ranges", name,
                      (unsigned long long)r->files, r->process, r->host, r->pid, r->folder, (unsigned long long)r->kept);
    if (r->damaged && at > 0 && (size_t)at < size)
        at += snprintf(line + at, size - (size_t)at, "; %llu damaged blocks are left out", (unsigned long long)r->damaged);
    if (at > 0 && (size_t)at < size)
        snprintf(line + at, size - (size_t)at, "%s",
                 r->chunks_lost ? "; missing is what its threads had not handed over, as its spool lay on a disk"
                                : "; missing is what its threads were just storing");
}
