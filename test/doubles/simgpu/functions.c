/* Kernels by the address of their host stub; variables of the device by that of their host shadow. */
#include "simgpu.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    const void *host;
    const char *name; /* of a kernel */
    size_t bytes;     /* of a variable */
    void *device;
};

static struct entry *table; /* open addressing; PyTorch registers more than twenty thousand */
static size_t count, room;

static struct entry *slot(struct entry *in, size_t size, const void *host)
{
    size_t at = (size_t)((uintptr_t)host * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (size - 1);
    while (in[at].host && in[at].host != host)
        at = (at + 1) & (size - 1);
    return &in[at];
}

static void add(struct entry new)
{
    sim_lock();
    if (2 * count >= room) {
        size_t size = room ? 2 * room : 1 << 16;
        struct entry *larger = calloc(size, sizeof *larger);
        if (!larger)
            abort();
        for (size_t i = 0; i < room; i++)
            if (table[i].host)
                *slot(larger, size, table[i].host) = table[i];
        free(table);
        table = larger;
        room = size;
    }
    struct entry *entry = slot(table, room, new.host);
    count += !entry->host;
    *entry = new;
    sim_unlock();
}

static struct entry find(const void *host)
{
    struct entry found = {0};
    sim_lock();
    if (room)
        found = *slot(table, room, host);
    sim_unlock();
    return found;
}

void sim_function_add(const void *host, const char *name)
{
    add((struct entry){.host = host, .name = name});
}

const char *sim_function_name(const void *host)
{
    return find(host).name;
}

void sim_variable_add(const void *host, size_t bytes)
{
    add((struct entry){.host = host, .bytes = bytes});
}

void *sim_variable(const void *host, size_t *bytes)
{
    struct entry found = find(host);
    if (!found.bytes)
        return NULL;
    if (!found.device) {
        found.device = sim_allocate(found.bytes, SIM_DEVICE);
        add(found);
    }
    *bytes = found.bytes;
    return found.device;
}
