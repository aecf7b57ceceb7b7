/*
 * The spool of a process that died, damaged at will, through tp_spool_in_open and tp_recover. The input is damage to a
 * sample (spool_sample.h): a byte that chooses the settings, then pieces of: where (low four bits of a byte; the high
 * four: how many bytes less one), the offset there (two bytes), the bytes.
 *
 * What must hold: no fault, plain files alone, and no more of them, nor larger ones, than the spool can speak of.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../agent/spool_in.h"
#include "../../output/recover.h"
#include "must.h"
#include "spool_sample.h"

#define BYTES_MOST (64u << 20) /* written for eight megabytes of records, most of which are zero */

static char folder[64], files[80];
static int folder_fd, files_fd;
static char *sample;
static size_t sample_bytes;
static struct tp_spool_header layout;

static void clean_up(void)
{
    close(folder_fd);
    close(files_fd);
    rmdir(files);
    rmdir(folder);
}

static void make_sample(void)
{
    char name[256];
    snprintf(folder, sizeof folder, "/dev/shm/fuzz_spool.XXXXXX");
    must(mkdtemp(folder));
    snprintf(files, sizeof files, "%s/files", folder);
    must(mkdir(files, 0700) == 0);
    spool_sample_make(folder, files, name, sizeof name);
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files_fd = open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
    struct stat found;
    must(folder_fd >= 0 && files_fd >= 0 && fd >= 0 && fstat(fd, &found) == 0);
    sample_bytes = (size_t)found.st_size;
    sample = malloc(sample_bytes);
    must(sample && read(fd, sample, sample_bytes) == (ssize_t)sample_bytes);
    memcpy(&layout, sample, sizeof layout);
    close(fd);
    unlinkat(folder_fd, name, 0);
    atexit(clean_up);
}

/* Where a piece of damage lies. The settings and the folder are put right after it: their readers are fuzzed apart,
 * and no folder of this machine is to be written to. */
static uint64_t region(unsigned where)
{
    switch (where) {
    case 0:
    case 1: return 0;
    case 2: return offsetof(struct tp_spool_state, process);
    case 3: return offsetof(struct tp_spool_state, cycles);
    case 4: return offsetof(struct tp_spool_state, steps);
    case 5: return layout.names_offset;
    case 6: return layout.pool_offset;
    case 7: return layout.pool_offset + TP_CHUNK_BYTES;
    case 8: return layout.pool_offset + 2 * TP_CHUNK_BYTES;
    default: return layout.log_offset;
    }
}

static void write_piece(int fd, const char *bytes, size_t count, uint64_t offset)
{
    must(pwrite(fd, bytes, count, (off_t)offset) == (ssize_t)count);
}

/* But for what is zero, so that the file stays as small as it is. */
static void write_sample(int fd)
{
    must(ftruncate(fd, (off_t)sample_bytes) == 0);
    for (size_t at = 0; at < sample_bytes; at += TP_PAGE) {
        static const char zero[TP_PAGE];
        size_t count = sample_bytes - at < TP_PAGE ? sample_bytes - at : TP_PAGE;
        if (memcmp(sample + at, zero, count) != 0)
            write_piece(fd, sample + at, count, at);
    }
}

static void write_safe(int fd, uint8_t choice)
{
    static const char settings[][64] = {
        "",
        "TPROF_USE_GZIP=0",
        "TPROF_ON_TRACE_READY=chrome\0TPROF_RECORD_SHAPES=1",
        "TPROF_ON_TRACE_READY=table",
        "TPROF_CHILDREN=all\0TPROF_BUFFER_MB=8",
        "TPROF_NO_SUCH=1",
        "TPROF_STEP=every:1ms",
        "TPROF_ROW_LIMIT=x",
    };
    char text[2 * TP_SPOOL_TEXT] = "", path[TP_SPOOL_TEXT] = "";
    memcpy(text, settings[choice % TP_COUNT(settings)], sizeof settings[0]);
    snprintf(path, sizeof path, "%s", files);
    write_piece(fd, text, sizeof text, offsetof(struct tp_spool_state, process.settings));
    write_piece(fd, path, sizeof path, offsetof(struct tp_spool_state, process.folder));
}

static void make_spool(const char *name, const uint8_t *data, size_t size)
{
    int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0);
    write_sample(fd);
    size_t bytes = sample_bytes;
    for (size_t at = 1; at + 3 < size;) {
        unsigned where = data[at] & 15, count = (data[at] >> 4) + 1u;
        uint64_t offset = data[at + 1] | (unsigned)data[at + 2] << 8;
        at += 3;
        count = count < size - at ? count : (unsigned)(size - at);
        if (where == 15)
            bytes = sample_bytes * offset / 65535; /* cut off */
        else
            write_piece(fd, (const char *)data + at, count, region(where) + offset);
        at += count;
    }
    write_safe(fd, data[0]);
    must(ftruncate(fd, (off_t)bytes) == 0);
    close(fd);
}

/* Reads all that a reader of the spool may reach. */
static void read_through(struct tp_spool_in *in)
{
    uint64_t position = in->spool.log.tail, last = 0, blocks = 0, sum = 0;
    for (const struct tp_block *block; (block = tp_log_at(&in->spool.log, &position)); blocks++) {
        must(position >= last && (const char *)block >= in->memory &&
             (const char *)(block + 1) + block->bytes <= in->memory + in->bytes);
        for (uint32_t i = 0; i < block->bytes; i++)
            sum += ((const unsigned char *)(block + 1))[i];
        last = position = tp_log_after(position, block);
    }
    must(blocks <= in->bytes / sizeof(struct tp_block));
    for (uint32_t id = 0; id < 64; id++) {
        size_t bytes;
        const char *text = tp_intern_text(in->spool.names, id, &bytes);
        sum += text ? strlen(text) : 0;
    }
    for (size_t i = 0; i < in->cycle_count; i++)
        for (size_t k = 0; k < in->cycles[i].edge_count; k++)
            sum += in->cycles[i].edges[k].time;
    static volatile uint64_t sink;
    sink = sum;
    (void)sink;
}

static uint64_t remove_files(void)
{
    uint64_t bytes = 0, count = 0;
    int again = openat(files_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fdopendir(again);
    must(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct stat found;
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || entry->d_name[1] == '.'))
            continue;
        must(fstatat(files_fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode));
        bytes += (uint64_t)found.st_size;
        count++;
        unlinkat(files_fd, entry->d_name, 0);
    }
    closedir(entries);
    must(count <= TP_SPOOL_CYCLES * 4 + 4);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char name[] = "tprof.4000.1.spool";
    if (size < 1)
        return 0;
    if (!sample)
        make_sample();
    make_spool(name, data, size);
    struct tp_arena arena;
    static struct tp_spool_in in;
    struct tp_error error = {0};
    tp_arena_init(&arena, 0);
    int status = tp_spool_in_open(&in, folder_fd, name, &arena, &error);
    must((status == 0) == !error.set);
    if (status == 0) {
        read_through(&in);
        tp_spool_in_close(&in, folder_fd, name, false);
    }
    tp_arena_free(&arena);

    struct tp_recovered recovered;
    char line[5120];
    int again = tp_recover(folder_fd, name, NULL, &recovered, &error);
    must(status == 0 || again == status || status == -ENODATA);
    if (again == 0) {
        tp_recovered_line(&recovered, name, line, sizeof line);
        must(strlen(line) < sizeof line);
    }
    must(remove_files() <= BYTES_MOST);
    unlinkat(folder_fd, name, 0);
    return 0;
}
