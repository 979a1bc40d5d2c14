/* Two threads read at the same moment, from two places, before anything else was read; what they have
 * opened is closed, and after H5close handles begin anew: `first FILE OTHER`.  Prints descriptors that
 * stay open, and whether each read was right. */
#include <dirent.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>

enum { LEN = 40000 };
static hid_t datasets[2];
static int values[2][LEN], failed[2];
static pthread_barrier_t barrier;

static void *first(void *argument) {
    (void)argument;
    pthread_barrier_wait(&barrier);
    failed[0] = H5Dread(datasets[0], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values[0]) < 0;
    return NULL;
}

static void *second(void *argument) {
    (void)argument;
    pthread_barrier_wait(&barrier);
    failed[1] = H5Dread(datasets[1], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values[1]) < 0;
    return NULL;
}

static int descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static int right(int n, int from) {
    for (int i = 0; i < LEN; i++)
        if (values[n][i] != from + i) return 0;
    return 1;
}

static void all(const char *path, int from) {
    pthread_t threads[2];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    datasets[0] = H5Dopen2(file, "x", H5P_DEFAULT);
    datasets[1] = H5Dopen2(file, "y", H5P_DEFAULT);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%s: %d %d %d %d\n", path, failed[0], failed[1], right(0, from), right(1, from + LEN));
    H5Dclose(datasets[0]);
    H5Dclose(datasets[1]);
    H5Fclose(file);
}

int main(int count, char **arguments) {
    hbool_t is_safe = 0;
    if (count != 3 || H5is_library_threadsafe(&is_safe) < 0 || !is_safe) return 77;
    pthread_barrier_init(&barrier, NULL, 2);
    int before = descriptors();
    all(arguments[1], 0);
    printf("%d stay open\n", descriptors() - before);
    H5close();
    all(arguments[2], 7);
    printf("%d stay open\n", descriptors() - before);
    return 0;
}
