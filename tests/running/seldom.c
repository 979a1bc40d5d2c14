/* What few programs do, each in a way of its own: `seldom WAY FILE [OUT]`.
 *
 * The file has `x`, doubles in compressed chunks, and `contiguous`, 40 x 50 floats.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hid_t file, x;
static hsize_t size;
static void *values;

static void begin(const char *path, H5F_close_degree_t degree) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, degree);
    file = H5Fopen(path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    x = H5Dopen2(file, "x", H5P_DEFAULT);
    hid_t space = H5Dget_space(x);
    size = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    values = calloc(size, 8);
}

/* Read all, and tell what came of it. */
static void read_all(hid_t type) {
    memset(values, 0, size * 8);
    herr_t status = H5Dread(x, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    uint64_t sum = 0;
    for (hsize_t i = 0; i < size; i++) sum = sum * 31 + ((uint64_t *)values)[i];
    printf("read %d, sum %016llx", status, (unsigned long long)sum);
    printf(", %d errors\n", (int)H5Eget_num(H5E_DEFAULT));
}

static int calls;

static herr_t handler(void *data) {
    ++*(int *)data;
    return 0;
}

/* An error handler as HDF5 1.6 has it. */
static void handlers(void) {
    H5Eset_auto1(handler, &calls);
    for (int i = 0; i < 3; i++) read_all(H5T_IEEE_F64LE);
    printf("called %d times\n", calls);
    H5E_auto1_t found;
    void *data;
    H5Eget_auto1(&found, &data);
    printf("kept: %d\n", found == handler && data == &calls);
    read_all(-1);
    printf("called %d times\n", calls);
}

/* Files that are closed by their last reference, with errors, and with all that is in them. */
static void closes(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    read_all(H5T_IEEE_F64LE);
    printf("no file: %d", H5Fclose(x));
    printf(", %d errors\n", (int)H5Eget_num(H5E_DEFAULT));
    read_all(H5T_IEEE_F64LE);
    printf("left: %d\n", H5Idec_ref(file));
    read_all(H5T_IEEE_F64LE);
}

/* What conversions signal and how they round is the program's matter. */
static void arithmetic(void) {
    const int all = FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_DIVBYZERO;
    feclearexcept(FE_ALL_EXCEPT);
    read_all(H5T_NATIVE_FLOAT);
    printf("signalled: %x\n", fetestexcept(all));
    const int ways[] = {FE_UPWARD, FE_TOWARDZERO, FE_TONEAREST};
    for (int i = 0; i < 3; i++) {
        fesetround(ways[i]);
        read_all(H5T_NATIVE_FLOAT);
        printf("rounds: %d\n", fegetround() == ways[i]);
    }
}

static void traps(void) {
    feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
    read_all(H5T_NATIVE_FLOAT);
    read_all(H5T_IEEE_F64LE);
    read_all(H5T_NATIVE_INT);
    printf("traps: %x\n", fegetexcept());
}

/* Selections that a trace has to tell: with another number of dimensions, irregular, of points, and
   of what has grown.  HDF5 prints its errors. */
static void selections(const char *out) {
    hid_t contiguous = H5Dopen2(file, "contiguous", H5P_DEFAULT);
    hsize_t flat = 2000, start = 0, count = 100;
    hid_t space = H5Screate_simple(1, &flat, NULL), memory = H5Screate_simple(1, &count, NULL);
    for (start = 0; start < 300; start += 100) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
        int status = H5Dread(contiguous, H5T_IEEE_F32LE, memory, space, H5P_DEFAULT, values);
        printf("flat: %d\n", status);
    }
    H5Sclose(space);
    space = H5Dget_space(contiguous);
    hsize_t begin[2] = {0, 0}, box[2] = {4, 20}, other[2] = {10, 5}, small[2] = {2, 10};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, begin, NULL, box, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_OR, other, NULL, small, NULL);
    int status = H5Dread(contiguous, H5T_IEEE_F32LE, memory, space, H5P_DEFAULT, values);
    printf("irregular: %d, %d errors\n", status, (int)H5Eget_num(H5E_DEFAULT));
    hsize_t points[200];
    for (int i = 0; i < 200; i++) points[i] = (i * 7) % 40;
    H5Sselect_elements(space, H5S_SELECT_SET, 100, points);
    printf("points: %d\n", H5Dread(contiguous, H5T_IEEE_F32LE, memory, space, H5P_DEFAULT, values));
    H5Sclose(space);
    H5Sclose(memory);
    H5Dclose(contiguous);
    hid_t made = H5Pcreate(H5P_DATASET_CREATE), new = H5Fcreate(out, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t dims[2] = {10, 6}, most[2] = {H5S_UNLIMITED, 6}, chunk[2] = {5, 6};
    H5Pset_chunk(made, 2, chunk);
    space = H5Screate_simple(2, dims, most);
    hid_t grows = H5Dcreate2(new, "grows", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    H5Dwrite(grows, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dread(grows, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    dims[0] = 30;
    H5Dset_extent(grows, dims);
    H5Dread(grows, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    hid_t written = H5Dcreate2(new, "written", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    H5Dwrite(written, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(written);
    H5Dclose(grows);
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(new);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    const char *way = words[1];
    begin(words[2], strcmp(way, "closes") ? H5F_CLOSE_WEAK : H5F_CLOSE_STRONG);
    if (!strcmp(way, "handlers")) handlers();
    if (!strcmp(way, "closes")) closes();
    if (!strcmp(way, "arithmetic")) arithmetic();
    if (!strcmp(way, "traps")) traps();
    if (!strcmp(way, "selections")) selections(words[3]);
    fflush(stdout);
    return 0;
}
