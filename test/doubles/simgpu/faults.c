/*
 * What goes wrong on request: SIMGPU_FAULTS is a list of NAME=NUMBER, between commas.
 *
 *     cudaMalloc=2          every call of it returns 2 and does nothing
 *     cudaMalloc=2@3        the third one alone          cudaMalloc=2@3+    that and all later ones
 *     drop=N                every N-th record is lost, and counted
 *     late=NS               records come so much later
 *     shuffle=NS            each by up to so much, at random: they come out of order
 *     garbage=N             every N-th record is spoilt (records.c)
 *     refuse=N              every N-th buffer that CUPTI asks for is taken for none
 */
#include "simgpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fault {
    char name[64];
    uint64_t number, first, calls;
    bool on; /* those after the first too */
};

static struct fault faults[64];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void refuse(const char *entry)
{
    fprintf(stderr, "simgpu: SIMGPU_FAULTS: \"%s\" is not NAME=NUMBER, NAME=NUMBER@NTH or NAME=NUMBER@NTH+\n", entry);
    exit(2);
}

static struct fault parse(const char *entry)
{
    struct fault fault = {.first = 1, .on = true};
    int end = 0;
    if (sscanf(entry, "%63[A-Za-z0-9_]=%lu%n", fault.name, &fault.number, &end) != 2)
        refuse(entry);
    if (entry[end] == '@') {
        char *rest;
        fault.first = strtoull(entry + end + 1, &rest, 10);
        fault.on = *rest == '+';
        end = (int)(rest - entry) + fault.on;
    }
    if (entry[end] || !fault.first)
        refuse(entry);
    return fault;
}

void sim_faults_set(const char *text)
{
    char *copy = strdup(text), *state = NULL;
    count = 0;
    for (char *entry = strtok_r(copy, ",", &state); entry; entry = strtok_r(NULL, ",", &state)) {
        if (count == sizeof faults / sizeof *faults)
            refuse(entry);
        faults[count++] = parse(entry);
    }
    free(copy);
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SIMGPU_FAULTS");
    if (text)
        sim_faults_set(text);
}

static struct fault *find(const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(faults[i].name, name) == 0)
            return &faults[i];
    return NULL;
}

int sim_fault(const char *call)
{
    struct fault *fault = find(call);
    if (!fault)
        return 0;
    pthread_mutex_lock(&lock);
    uint64_t nth = ++fault->calls;
    pthread_mutex_unlock(&lock);
    return nth == fault->first || (fault->on && nth > fault->first) ? (int)fault->number : 0;
}

uint64_t sim_fault_number(const char *name)
{
    const struct fault *fault = find(name);
    return fault ? fault->number : 0;
}
