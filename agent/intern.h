/*
 * intern.h: names to small ids and back. Look-up takes no lock and writes nothing; a name that is new is added by
 * compare-and-swap into memory that was mapped and faulted in ahead (tp_intern_prepare, on the background thread), so that
 * neither calls the kernel. Names are compared by content: an address that dies and is used again for another name is
 * no matter. Ids stay valid as long as the table.
 *
 * When text memory or slots are used up, tp_intern gives 0 and the caller stores the name itself (record.h).
 */
#ifndef TP_INTERN_H
#define TP_INTERN_H

#include "base.h"

#define TP_INTERN_MAX_NAMES (1u << 15)

struct tp_intern;

/* Bytes of table proper (slots), besides the text memory. */
size_t tp_intern_size(void);

/* table: zeroed memory of tp_intern_size(); text: zeroed memory for names, of which nothing is usable before the first
 * prepare. Both stay the caller's. */
void tp_intern_init(struct tp_intern *table, char *text, size_t text_bytes);

/* Says that text[0, usable) is backed by memory now. Never shrinks. */
void tp_intern_prepare(struct tp_intern *table, size_t usable);
size_t tp_intern_used(const struct tp_intern *table); /* bytes of text taken */

/* The table of a process that died: names are looked up by id alone. `used` bytes of text; nothing in it is trusted. */
void tp_intern_adopt(struct tp_intern *table, char *text, size_t used);

/* Id of the name, or 0. Any thread, also in a hook. */
uint32_t tp_intern(struct tp_intern *table, const char *name, size_t bytes);

/* Text of an id that tp_intern gave out; NUL-terminated. */
const char *tp_intern_text(const struct tp_intern *table, uint32_t id, size_t *ret_bytes);

#endif
