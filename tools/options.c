#include "options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "../agent/settings.h"

void tp_option_name(unsigned setting, char name[TP_OPTION_MAX])
{
    const char *variable = tp_setting(setting)->name;
    if (strncmp(variable, "TPROF_", 6) == 0)
        variable += 6;
    snprintf(name, TP_OPTION_MAX, "%s", variable);
    for (char *c = name; *c; c++)
        *c = (char)(*c == '_' ? '-' : tolower((unsigned char)*c));
}

unsigned tp_option_setting(const char *name)
{
    for (unsigned i = 0; i < TP_SETTINGS_COUNT; i++) {
        char own[TP_OPTION_MAX];
        tp_option_name(i, own);
        if (strcmp(name, own) == 0)
            return i;
    }
    return TP_SETTINGS_COUNT;
}
