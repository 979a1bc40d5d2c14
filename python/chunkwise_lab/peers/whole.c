/*
 * How long does a plain C program take to read a dataset as a whole?
 *
 * `whole FILE DATASET f|d` reads it as floats or doubles by one call, and prints the seconds of the
 * call, and a sum over the bits of what was read.
 */
#define _POSIX_C_SOURCE 200809L
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    hid_t type = words[3][0] == 'd' ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
    hid_t file = H5Fopen(words[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, words[2], H5P_DEFAULT);
    hid_t space = H5Dget_space(dataset);
    hssize_t elements = H5Sget_simple_extent_npoints(space);
    if (elements < 1) return 3;
    size_t nbytes = (size_t)elements * H5Tget_size(type);
    uint32_t *values = malloc(nbytes);
    if (values == NULL) return 3;
    double begun = seconds();
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 3;
    double took = seconds() - begun;
    uint32_t sum = 0;
    for (size_t i = 0; i < nbytes / 4; i++) sum = sum * 31 + values[i];
    printf("%.6f %u\n", took, sum);
    H5Dclose(dataset);
    H5Fclose(file);
    return 0;
}
