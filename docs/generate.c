/*
 * Fills in a page: copies a template from stdin to stdout, where a line @NAME@ is replaced by a list that is made
 * from settings.def, experimental.def or commands.def. `make docs` runs it over docs/templates; a test that nobody
 * forgot to.
 */
#include <stdio.h>
#include <string.h>

#include "../agent/settings.h"
#include "../tools/commands.h"
#include "../tools/options.h"

static const struct {
    const char *name, *help;
} commands[] = {
#define COMMAND(name, function, help) {name, help},
#include "../tools/commands.def"
#undef COMMAND
};

/* A table cell: '|' would end it. */
static void put_markdown(const char *text)
{
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
}

/* A hyphen that is typed, a backslash, and a dot or quote that begins a line. */
static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        printf("\\&");
    for (; *text; text++)
        if (*text == '\\')
            printf("\\e");
        else
            printf(*text == '-' ? "\\-" : "%c", *text);
}

static const char *preset(unsigned i)
{
    return tp_setting(i)->preset ? tp_setting(i)->preset : tp_setting(i)->unset;
}

static void settings_markdown(void)
{
    printf("| variable | value | default | what it does |\n|---|---|---|---|\n");
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char accepted[400];
        tp_setting_accepted(i, accepted, sizeof accepted);
        printf("| %s | ", tp_setting(i)->name);
        put_markdown(accepted);
        printf(" | ");
        put_markdown(preset(i));
        printf(" | ");
        put_markdown(tp_setting(i)->help);
        printf("%s |\n", tp_setting(i)->later ? " (not in this build yet)" : "");
    }
}

static const char *verdict(const struct tp_experimental_field *field)
{
    static const char *const words[][2] = {{"HONOURED", "honoured"}, {"ALWAYS", "always on here"}, {"LATER", "not yet"},
                                           {"REFUSED", "refused"}};
    for (size_t i = 0; i < TP_COUNT(words); i++)
        if (strcmp(field->how, words[i][0]) == 0)
            return words[i][1];
    return field->how;
}

static void experimental_markdown(void)
{
    size_t count;
    const struct tp_experimental_field *fields = tp_experimental_fields(&count);
    printf("| field | here | what happens |\n|---|---|---|\n");
    for (size_t i = 0; i < count; i++)
        printf("| %s | %s | %s |\n", fields[i].name, verdict(&fields[i]), fields[i].why);
}

static void item(const char *tag, const char *help, bool later, const char *accepted, const char *unset)
{
    printf(".TP\n.B ");
    put_roff(tag);
    printf("\n");
    put_roff(help);
    printf("%s.\n.br\nValue: ", later ? " (not in this build yet)" : "");
    put_roff(accepted);
    printf(".\n.br\nDefault: ");
    put_roff(unset);
    printf(".\n");
}

static void settings_roff(void)
{
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char accepted[400];
        tp_setting_accepted(i, accepted, sizeof accepted);
        item(tp_setting(i)->name, tp_setting(i)->help, tp_setting(i)->later, accepted, preset(i));
    }
}

static void experimental_roff(void)
{
    size_t count;
    const struct tp_experimental_field *fields = tp_experimental_fields(&count);
    for (size_t i = 0; i < count; i++) {
        printf(".TP\n.B %s\n%s: ", fields[i].name, verdict(&fields[i]));
        put_roff(fields[i].why);
        printf(".\n");
    }
}

static void options_roff(void)
{
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char option[TP_OPTION_MAX], tag[TP_OPTION_MAX + 16];
        tp_option_name(i, option);
        snprintf(tag, sizeof tag, "--%s VALUE", option);
        printf(".TP\n.B ");
        put_roff(tag);
        printf("\n%s\n", tp_setting(i)->name);
    }
}

static void commands_roff(void)
{
    for (size_t i = 0; i < TP_COUNT(commands); i++) {
        printf(".TP\n.B tprof %s\n", commands[i].name);
        put_roff(commands[i].help);
        printf("\n");
    }
}

static void commands_words(void)
{
    printf("    local commands='");
    for (size_t i = 0; i < TP_COUNT(commands); i++)
        printf("%s%s", i ? " " : "", commands[i].name);
    printf("'\n");
}

static void options_words(void)
{
    printf("    local options='--help");
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char option[TP_OPTION_MAX];
        tp_option_name(i, option);
        printf("%s--%s", i % 6 ? " " : "\n        ", option);
    }
    printf("'\n");
}

/* The values of options that are one of a few words. */
static void values_words(void)
{
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char option[TP_OPTION_MAX], words[400];
        if (!tp_setting_words(i, words, sizeof words))
            continue;
        tp_option_name(i, option);
        printf("    --%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", option, words);
    }
}

static const struct {
    const char *name;
    void (*put)(void);
} lists[] = {
    {"@settings.md@\n", settings_markdown},   {"@experimental.md@\n", experimental_markdown},
    {"@settings.7@\n", settings_roff},        {"@experimental.7@\n", experimental_roff},
    {"@options.1@\n", options_roff},          {"@commands.1@\n", commands_roff},
    {"@commands.bash@\n", commands_words},    {"@options.bash@\n", options_words},
    {"@values.bash@\n", values_words},
};

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        size_t i = 0;
        while (i < TP_COUNT(lists) && strcmp(line, lists[i].name) != 0)
            i++;
        if (i < TP_COUNT(lists))
            lists[i].put();
        else if (line[0] == '@')
            return fprintf(stderr, "there is no list %s", line), 1;
        else
            fputs(line, stdout);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
