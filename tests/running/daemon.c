/* Reads a dataset, closes all descriptors that it has not opened itself, opens another file under
 * their numbers, and reads on.  `daemon FILE DATASET OTHER`. */
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long sum(hid_t dataset, hsize_t row) {
    hsize_t dims[2], start[2] = {row, 0}, count[2] = {1, 0};
    hid_t space = H5Dget_space(dataset);
    H5Sget_simple_extent_dims(space, dims, NULL);
    count[1] = dims[1];
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    hid_t memory = H5Screate_simple(1, &dims[1], NULL);
    float *values = malloc(dims[1] * sizeof *values);
    unsigned long found = 0;
    if (H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values) < 0) exit(3);
    for (hsize_t i = 0; i < dims[1]; i++) found += (unsigned long)values[i];
    free(values);
    H5Sclose(memory);
    H5Sclose(space);
    return found;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    hid_t file = H5Fopen(words[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, words[2], H5P_DEFAULT);
    int *theirs, most = (int)sysconf(_SC_OPEN_MAX);
    if (H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&theirs) < 0) return 3;
    for (hsize_t row = 0; row < 10; row++) printf("%lu\n", sum(dataset, row));
    int *taken = calloc(most, sizeof *taken), gone = 0;
    for (int number = 3; number < most; number++)
        if (number != *theirs && close(number) == 0) {
            taken[number] = 1;
            int other = open(words[3], O_RDONLY);
            if (other != number) {
                dup2(other, number);
                close(other);
            }
        }
    for (hsize_t row = 10; row < 200; row++) printf("%lu\n", sum(dataset, row));
    H5Dclose(dataset);
    H5Fclose(file);
    /* What was opened here is still open. */
    for (int number = 3; number < most; number++)
        gone += taken[number] && fcntl(number, F_GETFD) < 0;
    printf("%d are gone\n", gone);
    free(taken);
    return 0;
}
