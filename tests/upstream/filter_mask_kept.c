/* libhdf5 keeps a chunk's old filter mask when it rewrites the chunk at equal stored size.
 *
 *     h5cc filter_mask_kept.c -o filter_mask_kept && ./filter_mask_kept
 *
 * A dataset has one optional filter. It flips bits, so that a chunk stays as long as it is, and it
 * fails for chunks of ones; a chunk for which it fails is stored without it, which its filter mask
 * says. The chunk is written with zeros (the filter works), flushed, and written with ones (the
 * filter fails).
 *
 * Expected: the file holds ones. What comes: the chunk is stored without the filter, but its mask
 * in the chunk index still says that the filter was applied. A reader applies it: 84 in place of 1.
 * Without the flush the values are right.
 *
 * Cause: H5D__chunk_flush_entry (H5Dchunk.c) puts a chunk into the index again only if
 * H5D__chunk_file_alloc gave it another place. A chunk of the same length keeps its place, and so
 * the new filter mask is never stored. The same happens the other way round, and when
 * H5Dwrite_chunk overwrites a chunk of equal length with another mask. Filters of libhdf5 and its
 * plugins that fail for some chunks are szip, LZF and Blosc.
 *
 * Exit code: 0 where the values are right, 1 where they are not, 2 where a call fails.
 */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#define FLIP 300
#define LEN 64
#define NAME "filter_mask_kept.h5"

static size_t flip(unsigned flags, size_t cd_nelmts, const unsigned cd_values[], size_t nbytes,
                   size_t *buf_size, void **buf)
{
    unsigned char *bytes = (unsigned char *)*buf;
    size_t i;
    (void)cd_nelmts, (void)cd_values, (void)buf_size;
    if (!(flags & H5Z_FLAG_REVERSE) && bytes[0] == 1)
        return 0; /* the filter fails */
    for (i = 0; i < nbytes; i++)
        bytes[i] ^= 0x55;
    return nbytes;
}

static const H5Z_class2_t FLIP_CLASS = {H5Z_CLASS_T_VERS, FLIP, 1, 1, "flip", NULL, NULL, flip};

int main(void)
{
    unsigned char data[LEN];
    unsigned major, minor, release;
    hsize_t len = LEN;
    hid_t file, space, dcpl, dataset;
    herr_t status = 0;

    H5get_libversion(&major, &minor, &release);
    status |= H5Zregister(&FLIP_CLASS);
    file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    space = H5Screate_simple(1, &len, NULL);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    status |= H5Pset_chunk(dcpl, 1, &len);
    status |= H5Pset_filter(dcpl, FLIP, H5Z_FLAG_OPTIONAL, 0, NULL);
    dataset = H5Dcreate2(file, "x", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    memset(data, 0, LEN);
    status |= H5Dwrite(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    status |= H5Fflush(file, H5F_SCOPE_LOCAL);
    memset(data, 1, LEN);
    status |= H5Dwrite(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
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
