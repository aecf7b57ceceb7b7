#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../agent/dir.h"
#include "../agent/drain.h"
#include "../agent/log.h"
#include "../agent/spool_in.h"
#include "chrome_head.h"
#include "delivery.h"
#include "folder.h"
#include "recover.h"

static struct tp_delivery *delivery;

/* Of this process, separated by blanks. */
static void read_command(char *text, size_t size)
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    bytes = bytes < 0 ? 0 : bytes;
    while (bytes > 0 && text[bytes - 1] == '\0')
        bytes--;
    text[bytes] = '\0';
    for (ssize_t i = 0; i < bytes; i++)
        if (text[i] == '\0')
            text[i] = ' ';
}

/* For whoever may have to write this process's files when it is dead. */
static void describe_settings(const struct tp_settings *settings, struct tp_spool_process *process)
{
    size_t used = 0, size = sizeof process->settings - 1;
    for (unsigned i = 0; settings->given && i < TP_SETTINGS_COUNT; i++) {
        if (!settings->given[i])
            continue;
        size_t length = strlen(tp_setting(i)->name) + 1 + strlen(settings->given[i]) + 1;
        if (length > size - used) {
            process->settings_cut = true;
            continue;
        }
        snprintf(process->settings + used, length, "%s=%s", tp_setting(i)->name, settings->given[i]);
        used += length;
    }
    process->settings[used] = '\0';
}

static int prepare(void)
{
    struct tp_spool_process *process = &tp_session.spool.state->process;
    const struct tp_collector *observer = tp_session.collectors[0];
    process->identity = tp_session.identity;
    process->child = tp_session.child;
    process->attached = tp_clock_pair_now();
    tp_folder_absolute(tp_session.settings->dir, process->folder);
    read_command(process->command, sizeof process->command);
    snprintf(process->pytorch, sizeof process->pytorch, "%s", observer->version());
    snprintf(process->observed, sizeof process->observed, "%s", observer->way());
    describe_settings(tp_session.settings, process);
    atomic_store_explicit(&process->is_described, 1, memory_order_release);
    struct tp_delivery_process of = {.settings = tp_session.settings,
                                     .identity = &tp_session.identity,
                                     .log = &tp_session.spool.log,
                                     .names = tp_session.spool.names,
                                     .folder = process->folder,
                                     .attached = process->attached,
                                     .pytorch = process->pytorch,
                                     .observed = process->observed,
                                     .command = process->command[0] ? process->command : NULL};
    tp_chrome_tell_reserved(tp_session.settings);
    delivery = tp_delivery_new(&of);
    return delivery ? 0 : -ENOMEM;
}

static void step(uint64_t number, uint64_t begin, uint64_t end, enum tp_step_kind kind)
{
    tp_delivery_step(delivery, number, begin, end, kind);
}

static bool is_wanted(void)
{
    return tp_delivery_is_wanted(tp_session.settings, tp_session.child, tp_session.edges,
                                 atomic_load(&tp_session.saw_backward));
}

static void cycle(struct tp_cycle *finished)
{
    if (is_wanted())
        tp_delivery_cycle(delivery, finished, tp_spool_held(&tp_session.spool));
}

static bool prints(void)
{
    const struct tp_identity *identity = &tp_session.identity;
    return identity->rank_set ? identity->rank == 0 : !tp_session.child;
}

static void finish(void)
{
    if (!is_wanted())
        return;
    struct tp_drain_cost spent;
    tp_drain_get_cost(&spent);
    struct tp_clock_pair now = tp_clock_pair_now();
    struct tp_clock_map map = tp_clock_map_between(&tp_session.attached, &now);
    double ticks_per_ns = tp_clock_ticks_per_ns(&map);
    struct tp_delivery_end end = {.ended = tp_session.ended,
                                  .clock = now,
                                  .edges = tp_session.edges,
                                  .next_step = tp_session.step,
                                  .cost = {.background_cpu_ns = spent.drain_cpu_ns + spent.worker_cpu_ns,
                                           .edge_ns = (uint64_t)((double)tp_session.edge_ns_ticks / ticks_per_ns),
                                           .attach_ns = (uint64_t)((double)tp_session.attach_ticks / ticks_per_ns)},
                                  .prints = prints()};
    tp_delivery_finish(delivery, &end);
}

static void forget(void)
{
    if (delivery) /* else a child that never recorded forked again */
        tp_delivery_free(delivery);
    delivery = NULL;
}

/* One spool that lies in the folder, if its process is dead. */
static void recover_one(void *stop, int folder, const char *name)
{
    char line[5120];
    struct tp_recovered recovered;
    struct tp_error error = {0};
    /* Our own is not even opened: a child that is forked just then would inherit the descriptor. */
    const char *own = strrchr(tp_session.spool.path, '/');
    if (!tp_spool_in_is_name(name) || atomic_load((const _Atomic bool *)stop) || (own && strcmp(own + 1, name) == 0))
        return;
    int failed = tp_recover(folder, name, stop, &recovered, &error);
    if (!failed && !recovered.unwanted) {
        tp_recovered_line(&recovered, name, line, sizeof line);
        tp_log(TP_LOG_WARN, "%s", line);
    } else if (failed && failed != -ECANCELED && tp_error_line(&error, line, sizeof line)) {
        tp_log(failed == -EIO ? TP_LOG_WARN : TP_LOG_DEBUG, "%s", line);
    }
}

static void recover(const _Atomic bool *stop)
{
    const char *folder = tp_session.settings->spool_dir ? tp_session.settings->spool_dir : TP_SPOOL_FOLDER;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    tp_dir_each(fd, recover_one, (void *)stop);
    close(fd);
}

const struct tp_session_outputs tp_live_outputs = {
    .recover = recover, .prepare = prepare, .step = step, .cycle = cycle, .finish = finish, .forget = forget};
