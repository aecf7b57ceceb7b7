/* jansson_table.h: gives the settings the jansson that the command is linked with, so that it needs none on the machine. */
#ifndef TP_JANSSON_TABLE_H
#define TP_JANSSON_TABLE_H

void tp_link_jansson(void);

#endif
