/* ops.h: operators and user ranges of PyTorch (ops.c). */
#ifndef TP_TORCH_OPS_H
#define TP_TORCH_OPS_H

#include "../../agent/collector.h"

extern const struct tp_collector tp_torch_ops;

#endif
