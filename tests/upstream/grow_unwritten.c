/* H5Dset_extent grows a dataset that has no chunks yet and leaves partial chunks unfiltered.
 *
 * The chunk at the old edge is partial before and whole afterwards, so that the library looks
 * it up, to filter it from now on. No chunk was ever written, so that there is no chunk index,
 * and the library searches the index at an undefined address.
 *
 * Expected: the dataset grows. It prints "grown to 2500, read back", and returns 0.
 * Actual:
 *   1.10.8: segmentation fault in H5Dset_extent.
 *   2.0.0: H5Dset_extent fails ("addr undefined"). The dataset object has the new extent
 *     nevertheless, the file has the old one. What is written next is filtered as a whole chunk.
 *     Once the file is opened again, that chunk is partial, and its few stored bytes are taken
 *     for a whole unfiltered chunk: H5Dread reads, and H5Dwrite writes, beyond the buffer on the
 *     heap ("free(): invalid size").
 *
 * Build and run: h5cc grow_unwritten.c -o grow_unwritten && ./grow_unwritten FILE
 */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static unsigned char values[2500];
    hsize_t chunk = 1000, first = 500, grown = 2500, unlimited = H5S_UNLIMITED, extent = 0;
    if (argc != 2)
        return 2;

    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &first, &unlimited);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 1, &chunk);
    H5Pset_deflate(dcpl, 6);
    H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    hid_t data = H5Dcreate2(file, "x", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);

    herr_t grew = H5Dset_extent(data, &grown);
    H5Sget_simple_extent_dims(H5Dget_space(data), &extent, NULL);
    printf("H5Dset_extent returned %d, extent %llu\n", (int)grew, (unsigned long long)extent);
    fflush(stdout);

    memset(values, 7, sizeof values);
    H5Dwrite(data, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(data);
    H5Fclose(file);

    file = H5Fopen(argv[1], H5F_ACC_RDWR, H5P_DEFAULT);
    data = H5Dopen2(file, "x", H5P_DEFAULT);
    H5Sget_simple_extent_dims(H5Dget_space(data), &extent, NULL);
    memset(values, 0, sizeof values);
    herr_t was_read = H5Dread(data, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    int same = values[0] == 7 && values[extent - 1] == 7;
    H5Dclose(data);
    H5Fclose(file);
    if (grew < 0 || was_read < 0 || extent != grown || !same) {
        printf("extent %llu, %s\n", (unsigned long long)extent, same ? "read back" : "not read back");
        return 1;
    }
    printf("grown to %llu, read back\n", (unsigned long long)extent);
    return 0;
}
