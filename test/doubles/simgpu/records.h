/* records.h: CUPTI's activity records, made from what the simulated GPU did. */
#pragma once

#include "simgpu.h"

#include <cupti.h>

union sim_record {
    CUpti_ActivityKind kind;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 set;
    CUpti_ActivityAPI call;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivityOverhead3 overhead;
    CUpti_ActivitySynchronization2 sync;
    CUpti_ActivityCudaEvent2 event;
    CUpti_ActivityMemory4 memory;
    CUpti_ActivityGraphTrace2 graph;
    uint8_t room[256]; /* for those of a version that is newer than the headers: what they add is 0 */
};

/* The kind of record that tells of it, by which are enabled; 0: none. */
CUpti_ActivityKind sim_record_kind(const struct sim_operation *operation, const bool *enabled);
void sim_record_make(union sim_record *record, CUpti_ActivityKind kind, const struct sim_operation *operation);
void sim_record_spoil(union sim_record *record, uint64_t nth); /* one way after the other */
