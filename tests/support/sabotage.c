/* Which call that changes a file goes wrong, and how?  Loaded with LD_PRELOAD by sabotage.py.
 *
 * Counted are calls for files whose path begins with SABOTAGE_UNDER, in this process and all that it
 * starts, in the order in which they come.  SABOTAGE_STATE is a file of a `struct state`, which all
 * of them share: how many there were, and which go wrong.  SABOTAGE_LOG gets one line for each:
 * number, process, call, bytes, fault, path.  The faults:
 *
 *   pass      nothing is wrong
 *   flip      one bit of the middle byte is written wrong
 *   drop      nothing is done, and the call says that it was
 *   short     half is written, and the call says so
 *   enospc    nothing is done, and the call fails with ENOSPC; a file is closed nevertheless
 *   eio       the same with EIO
 *   late      it is done, and the call fails with EIO
 *   kill      SIGKILL instead of the call
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { PWRITE, WRITE, PWRITEV, WRITEV, FSYNC, FDATASYNC, CLOSE, FTRUNCATE, FALLOCATE,
            COPY_FILE_RANGE, SENDFILE, RENAME, LINK, UNLINK, CALLS };
static const char *const names[CALLS] = {
    "pwrite", "write", "pwritev", "writev", "fsync", "fdatasync", "close", "ftruncate", "fallocate",
    "copy_file_range", "sendfile", "rename", "link", "unlink"};
enum fault { PASS, FLIP, DROP, SHORT, ENOSPC_, EIO_, LATE, KILL, FAULTS };
static const char *const faults[FAULTS] = {
    "pass", "flip", "drop", "short", "enospc", "eio", "late", "kill"};

struct state {
    uint64_t count;
    /* The first call that goes wrong, from 1 on; 0 for none. */
    uint64_t first;
    /* Bit n: calls of names[n] are counted. */
    uint32_t calls;
    /* The faults of that call and those after it; whether all later ones have the last. */
    uint8_t lasting, len, listed[32];
};

static const char *under;
static volatile struct state *state;
static int log_fd = -1;

/* The function that is replaced. */
#define REAL(name)                \
    static __typeof__(&name) real; \
    if (!real)                    \
        *(void **)&real = dlsym(RTLD_NEXT, #name)

static void wrong(const char *what)
{
    dprintf(2, "sabotage: %s\n", what);
    _exit(120);
}

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("SABOTAGE_UNDER"), *log = getenv("SABOTAGE_LOG");
    const char *path = getenv("SABOTAGE_STATE");
    if (!folder || !path || !log)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *map = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || map == MAP_FAILED)
        wrong("SABOTAGE_STATE cannot be used");
    state = map;
    /* Out of the way of descriptors that a program counts on. */
    int low = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    log_fd = fcntl(low, F_DUPFD_CLOEXEC, 200);
    __typeof__(&close) close_;
    *(void **)&close_ = dlsym(RTLD_NEXT, "close");
    close_(low);
    close_(fd);
    under = folder;
}

/* Whether a call is counted. */
static int counted(enum call call)
{
    return under && (state->calls & (1u << call));
}

static enum fault next(enum call call, long nbytes, const char *path)
{
    if (strncmp(path, under, strlen(under)))
        return PASS;
    uint64_t number = __atomic_add_fetch(&state->count, 1, __ATOMIC_SEQ_CST);
    enum fault fault = PASS;
    if (state->first && number >= state->first) {
        uint64_t at = number - state->first;
        if (at < state->len)
            fault = state->listed[at];
        else if (state->lasting)
            fault = state->listed[state->len - 1];
    }
    if (log_fd >= 0) {
        char line[PATH_MAX + 128];
        __typeof__(&write) write_;
        *(void **)&write_ = dlsym(RTLD_NEXT, "write");
        int len = snprintf(line, sizeof line, "%llu %d %s %ld %s %s\n", (unsigned long long)number,
                           (int)getpid(), names[call], nbytes, faults[fault], path);
        if (write_(log_fd, line, (size_t)len) != len)
            wrong("SABOTAGE_LOG cannot be written");
    }
    if (fault == KILL)
        kill(getpid(), SIGKILL);
    return fault;
}

/* What is to go wrong with a call for an open file. */
static enum fault for_file(enum call call, int fd, long nbytes)
{
    char link[40], path[PATH_MAX];
    struct stat stated;
    if (!counted(call))
        return PASS;
    int kept = errno;
    enum fault fault = PASS;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len > 0 && !fstat(fd, &stated) && S_ISREG(stated.st_mode)
        && (call != CLOSE || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)) {
        path[len] = 0;
        fault = next(call, nbytes, path);
    }
    errno = kept;
    return fault;
}

/* The same for a name in a folder. */
static enum fault for_name(enum call call, int folder, const char *name)
{
    char link[40], path[2 * PATH_MAX] = "";
    if (!counted(call))
        return PASS;
    int kept = errno;
    if (name[0] != '/') {
        ssize_t len;
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        len = readlink(folder == AT_FDCWD ? "/proc/self/cwd" : link, path, PATH_MAX - 1);
        path[len > 0 ? len : 0] = 0;
        strcat(path, "/");
    }
    strncat(path, name, PATH_MAX - 1);
    enum fault fault = next(call, 0, path);
    errno = kept;
    return fault;
}

static int failed(enum fault fault)
{
    if (fault == ENOSPC_ || fault == EIO_) {
        errno = fault == EIO_ ? EIO : ENOSPC;
        return 1;
    }
    return 0;
}

/* A call without data; `doing` is the call itself. */
#define WITHOUT_DATA(planned, doing)   \
    do {                               \
        enum fault now = (planned);    \
        if (failed(now))               \
            return -1;                 \
        if (now == DROP)               \
            return 0;                  \
        int got = (doing);             \
        if (now == LATE && got == 0) { \
            errno = EIO;               \
            return -1;                 \
        }                              \
        return got;                    \
    } while (0)

/* What is written instead of the first buffer, where one bit is to be wrong. */
static void *flipped(const void *data, size_t len)
{
    char *copy = malloc(len ? len : 1);
    if (!copy)
        wrong("no memory");
    memcpy(copy, data, len);
    if (len)
        copy[len / 2] ^= 16;
    return copy;
}

#define WITH_DATA(planned, data, len, doing)                      \
    do {                                                          \
        enum fault now = (planned);                               \
        const void *what = (data);                                \
        size_t size = (len);                                      \
        void *copy = NULL;                                        \
        if (failed(now))                                          \
            return -1;                                            \
        if (now == DROP)                                          \
            return (ssize_t)size;                                 \
        if (now == SHORT && size > 1)                             \
            size /= 2;                                            \
        if (now == FLIP)                                          \
            what = copy = flipped(what, size);                    \
        ssize_t got = (doing);                                    \
        int kept = errno;                                         \
        free(copy);                                               \
        errno = kept;                                             \
        if (now == LATE && got >= 0) {                            \
            errno = EIO;                                          \
            return -1;                                            \
        }                                                         \
        return got;                                               \
    } while (0)

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    REAL(pwrite);
    WITH_DATA(for_file(PWRITE, fd, (long)len), data, len, real(fd, what, size, at));
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    REAL(pwrite64);
    WITH_DATA(for_file(PWRITE, fd, (long)len), data, len, real(fd, what, size, at));
}

ssize_t write(int fd, const void *data, size_t len)
{
    REAL(write);
    WITH_DATA(for_file(WRITE, fd, (long)len), data, len, real(fd, what, size));
}

/* One buffer of all; what a fault spares goes on as it came. */
static void *joined(const struct iovec *parts, int len, size_t *size)
{
    *size = 0;
    for (int i = 0; i < len; i++)
        *size += parts[i].iov_len;
    char *all = malloc(*size ? *size : 1), *end = all;
    if (!all)
        wrong("no memory");
    for (int i = 0; i < len; i++)
        end = mempcpy(end, parts[i].iov_base, parts[i].iov_len);
    return all;
}

static ssize_t in_parts(enum fault now, int fd, const struct iovec *parts, int len, off_t at)
{
    size_t size;
    char *all = joined(parts, len, &size);
    ssize_t got = (ssize_t)size;
    if (failed(now))
        got = -1;
    else if (now != DROP) {
        ssize_t (*pwrite_)(int, const void *, size_t, off_t);
        ssize_t (*write_)(int, const void *, size_t);
        *(void **)&pwrite_ = dlsym(RTLD_NEXT, "pwrite");
        *(void **)&write_ = dlsym(RTLD_NEXT, "write");
        if (now == FLIP && size)
            all[size / 2] ^= 16;
        if (now == SHORT && size > 1)
            size /= 2;
        got = at < 0 ? write_(fd, all, size) : pwrite_(fd, all, size, at);
        if (now == LATE && got >= 0) {
            errno = EIO;
            got = -1;
        }
    }
    int kept = errno;
    free(all);
    errno = kept;
    return got;
}

static long length(const struct iovec *parts, int len)
{
    long sum = 0;
    for (int i = 0; i < len; i++)
        sum += (long)parts[i].iov_len;
    return sum;
}

ssize_t pwritev(int fd, const struct iovec *parts, int len, off_t at)
{
    REAL(pwritev);
    enum fault now = for_file(PWRITEV, fd, length(parts, len));
    return now == PASS ? real(fd, parts, len, at) : in_parts(now, fd, parts, len, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int len, off64_t at)
{
    return pwritev(fd, parts, len, at);
}

ssize_t writev(int fd, const struct iovec *parts, int len)
{
    REAL(writev);
    enum fault now = for_file(WRITEV, fd, length(parts, len));
    return now == PASS ? real(fd, parts, len) : in_parts(now, fd, parts, len, -1);
}

int fsync(int fd)
{
    REAL(fsync);
    WITHOUT_DATA(for_file(FSYNC, fd, 0), real(fd));
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    WITHOUT_DATA(for_file(FDATASYNC, fd, 0), real(fd));
}

int close(int fd)
{
    REAL(close);
    enum fault now = for_file(CLOSE, fd, 0);
    int got = real(fd);
    return failed(now == LATE ? EIO_ : now) ? -1 : got;
}

/* Half of the length, where it falls short. */
int ftruncate(int fd, off_t len)
{
    REAL(ftruncate);
    enum fault fault = for_file(FTRUNCATE, fd, (long)len);
    WITHOUT_DATA(fault, real(fd, fault == SHORT ? len / 2 : len));
}

int ftruncate64(int fd, off64_t len)
{
    return ftruncate(fd, len);
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
    REAL(fallocate);
    WITHOUT_DATA(for_file(FALLOCATE, fd, (long)len), real(fd, mode, at, len));
}

int fallocate64(int fd, int mode, off64_t at, off64_t len)
{
    return fallocate(fd, mode, at, len);
}

/* These two return the error. */
int posix_fallocate(int fd, off_t at, off_t len)
{
    REAL(posix_fallocate);
    enum fault now = for_file(FALLOCATE, fd, (long)len);
    if (failed(now))
        return errno;
    return now == DROP ? 0 : real(fd, at, len);
}

int posix_fallocate64(int fd, off64_t at, off64_t len)
{
    return posix_fallocate(fd, at, len);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *place, size_t len, unsigned flags)
{
    REAL(copy_file_range);
    enum fault now = for_file(COPY_FILE_RANGE, to, (long)len);
    if (failed(now))
        return -1;
    return real(from, at, to, place, now == SHORT && len > 1 ? len / 2 : len, flags);
}

ssize_t sendfile(int to, int from, off_t *at, size_t len)
{
    REAL(sendfile);
    enum fault now = for_file(SENDFILE, to, (long)len);
    if (failed(now))
        return -1;
    return real(to, from, at, now == SHORT && len > 1 ? len / 2 : len);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t len)
{
    return sendfile(to, from, at, len);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    WITHOUT_DATA(for_name(RENAME, AT_FDCWD, to), real(from, to));
}

int renameat(int from_in, const char *from, int to_in, const char *to)
{
    REAL(renameat);
    WITHOUT_DATA(for_name(RENAME, to_in, to), real(from_in, from, to_in, to));
}

int renameat2(int from_in, const char *from, int to_in, const char *to, unsigned flags)
{
    REAL(renameat2);
    WITHOUT_DATA(for_name(RENAME, to_in, to), real(from_in, from, to_in, to, flags));
}

int link(const char *from, const char *to)
{
    REAL(link);
    WITHOUT_DATA(for_name(LINK, AT_FDCWD, to), real(from, to));
}

int linkat(int from_in, const char *from, int to_in, const char *to, int flags)
{
    REAL(linkat);
    WITHOUT_DATA(for_name(LINK, to_in, to), real(from_in, from, to_in, to, flags));
}

int unlink(const char *path)
{
    REAL(unlink);
    WITHOUT_DATA(for_name(UNLINK, AT_FDCWD, path), real(path));
}

int unlinkat(int folder, const char *path, int flags)
{
    REAL(unlinkat);
    WITHOUT_DATA(for_name(UNLINK, folder, path), real(folder, path, flags));
}
