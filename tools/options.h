/* options.h: a setting as an option of a command: TPROF_GZIP_LEVEL is --gzip-level. */
#ifndef TP_OPTIONS_H
#define TP_OPTIONS_H

#define TP_OPTION_MAX 64

/* Without the dashes in front. */
void tp_option_name(unsigned setting, char name[TP_OPTION_MAX]);

/* TP_SETTINGS_COUNT: there is none of this name. */
unsigned tp_option_setting(const char *name);

#endif
