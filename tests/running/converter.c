/*
 * Write a field by lines of latitude, as an archive converter does that gets it in these slabs.
 *
 * `converter FILE` writes 4x64x240 floats into four chunks, a line at a time, by a chunk cache that
 * holds none of them.  Compiled with REMEDY, by the cache that the lines in remedy.inc make.
 */
#include <hdf5.h>
#include <stdlib.h>

enum { LEVELS = 4, LINES = 64, LENGTH = 240 };

int main(int count, char **words) {
    if (count != 2) return 2;
    hid_t file = H5Fcreate(words[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, (hsize_t[]){LEVELS, LINES, LENGTH}, NULL);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 3, (hsize_t[]){LEVELS, LINES / 2, LENGTH / 2});
    H5Pset_deflate(dcpl, 1);
#ifdef REMEDY
#include "remedy.inc"
#else
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(dapl, 521, 1, 1.0);
#endif
    hid_t dataset = H5Dcreate2(file, "t", H5T_IEEE_F32LE, space, H5P_DEFAULT, dcpl, dapl);
    float *slab = malloc(sizeof(float) * LEVELS * LENGTH);
    if (slab == NULL) return 3;
    hsize_t block[] = {LEVELS, 1, LENGTH};
    hid_t memory = H5Screate_simple(3, block, NULL);
    for (hsize_t line = 0; line < LINES; line++) {
        for (int i = 0; i < LEVELS * LENGTH; i++) slab[i] = (float)((line * 31 + i) % 1000);
        hsize_t start[] = {0, line, 0};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL);
        if (H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, slab) < 0) return 3;
    }
    free(slab);
    H5Sclose(memory);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
    return 0;
}
