/* Several threads read the same and other datasets, open and close them, and convert, while one writes
 * another file.  Prints what each has summed up: `threads FILE OUT THREADS ROUNDS NAME...` */
#include <hdf5.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static char **words;
static int names, rounds;
static hid_t file;

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static void *reads(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument, *found = calloc(1, sizeof *found);
    hid_t types[] = {H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE, H5T_NATIVE_INT};
    double *values = malloc(1 << 20);
    for (int i = 0; i < rounds; i++) {
        hid_t dataset = H5Dopen2(file, words[5 + next(&state) % names], H5P_DEFAULT);
        hid_t space = H5Dget_space(dataset);
        hsize_t dims[2], start[2], count[2];
        H5Sget_simple_extent_dims(space, dims, NULL);
        for (int k = 0; k < 4; k++) {
            start[0] = next(&state) % dims[0];
            count[0] = 1 + next(&state) % (dims[0] - start[0] < 20 ? dims[0] - start[0] : 20);
            start[1] = 0;
            count[1] = dims[1];
            H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
            hid_t memory = H5Screate_simple(2, count, NULL), type = types[next(&state) % 3];
            if (H5Dread(dataset, type, memory, space, H5P_DEFAULT, values) < 0) *found += 1000003;
            size_t nbytes = count[0] * count[1] * H5Tget_size(type);
            for (size_t b = 0; b < nbytes; b++) *found = *found * 31 + ((unsigned char *)values)[b];
            H5Sclose(memory);
        }
        H5Sclose(space);
        H5Dclose(dataset);
    }
    free(values);
    return found;
}

static void *writes(void *argument) {
    (void)argument;
    hsize_t dims[2] = {64, 4096}, chunk[2] = {8, 4096};
    float *values = malloc(dims[0] * dims[1] * sizeof *values);
    for (hsize_t i = 0; i < dims[0] * dims[1]; i++) values[i] = (float)(i % 1013);
    hid_t out = H5Fcreate(words[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, dims, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(made, 2, chunk);
    H5Pset_deflate(made, 1);
    for (int k = 0; k < 4; k++) {
        char name[] = {(char)('a' + k), 0};
        hid_t dataset = H5Dcreate2(out, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
        H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Dclose(dataset);
    }
    H5Pclose(made);
    H5Sclose(space);
    H5Fclose(out);
    free(values);
    return calloc(1, sizeof(uint64_t));
}

int main(int count, char **arguments) {
    hbool_t is_safe = 0;
    if (count < 6 || H5is_library_threadsafe(&is_safe) < 0 || !is_safe) return 77;
    words = arguments;
    names = count - 5;
    rounds = atoi(words[4]);
    int threads = atoi(words[3]);
    file = H5Fopen(words[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    pthread_t *started = calloc(threads + 1, sizeof *started);
    for (int i = 0; i <= threads; i++)
        pthread_create(&started[i], NULL, i < threads ? reads : writes, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i <= threads; i++) {
        void *found;
        pthread_join(started[i], &found);
        printf("%d %llu\n", i, (unsigned long long)*(uint64_t *)found);
        free(found);
    }
    free(started);
    H5Fclose(file);
    return 0;
}
