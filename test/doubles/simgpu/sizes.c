/*
 * How many bytes a record has, by the version that cuptiGetVersion tells: 17..28 are CUDA 11.6 to 12.9, then XXYYZZ.
 * A family of records only grows at its end. records.c checks the sizes that the headers know.
 */
#include "simgpu.h"

static const struct {
    unsigned kind, since, bytes;
} sizes[] = {
    /* of a kind, the newest first */
    {1, 26, 96}, {1, 0, 88},                                            /* MEMCPY */
    {2, 0, 88},                                                         /* MEMSET */
    {4, 0, 40}, {5, 0, 40},                                             /* DRIVER, RUNTIME */
    {10, 130300, 248}, {10, 130200, 224}, {10, 130000, 216},            /* CONCURRENT_KERNEL */
    {10, 19, 208}, {10, 18, 200}, {10, 0, 176},
    {17, 130000, 56}, {17, 0, 40},                                      /* OVERHEAD */
    {22, 0, 96},                                                        /* MEMCPY2 */
    {36, 26, 56}, {36, 0, 24},                                          /* CUDA_EVENT */
    {38, 26, 56}, {38, 0, 40},                                          /* SYNCHRONIZATION */
    {39, 0, 24},                                                        /* EXTERNAL_CORRELATION */
    {49, 130000, 128}, {49, 0, 120},                                    /* MEMORY2 */
    {SIM_NEWS, 0, 64},                                                  /* one that is yet to come */
    {51, 130000, 56}, {51, 0, 48},                                      /* GRAPH_TRACE */
};

size_t sim_record_bytes(unsigned kind, unsigned version)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].kind == (kind == 3 ? 10 : kind) && version >= sizes[i].since) /* KERNEL is the same record */
            return sizes[i].bytes;
    return 0;
}
