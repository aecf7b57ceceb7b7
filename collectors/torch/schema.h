/*
 * schema.h: what PyTorch says of an operator ("aten::add.Tensor(Tensor self, ...) -> Tensor"), as an interned text.
 * PyTorch writes it, once for each operator: its own code, with its own memory, on the thread that runs the operator
 * first.
 */
#ifndef TP_TORCH_SCHEMA_H
#define TP_TORCH_SCHEMA_H

#include "../../agent/base.h"

/* False: PyTorch lacks what is called. */
bool tp_schema_attach(void *library);

/* name and overload are those of the schema, by which an address that another one has now is noticed. 0: no room for
 * it. */
uint32_t tp_schema_id(const void *schema, const char *name, const char *overload);

/* A forked child has names of its own: ids of the parent's are none here. */
void tp_schema_forget(void);

bool tp_schema_begins_with(const void *schema, const char *text);

#endif
