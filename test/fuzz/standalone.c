/*
 * A fuzz target without a fuzzing engine: replays the files that are named, then runs mutations of them.
 *
 *     fuzz_NAME [-n ITERATIONS] [-t SECONDS] [-s SEED] FILE...
 *
 * Without -n it goes on until the seconds are over. An input is written to fuzz_NAME.crash beside the program before it
 * runs, and removed at the end if nothing failed; one that runs for a minute has failed too (SIGALRM). The same seed
 * gives the same inputs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LONGEST (64 * 1024)
#define FILES 1024
#define HANGS_S 60

struct input {
    uint8_t *bytes;
    size_t size;
};

static char crash[4096];
static struct input inputs[FILES];
static size_t input_count;
static uint64_t state;

static uint64_t random_below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void read_input(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(LONGEST);
    if (!file || !bytes || input_count == FILES) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    inputs[input_count++] = (struct input){bytes, fread(bytes, 1, LONGEST, file)};
    fclose(file);
}

static void save(const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(crash, "wb");
    if (file) {
        fwrite(bytes, 1, size, file);
        fclose(file);
    }
}

/* Exactly as long as it is, so that a sanitizer sees a read beyond it. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        exit(2);
    memcpy(exact, bytes, size);
    save(bytes, size);
    alarm(HANGS_S);
    LLVMFuzzerTestOneInput(exact, size);
    alarm(0);
    free(exact);
}

static size_t cut(uint8_t *bytes, size_t size)
{
    size_t at = random_below(size), length = 1 + random_below(size - at < 16 ? size - at : 16);
    memmove(bytes + at, bytes + at + length, size - at - length);
    return size - length;
}

/* A piece of another input at some place, over what is there or between. */
static size_t splice(uint8_t *bytes, size_t size)
{
    const struct input *other = &inputs[random_below(input_count)];
    if (other->size == 0)
        return size;
    size_t from = random_below(other->size), rest = other->size - from;
    size_t length = 1 + random_below(rest < 64 ? rest : 64);
    size_t at = random_below(size + 1);
    if (random_below(2) && at + length <= size) {
        memcpy(bytes + at, other->bytes + from, length);
        return size;
    }
    if (size + length > LONGEST)
        return size;
    memmove(bytes + at + length, bytes + at, size - at);
    memcpy(bytes + at, other->bytes + from, length);
    return size + length;
}

static size_t mutate(uint8_t *bytes, size_t size)
{
    static const char special[] = "\0\n\"\\{}[],:=%0-9.eE \x7f\x80\xff";
    for (uint64_t changes = 1 + random_below(8); changes > 0; changes--)
        switch (size ? random_below(4) : 3) {
        case 0: bytes[random_below(size)] ^= (uint8_t)(1u << random_below(8)); break;
        case 1: bytes[random_below(size)] = (uint8_t)special[random_below(sizeof special - 1)]; break;
        case 2: size = cut(bytes, size); break;
        case 3: size = splice(bytes, size); break;
        }
    return size;
}

static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < 0) {
        fprintf(stderr, "%s is not a number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    long iterations = -1, seconds = 0, seed = 1, done = 0;
    for (int option; (option = getopt(argc, argv, "n:t:s:")) != -1;)
        switch (option) {
        case 'n': iterations = number(optarg); break;
        case 't': seconds = number(optarg); break;
        case 's': seed = number(optarg); break;
        default: return 2;
        }
    if (iterations < 0 && seconds == 0)
        iterations = 0;
    snprintf(crash, sizeof crash, "%s.crash", argv[0]);
    for (int i = optind; i < argc; i++)
        read_input(argv[i]);
    for (size_t i = 0; i < input_count; i++)
        run(inputs[i].bytes, inputs[i].size);
    state = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    static uint8_t bytes[LONGEST];
    time_t end = time(NULL) + seconds;
    while (input_count && (iterations < 0 || done < iterations) && (!seconds || time(NULL) < end)) {
        const struct input *base = &inputs[random_below(input_count)];
        memcpy(bytes, base->bytes, base->size);
        size_t size = mutate(bytes, base->size);
        run(bytes, size);
        done++;
    }
    unlink(crash);
    printf("%s: %zu inputs, %ld mutations: no fault\n", argv[0], input_count, done);
    return 0;
}
