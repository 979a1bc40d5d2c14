/* Threads read rows of /x, and the process ends or forks in some way.  Prints how many reads were made
 * before that: `ends FILE HOW THREADS CALLS`, where HOW is
 *     joined       all threads have ended before the process does
 *     running      the process ends while threads read on
 *     interrupted  as that, by a signal (SIGINT) whose handler ends it
 *     at-once      by `_exit`, after all threads have ended
 *     forking      children are forked while threads read; each reads /y.  Then one thread at a time calls
 *                  libhdf5: a child could not use one that another thread was in */
#define _GNU_SOURCE
#include <hdf5.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 20

static hid_t file;
static long calls;
static int goes_on;
static atomic_long made;
static atomic_int are_done, stop;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void read_rows(const char *name, long count, atomic_int *until) {
    float value[64];
    hsize_t dims[2], start[2] = {0, 0}, size[2] = {1, 0};
    if (goes_on == 2) pthread_mutex_lock(&turn);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    H5Sget_simple_extent_dims(space, dims, NULL);
    size[1] = dims[1];
    hid_t memory = H5Screate_simple(2, size, NULL);
    if (goes_on == 2) pthread_mutex_unlock(&turn);
    for (long i = 0; until ? !atomic_load(until) : i < count; i++) {
        start[0] = i % dims[0];
        if (goes_on == 2) pthread_mutex_lock(&turn);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
        if (H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, value) < 0) {
            if (goes_on != 1) _exit(3);
            pause(); /* libhdf5 has ended before this process. */
        }
        if (goes_on == 2) pthread_mutex_unlock(&turn);
        if (name[0] == 'x') atomic_fetch_add(&made, 1);
    }
    if (goes_on == 2) pthread_mutex_lock(&turn);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
    if (goes_on == 2) pthread_mutex_unlock(&turn);
}

static void *reads(void *argument) {
    static atomic_int never;
    (void)argument;
    read_rows("x", calls, NULL);
    atomic_fetch_add(&are_done, 1);
    if (goes_on) read_rows("x", 0, goes_on == 2 ? &stop : &never);
    return NULL;
}

static void ends(int signal) {
    (void)signal;
    exit(5);
}

static int all_children(void) {
    int status, failed = 0;
    for (int k = 0; k < CHILDREN; k++) {
        pthread_mutex_lock(&turn);
        pid_t child = fork();
        pthread_mutex_unlock(&turn);
        if (child == 0) {
            alarm(60);
            read_rows("y", calls, NULL);
            exit(0);
        }
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    return failed;
}

int main(int count, char **words) {
    hbool_t is_safe = 0;
    if (count != 5 || H5is_library_threadsafe(&is_safe) < 0 || !is_safe) return 77;
    const char *how = words[2];
    int threads = atoi(words[3]), failed = 0;
    calls = atol(words[4]);
    goes_on = strcmp(how, "forking") == 0 ? 2 : strcmp(how, "running") == 0 || strcmp(how, "interrupted") == 0;
    file = H5Fopen(words[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    pthread_t *started = calloc(threads, sizeof *started);
    for (int i = 0; i < threads; i++) pthread_create(&started[i], NULL, reads, NULL);
    while (goes_on && atomic_load(&are_done) < threads) usleep(1000);
    if (goes_on == 2) {
        failed = all_children();
        atomic_store(&stop, 1);
    }
    if (goes_on != 1)
        for (int i = 0; i < threads; i++) pthread_join(started[i], NULL);
    printf("%ld\n", atomic_load(&made));
    fflush(stdout);
    if (strcmp(how, "at-once") == 0) _exit(6);
    if (strcmp(how, "interrupted") == 0) {
        signal(SIGINT, ends);
        kill(getpid(), SIGINT);
        pause();
    }
    free(started);
    return failed;
}
