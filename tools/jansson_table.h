/* jansson_table.h: the settings use the jansson that the command is linked with; the machine needs none. */
#ifndef TP_JANSSON_TABLE_H
#define TP_JANSSON_TABLE_H

void tp_link_jansson(void);

#endif
