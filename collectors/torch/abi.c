#include "abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "../../agent/dso.h"
#include "../../agent/log.h"

#define LIBRARY "libtorch_cpu.so"
#define MAX_LOGICAL_THREAD (1u << 24)

struct name {
    const char *linker_name;
    size_t offset;
    bool needed;
};

static const struct name names[] = {
    {"_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", offsetof(struct tp_torch_abi, add_global_callback), true},
    {"_ZN2at14removeCallbackEm", offsetof(struct tp_torch_abi, remove_callback), true},
    {"_ZN2at18hasGlobalCallbacksEv", offsetof(struct tp_torch_abi, has_global_callbacks), true},
    {"_ZNK2at14RecordFunction4nameEv", offsetof(struct tp_torch_abi, name), true},
    {"_ZNK2at14RecordFunction7isAsyncEv", offsetof(struct tp_torch_abi, is_async), true},
    {"_ZN2at14RecordFunction15currentThreadIdEv", offsetof(struct tp_torch_abi, current_thread_id), true},
    {"_ZNK2at14RecordFunction13overload_nameEv", offsetof(struct tp_torch_abi, overload_name), false},
};

/* torch/version.py beside torch/lib: no exported function gives the version. */
static void read_version(void *library, char *version, size_t size)
{
    snprintf(version, size, "of unknown version");
    struct link_map *map;
    char path[4096], text[512];
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || strlen(map->l_name) + 16 > sizeof path)
        return;
    snprintf(path, sizeof path, "%s", map->l_name);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    snprintf(path + strlen(path), sizeof path - strlen(path), "/version.py");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *begin = strstr(text, "__version__ = '");
    const char *end = begin ? strchr(begin + 15, '\'') : NULL;
    if (end)
        snprintf(version, size, "%.*s", (int)(end - begin - 15), begin + 15);
}

int tp_torch_abi_attach(struct tp_torch_abi *abi, struct tp_error *error)
{
    void *library = tp_dso_open(LIBRARY);
    if (!library) {
        tp_error_set(error, "PyTorch", NULL, "operators cannot be observed: %s is not loaded", LIBRARY);
        return -ENOENT;
    }
    read_version(library, abi->version, sizeof abi->version);
    for (size_t i = 0; i < TP_COUNT(names); i++) {
        void *function = dlsym(library, names[i].linker_name);
        if (!function && names[i].needed) {
            tp_error_set(error, "PyTorch", NULL, "operators cannot be observed in PyTorch %s: it has no %s", abi->version,
                         names[i].linker_name);
            return -ENOTSUP;
        }
        memcpy((char *)abi + names[i].offset, &function, sizeof function);
    }
    abi->library = library;
    return tp_torch_calibrate(abi, error);
}

uint64_t tp_torch_abi_add(const struct tp_torch_abi *abi, void *(*start)(void **, const void *),
                          void (*end)(const void *, void *), uint32_t scopes, uint32_t needs)
{
    struct tp_record_function_callback callback = {
        .start = start,
        .end = end,
        .sampling_probability = 1.0,
        .needs_inputs = (needs & TP_TORCH_NEED_INPUTS) != 0,
        .needs_outputs = (needs & TP_TORCH_NEED_OUTPUTS) != 0,
        .needs_ids = (needs & TP_TORCH_NEED_IDS) != 0,
    };
    for (unsigned scope = 0; scope < sizeof callback.scopes; scope++)
        callback.scopes[scope] = scopes >> scope & 1;
    return abi->add_global_callback(callback);
}

void tp_torch_abi_check_backward(struct tp_torch_abi *abi, const void *record_function)
{
    if (tp_torch_forward_thread(abi, record_function) > MAX_LOGICAL_THREAD) {
        abi->at.forward_thread = 0;
        tp_log(TP_LOG_WARN, "forward threads of backward operators are not known in PyTorch %s", abi->version);
    }
}
