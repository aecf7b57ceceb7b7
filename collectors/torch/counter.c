/*
 * counter.c: finds the counter from which PyTorch takes record function ids, so that ours come from it too. It has no
 * name outside; but it is one word of the library's data that is the next id each time PyTorch took one.
 */
#include <dlfcn.h>
#include <link.h>

#include "abi_object.h"

#define CANDIDATES 16384
#define ROUNDS 6

struct area {
    uintptr_t base;
    /* Writable variables of the library, which are followed by the zeroed ones. What was made read-only after loading is
     * left out, and so is what tools have added to the file (patchelf). */
    uint64_t *begin, *end;
};

static int note_area(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct area *area = argument;
    if (info->dlpi_addr != area->base)
        return 0;
    uintptr_t begin = 0, end = 0, relro_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO)
            relro_end = from + part->p_memsz;
        if (part->p_type == PT_LOAD && part->p_flags & PF_W && part->p_memsz > part->p_filesz) {
            begin = from;
            end = from + part->p_memsz;
        }
    }
    if (relro_end > begin && relro_end < end)
        begin = relro_end;
    area->begin = (uint64_t *)((begin + 7) & ~(uintptr_t)7);
    area->end = (uint64_t *)(end & ~(uintptr_t)7);
    return 1;
}

/* Reads memory that is not ours: the sanitizers have laid their traps around other libraries' variables. */
__attribute__((no_sanitize("address", "thread"))) static size_t collect(const struct area *area, uint64_t next,
                                                                        uint64_t **candidates)
{
    size_t count = 0;
    for (uint64_t *at = area->begin; at < area->end; at++)
        if (*at == next) {
            if (count == CANDIDATES)
                return 0;
            candidates[count++] = at;
        }
    return count;
}

__attribute__((no_sanitize("address", "thread"))) static size_t keep(uint64_t **candidates, size_t count, uint64_t next)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (*candidates[i] == next)
            candidates[kept++] = candidates[i];
    return kept;
}

_Atomic uint64_t *tp_torch_find_counter(void *library, uint64_t (*draw)(void *), void *argument)
{
    static uint64_t *candidates[CANDIDATES];
    struct link_map *map;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    struct area area = {.base = map->l_addr};
    if (!dl_iterate_phdr(note_area, &area))
        return NULL;
    size_t count = collect(&area, draw(argument) + 1, candidates);
    for (int round = 1; round <= ROUNDS; round++) {
        uint64_t last = 0;
        for (int i = 0; i < round; i++)
            last = draw(argument);
        count = keep(candidates, count, last + 1);
    }
    if (count != 1)
        return NULL;
    /* The proof: a number that we take is one that PyTorch does not give. */
    _Atomic uint64_t *counter = (_Atomic uint64_t *)candidates[0];
    uint64_t ours = atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    return draw(argument) == ours + 1 ? counter : NULL;
}
