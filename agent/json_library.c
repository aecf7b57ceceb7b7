#include "json_library.h"

#include <dlfcn.h>
#include <string.h>

#include "settings.h"

#define ARENA_LIMIT (128u << 20) /* a file of 1 MiB that is all brackets */

const struct tp_jansson *tp_settings_jansson;

#ifdef TP_HAVE_JANSSON

static struct tp_arena *memory; /* jansson's allocator has no context */

static void *allocate(size_t bytes)
{
    return tp_arena_alloc(memory, bytes);
}

static void release(void *piece)
{
    (void)piece; /* goes with the arena */
}

/*
 * Where the job has jansson loaded itself, its allocator stays as it is: another thread may be inside it, and pieces of
 * ours must not meet its free(). The parse then uses the job's heap, which is safe here, in an ordinary call on the
 * program's own thread.
 */
const char *tp_json_library_open(struct tp_json_library *library)
{
    *library = (struct tp_json_library){.functions = tp_settings_jansson};
    if (library->functions)
        return NULL;
    static const char name[] = "libjansson.so.4";
    void *loaded = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    library->handle = loaded ? loaded : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) {
        dlerror(); /* the program's next dlerror() is not about us */
        return "libjansson.so.4 is not here (Debian package libjansson4): install it, or give plain variables, or "
               "start the program by `tprof run --config FILE -- ...`, which needs no library";
    }
#define TP_JANSSON_FIND(result, name, parameters) \
    *(void **)&library->found.name = dlsym(library->handle, #name); \
    missing |= !library->found.name;
    bool missing = false;
    TP_JANSSON_FUNCTIONS(TP_JANSSON_FIND)
    if (missing) {
        dlerror();
        dlclose(library->handle);
        return "libjansson.so.4 is too old here (2.8 or newer is needed): give plain variables, or start the "
               "program by `tprof run --config FILE -- ...`, which needs no library";
    }
    library->functions = &library->found;
    if (!loaded) {
        library->own_memory = true;
        tp_arena_init(&library->arena, ARENA_LIMIT);
        memory = &library->arena;
        library->found.json_get_alloc_funcs(&library->allocate, &library->release);
        library->found.json_set_alloc_funcs(allocate, release);
    }
    return NULL;
}

void tp_json_library_close(struct tp_json_library *library)
{
    if (library->own_memory) {
        library->found.json_set_alloc_funcs(library->allocate, library->release);
        memory = NULL;
        tp_arena_free(&library->arena);
    }
    if (library->handle)
        dlclose(library->handle);
}

#else

const char *tp_json_library_open(struct tp_json_library *library)
{
    *library = (struct tp_json_library){0};
    return "this tprof was built without jansson (Debian package libjansson-dev) and reads no JSON: give plain "
           "variables";
}

void tp_json_library_close(struct tp_json_library *library)
{
    (void)library;
}

#endif
