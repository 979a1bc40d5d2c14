/* Writes down what a process does to the file RECORD_FILE: preloaded, the log is RECORD_LOG.
 *
 * A record is a letter, an offset and a length (8 bytes each, this machine's order), and data:
 * w (written), t (truncated to the offset), s (fsync has returned), m (a mark of the program's).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;

static void record(char kind, int64_t offset, int64_t length, const void *data)
{
    pthread_mutex_lock(&turn);
    if (log_file < 0)
        log_file = open(getenv("RECORD_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int64_t numbers[2] = {offset, length};
    if (write(log_file, &kind, 1) != 1 || write(log_file, numbers, 16) != 16 ||
        (data && write(log_file, data, length) != length))
        abort();
    pthread_mutex_unlock(&turn);
}

static int is_ours(int descriptor)
{
    struct stat one, other;
    const char *path = getenv("RECORD_FILE");
    return path && stat(path, &one) == 0 && fstat(descriptor, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

ssize_t pwrite64(int descriptor, const void *data, size_t length, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t) = next("pwrite64");
    ssize_t done = real(descriptor, data, length, offset);
    if (done > 0 && is_ours(descriptor))
        record('w', offset, done, data);
    return done;
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset)
{
    return pwrite64(descriptor, data, length, offset);
}

int ftruncate64(int descriptor, off_t length)
{
    int (*real)(int, off_t) = next("ftruncate64");
    int status = real(descriptor, length);
    if (status == 0 && is_ours(descriptor))
        record('t', length, 0, NULL);
    return status;
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

int fsync(int descriptor)
{
    int (*real)(int) = next("fsync");
    int ours = is_ours(descriptor), status = real(descriptor);
    if (status == 0 && ours)
        record('s', 0, 0, NULL);
    return status;
}

/* Called by the program. */
void record_mark(int number) { record('m', number, 0, NULL); }
