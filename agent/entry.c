/*
 * entry.c: where the library comes to life in a process: the constructor, and what happens when PyTorch has been
 * loaded. The one file of agent/ that knows collectors and outputs. Never linked into unit tests.
 *
 * LD_PRELOAD reaches every shell, compiler and tool of a job: the constructor only notes our variables. Threads,
 * files and messages wait until PyTorch is seen, except that TPROF_STRICT reads the settings at once.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "../collectors/cuda/cupti.h"
#include "../collectors/python/place.h"
#include "../collectors/torch/ops.h"
#include "../output/live.h"
#include "hooks.h"
#include "log.h"
#include "process.h"
#include "session.h"
#include "settings.h"

#define EXIT_BAD_SETTING 78 /* EX_CONFIG */
#define MAX_VARIABLES 96

extern char **environ;

/* Our variables as they were at the start: their strings lie in the block that the kernel made and stay as they are. */
static char *variables[MAX_VARIABLES + 1];

static const struct tp_collector *const collectors[] = {&tp_torch_ops, &tp_python_place, &tp_cuda_cupti, NULL};

static struct tp_settings settings;

static bool is_ours(const char *variable)
{
    return strncmp(variable, "TPROF_", 6) == 0 || strncmp(variable, "ENABLE_PYTORCH_EXECUTION_TRACE", 30) == 0;
}

/* Behind the last line stands what follows from them. */
static void tell(const struct tp_error *lines, unsigned count, enum tp_log_level level, const char *consequence)
{
    for (unsigned i = 0; i < count && i < TP_SETTINGS_MAX_LINES; i++) {
        char line[800];
        tp_error_line(&lines[i], line, sizeof line);
        tp_log(level, "%s%s", line, i + 1 == count ? consequence : "");
    }
    if (count > TP_SETTINGS_MAX_LINES)
        tp_log(level, "and %u more such lines%s", count - TP_SETTINGS_MAX_LINES, consequence);
}

static struct tp_settings_report report;

/* True when the settings can be used; what is wrong with them has been said, and what follows from it. */
static bool load_settings(const char *consequence)
{
    static struct tp_arena arena; /* the texts of the settings live as long as the process */
    memset(&report, 0, sizeof report);
    bool good = tp_settings_load(&settings, variables, &arena, &report) == 0;
    tp_log_set_level(settings.log);
    if (!good)
        tell(report.error, report.errors, TP_LOG_QUIET, consequence);
    return good;
}

static void library_loaded(void)
{
    static bool seen;
    if (seen)
        return;
    seen = true;
    if (!load_settings("; tprof stays out, the program runs") || !settings.enabled)
        return;
    tell(report.note, report.notes, TP_LOG_WARN, "");
    if (tp_process_init() != 0)
        tp_log(TP_LOG_WARN, "no memory to be called when the process ends; this process is not recorded");
    else if (tp_session_attach(&settings, collectors, &tp_live_outputs) == 0)
        tp_process_catch_signals();
}

/* A relative file means the working directory at the start: programs change theirs before they load PyTorch. */
static void make_config_absolute(char **variable)
{
    static char absolute[2 * PATH_MAX];
    static const char name[] = "TPROF_CONFIG=";
    size_t length = sizeof name - 1;
    if (strncmp(*variable, name, length) != 0 || !(*variable)[length] || (*variable)[length] == '/')
        return;
    char folder[PATH_MAX];
    if (getcwd(folder, sizeof folder) && strlen(*variable) < PATH_MAX) {
        snprintf(absolute, sizeof absolute, "%s%s/%s", name, folder, *variable + length);
        *variable = absolute;
    }
}

__attribute__((constructor)) static void on_load(void)
{
    if (getauxval(AT_SECURE)) /* a setuid program: its user may not steer it through us */
        return;
    size_t count = 0;
    for (char **v = environ; v && *v && count < MAX_VARIABLES; v++)
        if (is_ours(*v)) {
            variables[count] = *v;
            make_config_absolute(&variables[count++]);
        }
    if (count > 0 && tp_settings_strict(variables) && !load_settings(""))
        _exit(EXIT_BAD_SETTING);
    tp_hooks_library_loaded = library_loaded;
}
