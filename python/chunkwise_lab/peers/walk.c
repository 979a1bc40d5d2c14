/*
 * How long does a plain C program take to read an HDF5 dataset block by block?
 *
 * It does what `chunkwise bench --reader libhdf5` does, in the language that libhdf5 is
 * meant to be called from, and shares no code with it: if both give the same figures,
 * bench's are those of a C program.  `against_c.py` builds, runs and compares them.
 *
 * Blocks of one shape are read in C order (the last dimension fastest), clipped at the
 * edges, into one buffer and in the dataset's own type.  A read is what such a program
 * calls for one: a memory dataspace where the shape is another than before, a selection in
 * the file's dataspace, H5Dread.  These are timed, one read at a time; clearing the buffer
 * and summing the bytes up are not.
 *
 * libhdf5 is opened by its path at run time.  Figures can be compared only where both
 * programs call the very same library, which for bench is the one inside h5py's package,
 * and that comes without headers.  So the types of the functions are taken from whichever
 * headers there are, the functions from the library that is named.  From 1.10, when handles
 * became 64 bits, to 2.0 the functions below have not changed, and one binary fits all.
 */

#define _GNU_SOURCE /* getopt_long, madvise */

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <hdf5.h>

/* In the headers constants such as H5F_ACC_RDONLY first call a linked library. */
#undef H5OPEN
#define H5OPEN
#undef H5CHECK
#define H5CHECK

_Static_assert(sizeof(hid_t) == 8, "headers of HDF5 1.10 or later are needed");

static const char USAGE[] =
    "usage: walk [OPTIONS] FILE DATASET BLOCK\n"
    "\n"
    "Read DATASET of FILE in blocks of shape BLOCK and print what it took, as JSON.\n"
    "\n"
    "  --library PATH    libhdf5, 1.10 or later (default: libhdf5.so, as the loader finds it)\n"
    "  --cache-nbytes N  the dataset's chunk cache (H5Pset_chunk_cache): its bytes,\n"
    "  --nslots N        the slots of its hash table,\n"
    "  --w0 W            and its preemption policy; what is not given is the default\n"
    "  --max-seconds S   begin no read after the reads have taken so long\n"
    "\n"
    "example: walk --cache-nbytes 4194304 cris.h5 /All_Data/CrIS-SDR_All/ES_ImaginaryLW "
    "1x1x1x717\n";

/* The only functions of libhdf5 that are called. */
#define FUNCTIONS(X) \
    X(H5open) X(H5get_libversion) X(H5Eset_auto2) X(H5Ewalk2) \
    X(H5Fopen) X(H5Fclose) \
    X(H5Pcreate) X(H5Pget_chunk_cache) X(H5Pset_chunk_cache) X(H5Pclose) \
    X(H5Dopen2) X(H5Dget_access_plist) X(H5Dget_space) X(H5Dget_type) X(H5Dread) X(H5Dclose) \
    X(H5Tget_class) X(H5Tget_size) X(H5Tclose) \
    X(H5Screate_simple) X(H5Sget_simple_extent_ndims) X(H5Sget_simple_extent_dims) \
    X(H5Sselect_hyperslab) X(H5Sclose)

static struct {
#define DECLARE(name) __typeof__(name) *name;
    FUNCTIONS(DECLARE)
#undef DECLARE
    hid_t dataset_access; /* H5P_DATASET_ACCESS, in the headers a macro for a variable */
    char version[32], zlib[32];
} hdf5;

/* Call a function of libhdf5; where it fails, say so and end. */
#define CALL(name, ...) checked((int64_t)hdf5.name(__VA_ARGS__), #name)

typedef struct {
    const char *library, *file, *dataset;
    int rank;
    hsize_t block[H5S_MAX_RANK];
    long long cache_nbytes, nslots; /* -1: the default */
    double w0;                      /* -1: the default */
    double max_seconds;
} Request;

typedef struct {
    uint64_t operations, total_operations, selected_nbytes;
    uint64_t elapsed_ns, first_ns;
    uint32_t checksum;
} Record;

_Noreturn static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("walk: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Keep what the innermost entry of HDF5's error stack says. */
static herr_t keep_first(unsigned number, const H5E_error2_t *error, void *reason)
{
    if (number == 0 && error->desc != NULL)
        snprintf(reason, 200, "%s", error->desc);
    return 0;
}

static int64_t checked(int64_t value, const char *name)
{
    if (value < 0) {
        char reason[200] = "no reason given";
        hdf5.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
        die("%s: %s", name, reason);
    }
    return value;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL)
        die("%s", dlerror());
    return found;
}

/* Find the functions, all at once: none is to be looked for while reads are timed. */
static void bind_library(const char *path)
{
    unsigned major, minor, release;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        die("%s; give libhdf5's path by --library", dlerror());
/* As POSIX says to turn a pointer from dlsym into one to a function. */
#define FIND(name) *(void **)&hdf5.name = symbol(library, #name);
    FUNCTIONS(FIND)
#undef FIND
    CALL(H5get_libversion, &major, &minor, &release);
    if (major < 2 && minor < 10)
        die("%s is HDF5 %u.%u, with handles of 32 bits", path, major, minor);
    snprintf(hdf5.version, sizeof hdf5.version, "%u.%u.%u", major, minor, release);
    checked(hdf5.H5open(), "H5open");
    CALL(H5Eset_auto2, H5E_DEFAULT, NULL, NULL);
    hdf5.dataset_access = *(hid_t *)symbol(library, "H5P_CLS_DATASET_ACCESS_ID_g");

    /* Of its zlib the version is told: another one decodes at another speed. */
    const char *(*zlib_version)(void);
    *(void **)&zlib_version = dlsym(library, "zlibVersion");
    const char *zlib = zlib_version != NULL ? zlib_version() : "unknown";
    snprintf(hdf5.zlib, sizeof hdf5.zlib, "%s", zlib);
}

/*
 * CRC-32 as zlib computes it.  A byte at a time, with one small table: faster ways need more
 * of them, and would push out of the processor's cache what the next read finds there.
 */
static uint32_t crc_table[256];

static void make_crc_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        crc_table[byte] = crc;
    }
}

static uint32_t crc32(uint32_t crc, const unsigned char *bytes, size_t nbytes)
{
    crc = ~crc;
    for (size_t i = 0; i < nbytes; i++)
        crc = crc >> 8 ^ crc_table[(crc ^ bytes[i]) & 255];
    return ~crc;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Zeroed bytes whose pages are not touched yet: the first read pays for them.  Of 4 MiB and
 * more in huge pages, as bench (and NumPy) ask for them; without, reading everything at
 * once takes longer.
 */
static unsigned char *zeroed(size_t nbytes)
{
    const size_t page = 4096;
    unsigned char *buffer = calloc(nbytes, 1);
    if (buffer == NULL)
        die("no memory for a block of %zu bytes", nbytes);
    if (nbytes >= (size_t)4 << 20) {
        size_t skip = (page - (uintptr_t)buffer % page) % page;
        /* Advice: where it is refused, pages are small. */
        madvise(buffer + skip, (nbytes - skip) / page * page, MADV_HUGEPAGE);
    }
    return buffer;
}

/* Open the dataset with the chunk cache that is asked for. */
static hid_t open_dataset(hid_t file, const Request *asked)
{
    hid_t access = CALL(H5Pcreate, hdf5.dataset_access);
    size_t nslots, nbytes;
    double w0;
    CALL(H5Pget_chunk_cache, access, &nslots, &nbytes, &w0);
    if (asked->cache_nbytes >= 0 || asked->nslots >= 0 || asked->w0 >= 0) {
        nbytes = asked->cache_nbytes >= 0 ? (size_t)asked->cache_nbytes : nbytes;
        nslots = asked->nslots >= 0 ? (size_t)asked->nslots : nslots;
        w0 = asked->w0 >= 0 ? asked->w0 : w0;
        CALL(H5Pset_chunk_cache, access, nslots, nbytes, w0);
    }
    hid_t dataset = CALL(H5Dopen2, file, asked->dataset, access);
    CALL(H5Pclose, access);
    return dataset;
}

/* Read all blocks, or as many as there is time for. */
static Record walk(hid_t dataset, const Request *asked)
{
    hsize_t shape[H5S_MAX_RANK], start[H5S_MAX_RANK] = {0};
    hsize_t count[H5S_MAX_RANK], count_before[H5S_MAX_RANK] = {0};
    Record record = {0};

    hid_t space = CALL(H5Dget_space, dataset);
    int rank = (int)CALL(H5Sget_simple_extent_ndims, space);
    if (rank != asked->rank)
        die("the block has %d dimensions, the dataset %d", asked->rank, rank);
    CALL(H5Sget_simple_extent_dims, space, shape, NULL);

    hid_t type = CALL(H5Dget_type, dataset);
    int64_t class = CALL(H5Tget_class, type);
    if (class != H5T_INTEGER && class != H5T_FLOAT)
        die("%s does not hold numbers", asked->dataset);
    size_t element_nbytes = hdf5.H5Tget_size(type);

    size_t largest_nbytes = element_nbytes;
    record.total_operations = 1;
    for (int d = 0; d < rank; d++) {
        hsize_t longest = asked->block[d] < shape[d] ? asked->block[d] : shape[d];
        if (longest > 0 && largest_nbytes > SIZE_MAX / longest)
            die("a block is larger than memory can be");
        largest_nbytes *= longest;
        record.total_operations *= (shape[d] + asked->block[d] - 1) / asked->block[d];
    }
    if (record.total_operations == 0)
        die("%s has no elements", asked->dataset);
    unsigned char *buffer = zeroed(largest_nbytes);

    const double max_ns = asked->max_seconds * 1e9;
    hid_t memory = -1;
    do {
        size_t nbytes = element_nbytes;
        for (int d = 0; d < rank; d++) {
            hsize_t left = shape[d] - start[d];
            count[d] = asked->block[d] < left ? asked->block[d] : left;
            nbytes *= count[d];
        }
        /* What a read leaves untouched must not show the one before. */
        if (record.operations > 0)
            memset(buffer, 0, nbytes);

        uint64_t begun = now_ns();
        if (memory < 0 || memcmp(count, count_before, sizeof *count * (size_t)rank) != 0) {
            if (memory >= 0)
                CALL(H5Sclose, memory);
            memory = CALL(H5Screate_simple, rank, count, NULL);
            memcpy(count_before, count, sizeof *count * (size_t)rank);
        }
        CALL(H5Sselect_hyperslab, space, H5S_SELECT_SET, start, NULL, count, NULL);
        CALL(H5Dread, dataset, type, memory, space, H5P_DEFAULT, buffer);
        uint64_t took = now_ns() - begun;

        if (record.operations == 0)
            record.first_ns = took;
        record.elapsed_ns += took;
        record.operations += 1;
        record.selected_nbytes += nbytes;
        record.checksum = crc32(record.checksum, buffer, nbytes);

        /* The next block's corner: count up, beginning with the last dimension. */
        for (int d = rank - 1; d >= 0; d--) {
            start[d] += asked->block[d];
            if (start[d] < shape[d])
                break;
            start[d] = 0;
        }
    } while (record.operations < record.total_operations && (double)record.elapsed_ns < max_ns);

    CALL(H5Sclose, memory);
    CALL(H5Tclose, type);
    CALL(H5Sclose, space);
    free(buffer);
    return record;
}

/* A number from `least` on; of a block's, those that another follows end in an x. */
static long long whole_number(const char *text, const char **end, long long least)
{
    char *behind;
    errno = 0;
    long long value = strtoll(text, &behind, 10);
    if (behind == text || errno != 0 || value < least || (end == NULL && *behind != '\0'))
        die("'%s' is no whole number from %lld on", text, least);
    if (end != NULL)
        *end = behind;
    return value;
}

static double real_number(const char *text)
{
    char *behind;
    double value = strtod(text, &behind);
    if (behind == text || *behind != '\0' || !(value >= 0))
        die("'%s' is no number from 0 on", text);
    return value;
}

static Request understand(int argc, char **argv)
{
    static const struct option options[] = {
        {"library", required_argument, NULL, 'l'}, {"cache-nbytes", required_argument, NULL, 'c'},
        {"nslots", required_argument, NULL, 'n'},  {"w0", required_argument, NULL, 'w'},
        {"max-seconds", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    Request asked = {.library = "libhdf5.so", .cache_nbytes = -1, .nslots = -1, .w0 = -1};
    asked.max_seconds = INFINITY;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'l': asked.library = optarg; break;
        case 'c': asked.cache_nbytes = whole_number(optarg, NULL, 0); break;
        case 'n': asked.nslots = whole_number(optarg, NULL, 0); break;
        case 'w': asked.w0 = real_number(optarg); break;
        case 's': asked.max_seconds = real_number(optarg); break;
        case 'h': fputs(USAGE, stdout); exit(0);
        default: fputs(USAGE, stderr); exit(1);
        }
    if (argc - optind != 3) {
        fputs(USAGE, stderr);
        exit(1);
    }
    asked.file = argv[optind];
    asked.dataset = argv[optind + 1];
    for (const char *next = argv[optind + 2];; next++) {
        if (asked.rank == H5S_MAX_RANK)
            die("a block has at most %d dimensions", H5S_MAX_RANK);
        asked.block[asked.rank++] = (hsize_t)whole_number(next, &next, 1);
        if (*next == '\0')
            return asked;
        if (*next != 'x')
            die("'%s' is no shape: write a block as 1x30x717", argv[optind + 2]);
    }
}

int main(int argc, char **argv)
{
    size_t nslots, nbytes;
    double w0;

    Request asked = understand(argc, argv);
    make_crc_table();
    bind_library(asked.library);

    hid_t file = CALL(H5Fopen, asked.file, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = open_dataset(file, &asked);
    hid_t access = CALL(H5Dget_access_plist, dataset);
    CALL(H5Pget_chunk_cache, access, &nslots, &nbytes, &w0);
    CALL(H5Pclose, access);
    Record record = walk(dataset, &asked);
    CALL(H5Dclose, dataset);
    CALL(H5Fclose, file);

    printf("{\"operations\": %" PRIu64 ", \"total_operations\": %" PRIu64 ", ",
           record.operations, record.total_operations);
    printf("\"elapsed_s\": %.9f, \"first_s\": %.9f, ", (double)record.elapsed_ns / 1e9,
           (double)record.first_ns / 1e9);
    printf("\"selected_nbytes\": %" PRIu64 ", \"checksum\": %" PRIu32 ", ",
           record.selected_nbytes, record.checksum);
    printf("\"cache_nbytes\": %zu, \"cache_nslots\": %zu, \"cache_w0\": %g, ", nbytes, nslots, w0);
    printf("\"hdf5\": \"%s\", \"zlib\": \"%s\"}\n", hdf5.version, hdf5.zlib);
    return 0;
}
