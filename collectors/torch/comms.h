/*
 * comms.h: what a collective operation says of itself to record_param_comms: a torch::ParamCommsDebugInfo that stands in
 * its thread's debug information meanwhile (torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
 */
#ifndef TP_TORCH_COMMS_H
#define TP_TORCH_COMMS_H

#include "../../agent/base.h"

struct tp_comms {
    struct {
        const char *text;
        size_t bytes;
    } collective, group_name, group_description;
    struct {
        const int64_t *sizes;
        size_t count;
    } in_split, out_split;
    int64_t in_elements, out_elements;
    int32_t rank_start, rank_stride, group_size;
    uint8_t type;
    bool is_async;
};

/* Finds out where it keeps them, once. False: it is not known, and tp_comms_now() finds nothing. */
bool tp_comms_attach(void *library);

bool tp_comms_is_name(const char *name);

/* Of this thread's operation; valid while that lasts. False: it says nothing. */
bool tp_comms_now(struct tp_comms *ret);

#endif
