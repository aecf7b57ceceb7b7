/*
 * identities.h: which tensors and storages are the same, of those that operators show: ids for addresses, of which many
 * are used again and again.
 *
 * An address that an operator gives back as new, and that nothing showed since the operator began, neither the operator
 * as its own input nor what ran inside it, is a new object. Operators are told of when they end, but what one was given
 * is what was there when it began: an address keeps the object before the newest one, too.
 */
#ifndef TP_IDENTITIES_H
#define TP_IDENTITIES_H

#include "../agent/arena.h"
#include "../agent/base.h"

enum tp_identity_kind { TP_IDENTITY_TENSOR, TP_IDENTITY_STORAGE };

struct tp_identity; /* an address */

struct tp_identities {
    struct tp_arena *arena;
    struct tp_identity *slots;
    size_t count, capacity;
    uint64_t *next_id; /* each one is 2 more than the one before */
};

/* A begin is an operator's number in the order of begins. 0: there is no room. */
uint64_t tp_identity_given(struct tp_identities *identities, enum tp_identity_kind kind, uint64_t address,
                           uint64_t begin);

/* is_new: the operator says that what it gives back is nothing that was there. */
uint64_t tp_identity_returned(struct tp_identities *identities, enum tp_identity_kind kind, uint64_t address,
                              uint64_t begin, bool is_new);

/* Did this operator, or what ran inside it, show it already? */
bool tp_identity_was_shown(const struct tp_identities *identities, enum tp_identity_kind kind, uint64_t address,
                           uint64_t begin);

#endif
