/* H5Dread reads beyond the buffer of a chunk that a filter has made shorter than it should be.
 *
 * The library takes what the last filter gives for a whole chunk, and never compares lengths.  A
 * damaged chunk is enough, or a filter whose parameters belong to chunks of another shape, such as
 * ZFP's.
 *
 * Expected: H5Dread fails, and the program returns 0.
 * Actual:
 *   1.10.8, 2.0.0: segmentation fault in H5Dread, or whatever lies behind on the heap is read.
 *
 * Build and run: h5cc short_chunk.c -o short_chunk && ./short_chunk FILE
 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    /* 8 zeros, deflated. */
    static const unsigned char stored[] = {0x78, 0x9c, 0x63, 0x60, 0x80, 0, 0, 0, 8, 0, 1};
    hsize_t size = 64 << 20, origin = 0;
    if (argc != 2)
        return 2;

    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 1, &size);
    H5Pset_deflate(dcpl, 6);
    hid_t data = H5Dcreate2(file, "x", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Dwrite_chunk(data, H5P_DEFAULT, 0, &origin, sizeof stored, stored);
    void *values = malloc(size);
    herr_t status = H5Dread(data, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    printf("H5Dread returned %d\n", (int)status);
    H5Dclose(data);
    H5Fclose(file);
    return status < 0 ? 0 : 1;
}
