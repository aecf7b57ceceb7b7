#include "dso.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct search {
    const char *name;
    char path[4096];
};

static bool is_named(const struct dl_phdr_info *info, const char *library)
{
    const char *path = info->dlpi_name ? info->dlpi_name : "";
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, library, strlen(library)) == 0;
}

/* Runs under the loader's lock: only notes the path. */
static int note_path(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct search *search = argument;
    if (!is_named(info, search->name) || strlen(info->dlpi_name) >= sizeof search->path)
        return 0;
    snprintf(search->path, sizeof search->path, "%s", info->dlpi_name);
    return 1;
}

void *tp_dso_open(const char *name)
{
    struct search search = {.name = name};
    if (!dl_iterate_phdr(note_path, &search))
        return NULL;
    return dlopen(search.path, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
}

struct lookup {
    const char *library, *symbol;
    void *found;
};

struct tables {
    const ElfW(Sym) *symbols;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH: counts, a filter of words, buckets, chains */
};

static bool read_tables(const struct dl_phdr_info *info, struct tables *ret)
{
    *ret = (struct tables){0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            /* The loader makes most of these absolute, but not in every library. */
            ElfW(Addr) at = entry->d_un.d_ptr;
            at += at < info->dlpi_addr ? info->dlpi_addr : 0;
            if (entry->d_tag == DT_SYMTAB)
                ret->symbols = (const ElfW(Sym) *)at;
            else if (entry->d_tag == DT_STRTAB)
                ret->strings = (const char *)at;
            else if (entry->d_tag == DT_GNU_HASH)
                ret->hash = (const uint32_t *)at;
        }
    }
    return ret->symbols && ret->strings && ret->hash;
}

static int look_up(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct lookup *lookup = argument;
    struct tables tables;
    if (!is_named(info, lookup->library) || !read_tables(info, &tables))
        return 0;
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)lookup->symbol; *c; c++)
        hash = hash * 33 + *c;
    uint32_t buckets = tables.hash[0], first = tables.hash[1], filter_words = tables.hash[2];
    const uint32_t *bucket = tables.hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t index = buckets ? bucket[hash % buckets] : 0;
    for (; index >= first && index; index++) {
        const ElfW(Sym) *symbol = &tables.symbols[index];
        uint32_t kept = chain[index - first]; /* the hash, its last bit set at the end of the bucket */
        if ((kept | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 15) == STT_FUNC &&
            strcmp(tables.strings + symbol->st_name, lookup->symbol) == 0) {
            lookup->found = (void *)(info->dlpi_addr + symbol->st_value);
            return 1;
        }
        if (kept & 1)
            break;
    }
    return 0;
}

void *tp_dso_find(const char *library, const char *symbol)
{
    struct lookup lookup = {.library = library, .symbol = symbol};
    dl_iterate_phdr(look_up, &lookup);
    return lookup.found;
}
