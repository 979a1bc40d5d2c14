/* H5Dset_extent loses chunks at the edge that were unfiltered, where their filter is left out now.
 *
 *     h5cc edge_mask_lost.c -o edge_mask_lost && ./edge_mask_lost
 *
 * With H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, a chunk at the edge is stored as it is in memory. When
 * the dataset grows, the chunk is whole: H5Dset_extent marks it for being stored again, filtered.
 * The dataset's filter is optional, and fails for this chunk, so that the chunk is stored without
 * it, at the length that it had.
 *
 * Expected: the values are read as they were written. What comes: the chunk index still says that
 * the filter was applied (the cause is that of filter_mask_kept.c), and a reader applies it to bytes
 * that it has not made: 84 in place of 1. Blosc then reads beyond the buffer, or fails. Where it
 * fails within H5Dset_extent (the dataset shrinks, the chunk is at the edge again), libhdf5 2.0.0
 * corrupts the heap: H5D__chunk_lock gives a buffer of malloc to a free list (H5D__chunk_mem_xfree,
 * H5FL_blk_free), which writes before its beginning. "free(): invalid pointer" comes much later.
 *
 * With the argument "longer", the program first stores the chunk one byte longer than it is, by
 * H5Dwrite_chunk. The length changes then, the new mask is stored, and the values are right.
 *
 * Exit code: 0 where the values are right, 1 where they are not, 2 where a call fails.
 */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#define FLIP 300
#define LEN 64
#define PART 40
#define NAME "edge_mask_lost.h5"

static size_t flip(unsigned flags, size_t cd_nelmts, const unsigned cd_values[], size_t nbytes,
                   size_t *buf_size, void **buf)
{
    unsigned char *bytes = (unsigned char *)*buf;
    size_t i;
    (void)cd_nelmts, (void)cd_values, (void)buf_size;
    if (!(flags & H5Z_FLAG_REVERSE))
        return 0; /* the filter fails */
    for (i = 0; i < nbytes; i++)
        bytes[i] ^= 0x55;
    return nbytes;
}

static const H5Z_class2_t FLIP_CLASS = {H5Z_CLASS_T_VERS, FLIP, 1, 1, "flip", NULL, NULL, flip};

int main(int argc, char **argv)
{
    unsigned char data[LEN], longer[LEN + 1] = {0};
    unsigned major, minor, release;
    hsize_t chunk = LEN, len = PART, grown = LEN, unlimited = H5S_UNLIMITED, origin = 0;
    hid_t file, space, dcpl, dataset;
    herr_t status = 0;

    H5get_libversion(&major, &minor, &release);
    status |= H5Zregister(&FLIP_CLASS);
    file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    space = H5Screate_simple(1, &len, &unlimited);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    status |= H5Pset_chunk(dcpl, 1, &chunk);
    status |= H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    status |= H5Pset_filter(dcpl, FLIP, H5Z_FLAG_OPTIONAL, 0, NULL);
    dataset = H5Dcreate2(file, "x", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    memset(data, 1, LEN);
    status |= H5Dwrite(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    status |= H5Fflush(file, H5F_SCOPE_LOCAL);
    if (argc > 1 && !strcmp(argv[1], "longer")) {
        memset(longer, 1, PART);
        status |= H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &origin, sizeof longer, longer);
    }
    status |= H5Dset_extent(dataset, &grown);
    status |= H5Dclose(dataset) | H5Pclose(dcpl) | H5Sclose(space) | H5Fclose(file);

    file = H5Fopen(NAME, H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    memset(data, 0, LEN);
    status |= H5Dread(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    status |= H5Dclose(dataset) | H5Fclose(file);
    if (status < 0)
        return 2;
    printf("libhdf5 %u.%u.%u: expected 1, read %d\n", major, minor, release, data[0]);
    return data[0] == 1 ? 0 : 1;
}
