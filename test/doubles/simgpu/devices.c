/* The numbers are those of an A100, roughly: PyTorch then takes flash attention and not cuDNN's, whose graph API is missing here. */
#include "simgpu.h"

#include <stdatomic.h>
#include <stdlib.h>

const char sim_device_name[] = "Simulated GPU";
const uint64_t sim_device_memory = UINT64_C(80) << 30;

static int devices = 1;
static _Thread_local int current;
static char contexts[SIM_DEVICES];
static atomic_bool awake[SIM_DEVICES];

__attribute__((constructor)) static void begin(void)
{
    const char *asked = getenv("SIMGPU_DEVICES");
    if (asked)
        devices = atoi(asked);
    if (devices < 0 || devices > SIM_DEVICES)
        abort();
}

int sim_device_count(void)
{
    return devices;
}

int sim_device(void)
{
    return current;
}

bool sim_device_set(int device)
{
    if (device < 0 || device >= devices)
        return false;
    current = device;
    return true;
}

bool sim_device_awake(int device)
{
    return awake[device];
}

void *sim_context(int device)
{
    bool asleep = false;
    if (atomic_compare_exchange_strong(&awake[device], &asleep, true))
        sim_observers.context(device);
    return &contexts[device];
}

int sim_context_device(const void *context)
{
    return (int)((const char *)context - contexts);
}

int sim_device_number(int attribute)
{
    static const int numbers[] = {
        [1] = 1024, [2] = 1024, [3] = 1024, [4] = 64,       /* threads of a block, and along each side */
        [5] = 2147483647, [6] = 65535, [7] = 65535,         /* blocks along each side */
        [8] = 49152, [9] = 65536, [10] = 32, [12] = 65536,  /* shared, constant, warp, registers of a block */
        [13] = 1410000, [16] = 108,                         /* clock, multiprocessors */
        [31] = 1, [32] = 1, [33] = 0x1b, [34] = 0,          /* concurrent kernels, ECC, place on the bus */
        [36] = 1215000, [37] = 5120, [38] = 41943040,       /* memory's clock and width, L2 */
        [39] = 2048, [40] = 3, [41] = 1,                    /* threads of a multiprocessor, copy engines, unified addresses */
        [75] = 8, [76] = 0, [78] = 1,                       /* compute capability, priorities */
        [81] = 167936, [82] = 65536, [83] = 1,              /* shared and registers of a multiprocessor, managed memory */
        [95] = 1, [97] = 166912, [106] = 32, [115] = 1,     /* cooperative launch, shared that is asked for, blocks, pools */
    };
    size_t count = sizeof numbers / sizeof *numbers;
    return attribute > 0 && (size_t)attribute < count ? numbers[attribute] : 0;
}
