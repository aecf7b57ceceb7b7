/*
 * log.h: one clear line at a time to stderr.
 *
 * A line is formatted on the caller's stack and leaves in one write(2): no stdio buffer of the job is touched, no
 * memory is allocated, lines of several threads or processes do not mix. "tprof: " stands in front. A line longer
 * than 1 KiB is cut. errno is kept. Never called from a hook's fast path.
 */
#ifndef TP_LOG_H
#define TP_LOG_H

#include "base.h"

enum tp_log_level { TP_LOG_QUIET, TP_LOG_WARN, TP_LOG_INFO, TP_LOG_DEBUG };

void tp_log_set_level(enum tp_log_level level);
enum tp_log_level tp_log_get_level(void);

/* Lines above the level are dropped. TP_LOG_QUIET lines always appear (they end a process in strict mode). */
void tp_log(enum tp_log_level level, const char *format, ...) TP_PRINTF(2, 3);

/* Lines of the calling thread, which has a table of descriptors of its own (descriptors.h), go to the stderr that the
 * process of this pidfd has at that moment. -1: nowhere. */
void tp_log_through(int process);

/* Text that is already laid out (the table at exit), in as few write(2) as the kernel takes. */
void tp_log_text(enum tp_log_level level, const char *text, size_t bytes);

#endif
