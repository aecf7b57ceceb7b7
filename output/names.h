/*
 * names.h: the names of output files and folders: `%h %p %r %t %s %c %%` in TPROF_DIR, TPROF_TRACE_ID and the worker
 * name, and TensorBoard's `{worker}.{time_ns}.pt.trace.json[.gz]`.
 *
 * The worker name is one file name component: '/' and control characters become '_', a leading '.' too, and it is cut
 * so that the whole file name fits NAME_MAX. torch_tb_profiler splits at the last dots, so dots in a host name are
 * kept.
 */
#ifndef TP_NAMES_H
#define TP_NAMES_H

#include "../agent/base.h"
#include "../agent/error.h"
#include "writer.h"

struct tp_name_values {
    const struct tp_identity *identity;
    uint64_t time_ns, step, cycle;
};

/* Expands escapes into text[size]. -EINVAL with error set for an unknown escape, -ENAMETOOLONG. */
int tp_names_expand(const char *pattern, const struct tp_name_values *values, char *text, size_t size,
                    struct tp_error *error);

/* The worker part: the setting expanded, or {host}_{pid}[_rank{r}] by default. Always gives a usable name. */
void tp_names_worker(const char *setting, const struct tp_name_values *values, char *text, size_t size);

/* "{worker}.{time_ns}.{suffix}[.gz]" */
void tp_names_file(const char *worker, uint64_t time_ns, const char *suffix, bool gzip, char *text, size_t size);

/* A time for the next file name: now, but never one that this process gave before (a clock may stand still). */
uint64_t tp_names_time(uint64_t now_ns);

#endif
