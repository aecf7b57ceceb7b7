#include "jansson_table.h"

#include "../agent/json_library.h"
#include "../agent/settings.h"

void tp_link_jansson(void)
{
#ifdef TP_HAVE_JANSSON
#define TP_JANSSON_LINKED(result, name, parameters) .name = name,
    static const struct tp_jansson linked = {TP_JANSSON_FUNCTIONS(TP_JANSSON_LINKED)};
    tp_settings_jansson = &linked;
#endif
}
