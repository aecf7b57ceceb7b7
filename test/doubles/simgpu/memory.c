#include "simgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static struct sim_allocation *table; /* by address */
static size_t count, room;
static uint64_t used[SIM_DEVICES];

/* How many begin at or before it. */
static size_t before(uintptr_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool add(struct sim_allocation allocation)
{
    if (count == room) {
        size_t more = room ? 2 * room : 256;
        struct sim_allocation *larger = realloc(table, more * sizeof *table);
        if (!larger)
            return false;
        table = larger;
        room = more;
    }
    size_t at = before(allocation.address);
    memmove(table + at + 1, table + at, (count - at) * sizeof *table);
    table[at] = allocation;
    count++;
    return true;
}

static bool take(uintptr_t address, struct sim_allocation *taken)
{
    sim_lock();
    size_t at = before(address);
    bool found = at && table[at - 1].address == address;
    if (found) {
        *taken = table[at - 1];
        memmove(table + at - 1, table + at, (count - at) * sizeof *table);
        count--;
        if (taken->memory == SIM_DEVICE)
            used[taken->device] -= taken->bytes;
    }
    sim_unlock();
    return found;
}

static void tell(const struct sim_allocation *allocation, bool frees)
{
    struct sim_operation operation = {
        .kind = SIM_ALLOCATION,
        .allocation = {allocation->address, allocation->bytes, allocation->memory, frees},
    };
    sim_fill(&operation, sim_stream(NULL));
    operation.device = (uint32_t)allocation->device;
    operation.start = operation.end = sim_clock_now();
    sim_observers.operation(&operation);
}

void *sim_allocate(size_t bytes, enum sim_memory memory)
{
    int device = sim_device();
    size_t whole = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (memory == SIM_DEVICE && whole > sim_device_memory - sim_memory_used(device))
        return NULL;
    /* Most of what PyTorch takes it never touches. */
    void *address = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        return NULL;
    if (!sim_register(address, whole, memory)) {
        munmap(address, whole);
        return NULL;
    }
    return address;
}

bool sim_register(void *address, size_t bytes, enum sim_memory memory)
{
    struct sim_allocation allocation = {(uintptr_t)address, bytes, memory, sim_device()};
    sim_lock();
    bool added = add(allocation);
    if (added && memory == SIM_DEVICE)
        used[allocation.device] += bytes;
    sim_unlock();
    if (added)
        tell(&allocation, false);
    return added;
}

bool sim_unregister(void *address)
{
    struct sim_allocation allocation;
    if (!take((uintptr_t)address, &allocation))
        return false;
    tell(&allocation, true);
    return true;
}

bool sim_free(void *address)
{
    struct sim_allocation allocation;
    if (!take((uintptr_t)address, &allocation))
        return false;
    sim_clock_wait(sim_idle_at(allocation.device));
    munmap(address, allocation.bytes);
    tell(&allocation, true);
    return true;
}

bool sim_allocation_of(const void *address, struct sim_allocation *found)
{
    sim_lock();
    size_t at = before((uintptr_t)address);
    bool inside = at && (uintptr_t)address - table[at - 1].address < table[at - 1].bytes;
    if (inside)
        *found = table[at - 1];
    sim_unlock();
    return inside;
}

enum sim_memory sim_memory_of(const void *address)
{
    struct sim_allocation found;
    return sim_allocation_of(address, &found) ? found.memory : SIM_PAGEABLE;
}

uint64_t sim_memory_used(int device)
{
    sim_lock();
    uint64_t bytes = used[device];
    sim_unlock();
    return bytes;
}
