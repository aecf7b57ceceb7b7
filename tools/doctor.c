/*
 * doctor.c: `tprof doctor`: what works on this machine, and why what does not. Each finding is one row; rows are
 * gathered first and then printed, as text or as JSON. A finding that stops the CPU way makes the exit status 1.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../agent/settings.h"
#include "../output/folder.h"
#include "child.h"
#include "commands.h"
#include "findings.h"
#include "preload.h"

extern char **environ;

enum verdict { WORKS, REMARK, BROKEN };

struct row {
    enum verdict verdict;
    const char *subject;
    char text[900];
};

static struct doctor {
    struct row rows[128];
    size_t count;
    struct tp_settings settings;
    struct tp_settings_report report;
    struct tp_arena arena;
    char library[TP_PRELOAD_PATH];
    bool observes;
} doctor;

static const char help[] =
    "usage: tprof doctor [--json] [[--] PROGRAM [arguments]]\n"
    "\n"
    "Says what works on this machine, and why what does not: the library, the clock, the room for records, the "
    "settings in\nthe environment; then runs PROGRAM (python3, with a few operators, if none is given) under tprof, "
    "with its files in a\ntemporary folder, and shows what tprof says there.\n"
    "\n"
    "  --json   one JSON object on stdout instead\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 programs can be observed on the CPU, 1 they cannot, 2 wrong use.\n";

static void TP_PRINTF(3, 4) find(enum verdict verdict, const char *subject, const char *format, ...)
{
    if (doctor.count == TP_COUNT(doctor.rows))
        return;
    struct row *row = &doctor.rows[doctor.count++];
    row->verdict = verdict;
    row->subject = subject;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->text, sizeof row->text, format, arguments);
    va_end(arguments);
}

static void find_library(void)
{
    struct tp_error error = {0};
    char line[800], said[600];
    if (tp_preload_find(doctor.library, &error) < 0 || tp_preload_set(doctor.library, &error) < 0) {
        tp_error_line(&error, line, sizeof line);
        find(BROKEN, "library", "%s", line);
        return;
    }
    /* The loader says on stderr what it cannot preload, and goes on without it. */
    int status = tp_child_run((const char *[]){"/proc/self/exe", "--version", NULL}, said, sizeof said);
    said[strcspn(said, "\n")] = '\0';
    if (status != 0 || said[0])
        find(BROKEN, "library", "%s cannot be preloaded: %s", doctor.library, said[0] ? said : "the loader fails");
    else
        find(WORKS, "library", "%s", doctor.library);
}

static void find_clock(void)
{
    char name[64] = "unknown\n";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file && !fgets(name, sizeof name, file))
        strcpy(name, "unknown\n");
    if (file)
        fclose(file);
    name[strcspn(name, "\n")] = '\0';
    if (strcmp(name, "tsc") == 0)
        find(WORKS, "clock", "tsc: a time stamp is one instruction");
    else
        find(REMARK, "clock", "%s: the kernel does not keep time by the cycle counter, so each time stamp is a "
                              "clock_gettime()", name);
}

static void find_spool(void)
{
    const char *folder = doctor.settings.spool_dir ? doctor.settings.spool_dir : "/dev/shm";
    unsigned long long budget = doctor.settings.buffer_bytes, room;
    struct statvfs space;
    if (statvfs(folder, &space) != 0 || access(folder, W_OK) != 0) {
        find(REMARK, "records", "%s: %s; they wait in memory, and do not outlive SIGKILL", folder, strerror(errno));
        return;
    }
    room = (unsigned long long)space.f_bavail * space.f_frsize;
    if (room < budget)
        find(REMARK, "records", "%s has %llu MiB free of the %llu of TPROF_BUFFER_MB: they may have to wait in "
                                "memory, and then do not outlive SIGKILL", folder, room >> 20, budget >> 20);
    else
        find(WORKS, "records", "%s has %llu MiB free, and at most %llu are used (TPROF_BUFFER_MB)", folder, room >> 20,
             budget >> 20);
}

/* The folder itself, or the nearest one above it that is there. */
static void find_output_folder(void)
{
    char path[TP_FOLDER_PATH];
    tp_folder_absolute(doctor.settings.dir, path);
    path[strcspn(path, "%")] = '\0'; /* what an escape becomes is known in the program alone */
    while (access(path, F_OK) != 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (!slash)
            break;
        slash[slash == path] = '\0';
    }
    if (access(path, W_OK | X_OK) == 0)
        find(WORKS, "files", "%s: %s can be written", doctor.settings.dir, path);
    else
        find(BROKEN, "files", "%s: %s: %s", doctor.settings.dir, path, strerror(errno));
}

static void find_jansson(void)
{
    void *library = dlopen("libjansson.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library)
        find(WORKS, "JSON", "libjansson.so.4 is here: programs read TPROF_CONFIG themselves");
    else
        find(REMARK, "JSON", "libjansson.so.4 is not here (Debian package libjansson4): TPROF_CONFIG works through "
                             "`tprof run` alone; TPROF_METADATA_JSON and TPROF_EXPERIMENTAL_CONFIG have no effect");
    if (library)
        dlclose(library);
}

static void find_settings(void)
{
    char line[800];
    tp_settings_load(&doctor.settings, environ, &doctor.arena, &doctor.report);
    for (unsigned i = 0; i < doctor.report.errors && i < TP_SETTINGS_MAX_LINES; i++) {
        tp_error_line(&doctor.report.error[i], line, sizeof line);
        find(BROKEN, "settings", "%s", line);
    }
    for (unsigned i = 0; i < doctor.report.notes && i < TP_SETTINGS_MAX_LINES; i++) {
        tp_error_line(&doctor.report.note[i], line, sizeof line);
        find(REMARK, "settings", "%s", line);
    }
    if (doctor.report.errors == 0)
        find(WORKS, "settings", "%s", doctor.report.notes ? "the others are good" : "all good");
    if (!doctor.settings.enabled)
        find(BROKEN, "settings", "TPROF_ENABLED is 0");
}

/* Removes the folder; how many files it held. */
static size_t remove_folder(const char *path)
{
    size_t files = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && unlinkat(dirfd(folder), entry->d_name, 0) == 0)
            files++;
    if (folder)
        closedir(folder);
    rmdir(path);
    return files;
}

/* What the agent said, up to its report (which begins with a rule). */
static void find_agent_lines(char *said)
{
    static const char prefix[] = "tprof: ";
    for (char *line = said, *next; line && strncmp(line, "====", 4) != 0; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (strncmp(line, prefix, sizeof prefix - 1) != 0)
            continue;
        bool observes = strncmp(line + sizeof prefix - 1, "observes ", 9) == 0;
        doctor.observes |= observes;
        find(observes ? WORKS : REMARK, "program", "%s", line + sizeof prefix - 1);
    }
}

static void find_program(char **argv)
{
    static const char *const preset[] = {"python3", "-c", "import torch; torch.ones(2) + 1", NULL};
    static char said[64 * 1024];
    char folder[] = "/tmp/tprof-doctor.XXXXXX";
    if (!mkdtemp(folder)) {
        find(BROKEN, "program", "/tmp: %s", strerror(errno));
        return;
    }
    setenv("TPROF_LOG", "info", 1);
    setenv("TPROF_DIR", folder, 1);
    int status = tp_child_run(argv ? (const char *const *)argv : preset, said, sizeof said);
    size_t files = remove_folder(folder);
    const char *name = argv ? argv[0] : preset[0];
    char reason[400] = "";
    size_t length = strlen(said);
    while (length > 0 && said[length - 1] == '\n')
        said[--length] = '\0';
    if (status > 0 && length > 0) { /* its last words */
        const char *last = strrchr(said, '\n');
        snprintf(reason, sizeof reason, ": %s", last ? last + 1 : said);
    }
    find_agent_lines(said);
    if (status < 0)
        find(BROKEN, "program", "%s: %s", name, strerror(-status));
    else if (status > 0)
        find(doctor.observes ? REMARK : BROKEN, "program", "%s ended with status %d%s", name, status, reason);
    if (status >= 0 && doctor.observes)
        find(files ? WORKS : BROKEN, "program", "it wrote %zu files", files);
    else if (status == 0)
        find(BROKEN, "program", "%s loaded no PyTorch that could be observed", name);
}

static void find_activities(void)
{
    static const char *const others[] = {"cuda", "xpu", "mtia", "hpu", "privateuse1"};
    if (doctor.observes)
        find(WORKS, "cpu", "operators and ranges of every thread");
    else
        find(BROKEN, "cpu", "see above");
    for (size_t i = 0; i < TP_COUNT(others); i++)
        find(REMARK, others[i], "not in this build yet");
}

static void print_text(void)
{
    static const char *const marks[] = {[WORKS] = "yes", [REMARK] = " - ", [BROKEN] = " NO"};
    for (size_t i = 0; i < doctor.count; i++) {
        const struct row *row = &doctor.rows[i];
        if (strcmp(row->subject, "cpu") == 0)
            printf("activities:\n");
        printf("%s  %-11s  %s\n", marks[row->verdict], row->subject, row->text);
    }
}

static void print_json(void)
{
    static const char *const verdicts[] = {[WORKS] = "works", [REMARK] = "remark", [BROKEN] = "broken"};
    printf("{\"works\":%s,\"findings\":[", doctor.observes ? "true" : "false");
    for (size_t i = 0; i < doctor.count; i++) {
        const struct row *row = &doctor.rows[i];
        printf("%s{\"subject\":", i ? "," : "");
        print_json_string(row->subject, stdout);
        printf(",\"verdict\":\"%s\",\"text\":", verdicts[row->verdict]);
        print_json_string(row->text, stdout);
        printf("}");
    }
    printf("]}\n");
}

int tp_command_doctor(int argc, char **argv)
{
    bool json = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return TP_DONE;
        }
        if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "tprof doctor: unknown option %s; there are --json and --help\n", argv[i]);
            return TP_WRONG_USE;
        }
        json = true;
    }
    tp_arena_init(&doctor.arena, 0);
    find_settings();
    find_library();
    find_clock();
    find_spool();
    find_output_folder();
    find_jansson();
    find_program(i < argc ? argv + i : NULL);
    find_activities();
    size_t broken = 0;
    for (size_t f = 0; f < doctor.count; f++)
        broken += doctor.rows[f].verdict == BROKEN;
    doctor.observes &= broken == 0;
    if (json)
        print_json();
    else
        print_text();
    tp_arena_free(&doctor.arena);
    return broken ? TP_FAILED : TP_DONE;
}
