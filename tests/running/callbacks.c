/* One thread reads within callbacks, which hold HDF5's lock, while another opens datasets and reads a
 * little of each: `callbacks FILE ROUNDS` */
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static hid_t file;
static volatile int is_done;

static void *little(void *argument) {
    double values[10];
    hsize_t start = 3, count = 10;
    while (!is_done) {
        hid_t dataset = H5Dopen2(file, "a", H5P_DEFAULT), space = H5Dget_space(dataset);
        hid_t memory = H5Screate_simple(1, &count, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
        H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values);
        *(double *)argument = values[4];
        H5Sclose(memory);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    return NULL;
}

static herr_t one(hid_t group, const char *name, const H5L_info_t *info, void *sum) {
    (void)info;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    double *values = malloc(20000 * sizeof *values);
    usleep(300);
    H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    *(double *)sum += values[77];
    free(values);
    H5Dclose(dataset);
    return 0;
}

int main(int count, char **words) {
    hbool_t is_safe = 0;
    if (count < 3 || H5is_library_threadsafe(&is_safe) < 0 || !is_safe) return 77;
    int rounds = atoi(words[2]);
    file = H5Fopen(words[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    double sums[2] = {0, 0};
    pthread_t thread;
    pthread_create(&thread, NULL, little, &sums[0]);
    for (int i = 0; i < rounds; i++) {
        H5Literate(file, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, one, &sums[1]);
        usleep(100);
    }
    is_done = 1;
    pthread_join(thread, NULL);
    printf("%g %g\n", sums[0], sums[1]);
    H5Fclose(file);
    return 0;
}
