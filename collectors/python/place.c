/*
 * place.c: the innermost call that lies outside the folder that PyTorch is installed in, where its neighbours are (a
 * training framework steps every optimizer from one line of its own); where there is none, outside PyTorch.
 */
#include "place.h"

#include <string.h>

#include "../../agent/log.h"
#include "api.h"

#define PACKAGE_FILE "__init__.py"
#define MAX_DEPTH 200 /* frames that are looked at: a mark is not worth more */

static char torch_folder[1024]; /* with the / at its end */
static size_t torch_bytes, packages_bytes; /* of it; of the folder that it is in */

static bool starts_with(const struct tp_python_frame *frame, size_t bytes)
{
    return frame->file && frame->file_bytes >= bytes && memcmp(frame->file, torch_folder, bytes) == 0;
}

static uint64_t place(void)
{
    const void *outside_torch = NULL;
    struct tp_python_frame frame;
    const void *at = tp_python_innermost();
    for (int depth = 0; at && depth < MAX_DEPTH; at = tp_python_caller(at), depth++) {
        if (!tp_python_read(at, &frame) || starts_with(&frame, torch_bytes))
            continue;
        if (!starts_with(&frame, packages_bytes))
            return (uintptr_t)frame.instruction;
        if (!outside_torch)
            outside_torch = frame.instruction;
    }
    return (uintptr_t)outside_torch;
}

/* PyTorch is being imported: the innermost file that is one (importlib's are <frozen ...>) is its own. */
static bool find_folder(void)
{
    struct tp_python_frame frame;
    for (const void *at = tp_python_innermost(); at; at = tp_python_caller(at)) {
        if (!tp_python_read(at, &frame) || !frame.file || frame.file_bytes == 0 || frame.file[0] != '/')
            continue;
        const char *slash = memrchr(frame.file, '/', frame.file_bytes);
        torch_bytes = (size_t)(slash - frame.file) + 1;
        size_t rest = frame.file_bytes - torch_bytes;
        if (torch_bytes < 2 || torch_bytes > sizeof torch_folder || rest != strlen(PACKAGE_FILE) ||
            memcmp(slash + 1, PACKAGE_FILE, rest) != 0)
            return false;
        memcpy(torch_folder, frame.file, torch_bytes);
        slash = memrchr(torch_folder, '/', torch_bytes - 1);
        packages_bytes = (size_t)(slash - torch_folder) + 1;
        return true;
    }
    return false;
}

static int attach(const struct tp_settings *settings, struct tp_error *error)
{
    (void)settings;
    (void)error;
    const char *problem = tp_python_api_attach();
    if (!problem && !find_folder())
        problem = "PyTorch's folder was not found";
    if (problem)
        tp_log(TP_LOG_INFO, "optimizers of one class are not told apart: the place in the program of a step cannot be "
                            "read from this Python: %s", problem);
    return 0;
}

const struct tp_collector tp_python_place = {
    .name = "python",
    .attach = attach,
    .place = place,
};
