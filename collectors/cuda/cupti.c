#include "cupti.h"

#include <dlfcn.h>
#include <stdio.h>

#include "../../agent/dso.h"
#include "../../agent/log.h"

/* CUPTI's versions before they became XXYYZZ with CUDA 13.0 (cupti_version.h), and the toolkit with which each appeared. */
static const struct {
    uint32_t version;
    const char *toolkit;
} toolkits[] = {
    {17, "11.6"}, {18, "11.8"}, {19, "12.0"}, {20, "12.2"}, {21, "12.3"}, {22, "12.4"}, {23, "12.5"}, {24, "12.6"},
    {26, "12.8"}, {27, "12.9"}, {28, "12.9 Update 1"},
};

/* Empty: a version that is not known. */
static void name_toolkit(uint32_t version, char *ret_text, size_t size)
{
    ret_text[0] = '\0';
    if (version >= 130000)
        snprintf(ret_text, size, ", as of CUDA %u.%u,", version / 10000, version / 100 % 100);
    for (size_t i = 0; i < TP_COUNT(toolkits); i++)
        if (toolkits[i].version == version)
            snprintf(ret_text, size, ", as of CUDA %s,", toolkits[i].toolkit);
}

static int attach(const struct tp_settings *settings, struct tp_error *error)
{
    (void)settings;
    (void)error;
    void *library = tp_dso_open("libcupti.so.");
    if (!library)
        return 0; /* a CPU build */
    int (*get_version)(uint32_t *);
    *(void **)&get_version = dlsym(library, "cuptiGetVersion");
    Dl_info place = {0};
    uint32_t version = 0;
    if (!get_version || !dladdr(*(void **)&get_version, &place)) {
        tp_log(TP_LOG_INFO, "CUDA: the libcupti of this program has no cuptiGetVersion");
        return 0;
    }
    int failed = get_version(&version);
    if (failed) {
        tp_log(TP_LOG_INFO, "CUDA: %s does not tell its version: cuptiGetVersion gives error %d", place.dli_fname, failed);
        return 0;
    }
    char toolkit[40];
    name_toolkit(version, toolkit, sizeof toolkit);
    tp_log(TP_LOG_INFO, "CUDA: CUPTI %u%s is there, %s; the device is not recorded in this build yet", version, toolkit,
           place.dli_fname);
    return 0;
}

const struct tp_collector tp_cuda_cupti = {
    .name = "cuda",
    .attach = attach,
};
