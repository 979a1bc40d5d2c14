/* A dataset that cannot be flushed while it is closed leaves a handle to freed memory.
 *
 * H5Dclose fails, because the disk is full, and frees the dataset nevertheless.  But its handle is
 * still in the library's table.  Closing the file, or the end of the process, follows it.
 *
 * Expected: H5Dclose and maybe H5Fclose fail, and the program returns 0.
 * Actual:
 *   1.10.8, 2.0.0: segmentation fault, in H5Fclose (H5D__flush_all_cb) or at exit
 *     (H5D_top_term_package).
 *
 * "flushed" shows what avoids it: the dataset is flushed while it is open, and if that fails, its
 * file's descriptor becomes another one, that of memory, before it is closed.
 *
 * Build and run: h5cc close_unflushed.c -o close_unflushed && ./close_unflushed FILE [flushed]
 */
#define _GNU_SOURCE
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static unsigned char values[4000];
    hsize_t size = sizeof values, chunk = 1000;
    struct rlimit full = {2000, RLIM_INFINITY};
    int *descriptor;
    if (argc < 2)
        return 2;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);

    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 1, &chunk);
    hid_t data = H5Dcreate2(file, "x", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Dwrite(data, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);

    /* As a full disk: writes beyond this fail with EFBIG. */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &full);
    if (argc > 2 && H5Dflush(data) < 0) {
        full.rlim_cur = RLIM_INFINITY;
        setrlimit(RLIMIT_FSIZE, &full);
        H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&descriptor);
        dup2(memfd_create("given up", 0), *descriptor);
    }
    printf("H5Dclose returned %d\n", (int)H5Dclose(data));
    fflush(stdout);
    printf("H5Fclose returned %d\n", (int)H5Fclose(file));
    fflush(stdout);
    return 0;
}
