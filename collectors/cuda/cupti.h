/*
 * cupti.h: NVIDIA's CUPTI as the program has it. PyTorch's CUDA builds link it (libtorch_cpu.so needs libcupti.so.13 or .12),
 * so it is mapped where PyTorch is; it is looked for there and nowhere else, and never required.
 *
 * Of CUPTI only cuptiGetVersion is called (cupti_version.h), which needs no driver and changes nothing: whoever subscribes
 * first, torch.profiler or another tool, finds CUPTI as if we were not there.
 */
#ifndef TP_CUDA_CUPTI_H
#define TP_CUDA_CUPTI_H

#include "../../agent/collector.h"

extern const struct tp_collector tp_cuda_cupti;

#endif
