/* The JSON file of TPROF_CONFIG: forms of values, places of errors, what wins, and whose memory jansson uses. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../agent/json_library.h"
#include "../../agent/settings.h"
#include "suites.h"

static struct tp_settings settings;
static struct tp_settings_report report;
static struct tp_arena arena;
static char path[] = "/tmp/tprof-check-settings.XXXXXX", config[64];

static void set_up(void)
{
    strcpy(path, "/tmp/tprof-check-settings.XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(config, sizeof config, "TPROF_CONFIG=%s", path);
    tp_arena_init(&arena, 0);
}

static void tear_down(void)
{
    unlink(path);
    tp_arena_free(&arena);
}

static void write_file(const char *text, size_t bytes)
{
    int file = open(path, O_WRONLY | O_TRUNC);
    ck_assert_int_eq(write(file, text, bytes), (ssize_t)bytes);
    close(file);
}

static int load(const char *text, const char *more)
{
    write_file(text, strlen(text));
    report = (struct tp_settings_report){0};
    return tp_settings_load(&settings, (char *const *)(const char *const[]){config, more, NULL}, &arena, &report);
}

/* The line without the name of the file. */
static const char *line(const struct tp_error *error)
{
    static char text[800];
    tp_error_line(error, text, sizeof text);
    char prefix[80];
    snprintf(prefix, sizeof prefix, "TPROF_CONFIG: %s", path);
    ck_assert_msg(strncmp(text, prefix, strlen(prefix)) == 0, "%s", text);
    return text + strlen(prefix);
}

START_TEST(every_form_of_value)
{
    ck_assert_int_eq(load("{\"gzip_level\": 7, \"use_gzip\": false, \"row_limit\": \"-1\", \"buffer_mb\": null,\n"
                          " \"activities\": [\"cpu:[cpu_op,user_annotation]\"], \"on_trace_ready\": [\"chrome\", "
                          "\"table\"],\n \"schedule\": {\"wait\": 0, \"active\": 5}, \"metadata\": {\"a\": \"b\", "
                          "\"n\": 3},\n \"metadata_json\": {\"x\": [1.10, {\"}\": \"\\\"{\"}]},\n"
                          " \"experimental_config\": {\"capture_overload_names\": true}, \"dir\": \"/a\\u00e4\"}",
                          NULL),
                     0);
    ck_assert_uint_eq(report.notes, 0);
    ck_assert_int_eq(settings.gzip_level, 7);
    ck_assert(!settings.use_gzip);
    ck_assert_int_eq(settings.row_limit, -1);
    ck_assert_uint_eq(settings.buffer_bytes, 256u << 20);
    ck_assert_uint_eq(settings.activities.types[TP_ACTIVITY_CPU], 1u << TP_TYPE_CPU_OP | 1u << TP_TYPE_USER_ANNOTATION);
    ck_assert_uint_eq(settings.outputs, 1u << TP_OUTPUT_CHROME | 1u << TP_OUTPUT_TABLE);
    ck_assert(settings.schedule_set && settings.schedule.wait == 0 && settings.schedule.active == 5);
    ck_assert_str_eq(settings.metadata, "a=b,n=3");
    ck_assert_str_eq(settings.metadata_json, "{\"x\": [1.10, {\"}\": \"\\\"{\"}]}");
    ck_assert(settings.experimental_config.capture_overload_names);
    ck_assert_str_eq(settings.dir, "/a\xc3\xa4");
}
END_TEST

START_TEST(the_environment_wins)
{
    ck_assert_int_eq(load("{\"gzip_level\": 99}", "TPROF_GZIP_LEVEL=2"), 0);
    ck_assert_int_eq(settings.gzip_level, 2);
    ck_assert_int_eq(load("{\"gzip_level\": 9}", "TPROF_GZIP_LEVEL="), 0); /* empty is unset */
    ck_assert_int_eq(settings.gzip_level, 9);
    ck_assert_int_eq(load("{\"gzip_level\": 9}", "TPROF_GZIP_LEVEL=x"), -EINVAL);
    ck_assert_str_eq(report.error[0].where, "TPROF_GZIP_LEVEL");
}
END_TEST

static const struct {
    const char *text, *said;
} errors[] = {
    {"{\n  \"use_gzip\": true,\n  \"gzip_level\": \"12\"\n}", ":3:3: gzip_level: \"12\"; accepted: 1 to 9"},
    {"{\"gzip_level\": 1.5}", ":1:2: gzip_level: \"1.5\"; accepted: 1 to 9"},
    {"{\"gzip_level\": true}", ":1:2: gzip_level: true is not accepted; accepted: 1 to 9"},
    {"{\"use_gzip\": 2}", ":1:2: use_gzip: \"2\"; accepted: 0 or 1"},
    {"{\"use_gzip\": [true]}", ":1:2: use_gzip: a list is not accepted; accepted: 0 or 1"},
    {"{\"log\": {}}", ":1:2: log: an object is not accepted; accepted: quiet, warn, info, debug"},
    {"{\"metadata\": {\"a\": [1]}}", ":1:2: metadata: \"a\" is a list; accepted: key=value,..."},
    {"{\"metadata\": {\"a\": \"x,y\"}}",
     ":1:2: metadata: \"a\" holds a comma or an equals sign; accepted: such text in metadata_json"},
    {"{\"metadata\": {\"a=b\": \"x\"}}",
     ":1:2: metadata: \"a=b\" holds a comma or an equals sign; accepted: such text in metadata_json"},
    {"{\"schedule\": {\"wait\": -1, \"active\": 1}}",
     ":1:2: schedule: 'wait=-1' is not a number of steps; accepted: always, or "
     "wait=1,warmup=1,active=3,repeat=1,skip_first=0,skip_first_wait=0 (numbers of steps from 0 to "
     "1000000000000000; active from 1, and never left out)"},
    {"{\"activities\": []}",
     ":1:2: activities: the list is empty; accepted: a list of cpu, cuda, xpu, mtia, hpu, privateuse1, each with a "
     "filter where wanted, as in cpu:[cpu_op]"},
    {"{\"on_trace_ready\": [1]}", NULL},
    {"{\"config\": \"b.json\"}", ":1:2: config: a file cannot name another one; accepted: the environment names the "
                                 "file"},
    {"{\"log\": \"warn\", \"log\": \"info\"}", ":1:21: duplicate object key near '\"log\"'"},
    {"{\"log\": \"warn\",\n}", ":2:1: string or '}' expected near '}'"},
    {"{\"log\": \"wa\\u0000rn\"}", NULL},
    {"[1]", ": is not an object; accepted: a JSON object"},
    {"", NULL},
    {"\xef\xbb\xbf{}", NULL},
    {"{\"dir\": \"\xff\"}", NULL},
};

START_TEST(an_error_names_its_place)
{
    ck_assert_int_eq(load(errors[_i].text, NULL), -EINVAL);
    ck_assert_uint_eq(report.errors, 1);
    const char *said = line(&report.error[0]);
    if (errors[_i].said)
        ck_assert_str_eq(said, errors[_i].said);
}
END_TEST

START_TEST(a_nul_byte_ends_nothing)
{
    static const char text[] = "{\"log\": \"info\"}\0{\"dir\": 1}";
    load("", NULL);
    write_file(text, sizeof text - 1);
    report = (struct tp_settings_report){0};
    ck_assert_int_eq(tp_settings_load(&settings, (char *const *)(const char *const[]){config, NULL}, &arena, &report),
                     -EINVAL);
}
END_TEST

START_TEST(unknown_keys_are_noted)
{
    ck_assert_int_eq(load("{\n\"gzip_levle\": 3, \"foo\": 1,\n\"enable_pytorch_execution_trace_extras\": true, "
                          "\"DIR\": \"x\"}", NULL),
                     0);
    ck_assert_uint_eq(report.notes, 4);
    ck_assert_str_eq(line(&report.note[0]), ":2:1: gzip_levle is not known; is gzip_level meant?");
    ck_assert_str_eq(line(&report.note[1]), ":2:18: foo is not known");
    ck_assert_str_eq(line(&report.note[2]), ":3:48: DIR is not known; is dir meant?");
    ck_assert_str_eq(line(&report.note[3]), ":3:1: enable_pytorch_execution_trace_extras: resources of "
                                            "execution traces are not in this build yet; the rest goes on");
}
END_TEST

START_TEST(what_is_no_file)
{
    static const struct {
        const char *variable, *said;
    } rows[] = {
        {"TPROF_CONFIG=/nonesuch", "TPROF_CONFIG: /nonesuch: cannot be read: No such file or directory"},
        {"TPROF_CONFIG=/tmp", "TPROF_CONFIG: /tmp: is not a file"},
        {"TPROF_CONFIG=/dev/null", "TPROF_CONFIG: /dev/null: is not a file"},
    };
    for (size_t i = 0; i < TP_COUNT(rows); i++) {
        char text[800];
        const char *const variables[] = {rows[i].variable, NULL};
        report = (struct tp_settings_report){0};
        ck_assert_int_eq(tp_settings_load(&settings, (char *const *)variables, &arena, &report), -EINVAL);
        tp_error_line(&report.error[0], text, sizeof text);
        ck_assert_str_eq(text, rows[i].said);
    }
    ck_assert_int_eq(truncate(path, (1 << 20) + 1), 0);
    report = (struct tp_settings_report){0};
    ck_assert_int_eq(tp_settings_load(&settings, (char *const *)(const char *const[]){config, NULL}, &arena, &report),
                     -EINVAL);
    ck_assert_str_eq(line(&report.error[0]), ": is longer than 1 MiB");
}
END_TEST

START_TEST(a_file_of_brackets_ends_well)
{
    size_t bytes = 1 << 20;
    char *text = malloc(bytes + 1);
    memset(text, '[', bytes);
    text[bytes] = '\0';
    ck_assert_int_eq(load(text, NULL), -EINVAL);
    for (size_t i = 0; i + 3 <= bytes; i += 3)
        memcpy(text + i, i ? ",[]" : "[[]", 3);
    text[bytes - 1] = ']';
    ck_assert_int_eq(load(text, NULL), -EINVAL); /* valid, or more than there is memory for; but no object */
    free(text);
}
END_TEST

START_TEST(strict_from_either)
{
    static const struct {
        const char *file, *variable;
        bool strict;
    } rows[] = {
        {"{\"strict\": true}", NULL, true},
        {"{\"strict\": 0}", NULL, false},
        {"{\"strict\": true}", "TPROF_STRICT=0", false},
        {"{\"strict\": \"1\"}", "TPROF_STRICT=", true},
        {"{\"log\": \"info\"}", NULL, false},
        {"{\"strict\": true", NULL, false},
        {"{", "TPROF_STRICT=1", true},
        {"{}", "TPROF_STRICT=x", false},
    };
    for (size_t i = 0; i < TP_COUNT(rows); i++) {
        write_file(rows[i].file, strlen(rows[i].file));
        ck_assert_int_eq(tp_settings_strict((char *const *)(const char *const[]){config, rows[i].variable, NULL}),
                         rows[i].strict);
    }
    ck_assert(!tp_settings_strict((char *const *)(const char *const[]){NULL}));
}
END_TEST

START_TEST(entries_are_what_variables_would_be)
{
    static const char text[] = "{\"row_limit\": 5,\n \"activities\": [\"cpu\", \"cuda\"]}";
    struct tp_settings_entry entries[TP_SETTINGS_COUNT] = {{0}};
    write_file(text, strlen(text));
    report = (struct tp_settings_report){0};
    ck_assert_int_eq(tp_settings_read_file(path, &arena, &report, entries), 0);
    ck_assert_str_eq(entries[TP_SETTING_TPROF_ROW_LIMIT].name, "TPROF_ROW_LIMIT");
    ck_assert_str_eq(entries[TP_SETTING_TPROF_ROW_LIMIT].value, "5");
    ck_assert_str_eq(entries[TP_SETTING_TPROF_ACTIVITIES].value, "cpu,cuda");
    ck_assert_uint_eq(entries[TP_SETTING_TPROF_ACTIVITIES].line, 2);
    ck_assert_uint_eq(entries[TP_SETTING_TPROF_ACTIVITIES].column, 2);
    ck_assert_ptr_null(entries[TP_SETTING_TPROF_DIR].name);
}
END_TEST

#ifdef TP_HAVE_JANSSON
/* In a process of its own (check forks), where nothing has loaded jansson. */
START_TEST(jansson_is_opened_and_closed)
{
    ck_assert_ptr_null(dlopen("libjansson.so.4", RTLD_NOW | RTLD_NOLOAD));
    ck_assert_int_eq(load("{\"gzip_level\": 7}", NULL), 0);
    ck_assert_ptr_null(dlopen("libjansson.so.4", RTLD_NOW | RTLD_NOLOAD));
    /* Where the job has it, its allocator stays the job's. */
    void *library = dlopen("libjansson.so.4", RTLD_NOW);
    ck_assert_ptr_nonnull(library);
    void (*get)(json_malloc_t *, json_free_t *);
    *(void **)&get = dlsym(library, "json_get_alloc_funcs");
    json_malloc_t before, after;
    json_free_t unused;
    get(&before, &unused);
    struct tp_json_library opened;
    ck_assert_ptr_null(tp_json_library_open(&opened));
    get(&after, &unused);
    ck_assert(before == after && !opened.own_memory);
    tp_json_library_close(&opened);
    ck_assert_int_eq(load("{\"gzip_level\": 7}", NULL), 0);
    ck_assert_ptr_nonnull(dlopen("libjansson.so.4", RTLD_NOW | RTLD_NOLOAD));
}
END_TEST
#endif

Suite *settings_file_suite(void)
{
    Suite *suite = suite_create("settings_file");
    TCase *tests = tcase_create("file");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_form_of_value);
    tcase_add_test(tests, the_environment_wins);
    tcase_add_loop_test(tests, an_error_names_its_place, 0, TP_COUNT(errors));
    tcase_add_test(tests, a_nul_byte_ends_nothing);
    tcase_add_test(tests, unknown_keys_are_noted);
    tcase_add_test(tests, what_is_no_file);
    tcase_add_test(tests, a_file_of_brackets_ends_well);
    tcase_add_test(tests, strict_from_either);
    tcase_add_test(tests, entries_are_what_variables_would_be);
#ifdef TP_HAVE_JANSSON
    tcase_add_test(tests, jansson_is_opened_and_closed);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
