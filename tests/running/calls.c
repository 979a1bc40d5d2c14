/* Makes the calls of HDF5 that its input names, and prints what came of each.
 *
 * One call a line; files and datasets are kept in numbered slots.  A buffer is filled with a pattern
 * before each read, and all of it is summed up after: what must not be touched counts, too.
 */
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16
#define RANK 8

static hid_t files[SLOTS], datasets[SLOTS];

static uint64_t sum(const unsigned char *bytes, size_t n) {
    uint64_t hash = 1469598103934665603ull;
    for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * 1099511628211ull;
    return hash;
}

static long long number(void) {
    long long value = 0;
    if (scanf("%lld", &value) != 1) exit(3);
    return value;
}

static char word(void) {
    char text[2];
    if (scanf(" %1s", text) != 1) exit(3);
    return text[0];
}

/* `A`, or `S rank dims n` and n parts: an operator and a hyperslab, points, all or nothing. */
static hid_t dataspace(void) {
    if (word() == 'A') return H5S_ALL;
    int rank = (int)number();
    hsize_t dims[RANK], part[4][RANK];
    for (int d = 0; d < rank; d++) dims[d] = number();
    hid_t space = H5Screate_simple(rank, dims, NULL);
    for (int left = (int)number(); left > 0; left--) {
        char kind = word();
        if (kind == 'N') H5Sselect_none(space);
        if (kind == 'E') H5Sselect_all(space);
        if (kind == 'O') {
            hssize_t offset[RANK];
            for (int d = 0; d < rank; d++) offset[d] = number();
            H5Soffset_simple(space, offset);
        }
        if (kind == 'H') {
            H5S_seloper_t operators[] = {H5S_SELECT_SET, H5S_SELECT_OR, H5S_SELECT_XOR, H5S_SELECT_NOTB};
            H5S_seloper_t operator = operators[number()];
            for (int p = 0; p < 4; p++)
                for (int d = 0; d < rank; d++) part[p][d] = number();
            H5Sselect_hyperslab(space, operator, part[0], part[1], part[2], part[3]);
        }
        if (kind == 'P') {
            size_t n = number();
            hsize_t *points = malloc((n * rank + 1) * sizeof *points);
            for (size_t i = 0; i < n * rank; i++) points[i] = number();
            H5Sselect_elements(space, H5S_SELECT_SET, n, points);
            free(points);
        }
    }
    return space;
}

static hid_t number_type(char kind) {
    switch (kind) {
    case 'b': return H5T_NATIVE_SCHAR;
    case 'B': return H5T_NATIVE_UCHAR;
    case 'h': return H5T_NATIVE_SHORT;
    case 'H': return H5T_STD_U16BE;
    case 'i': return H5T_NATIVE_INT;
    case 'I': return H5T_STD_U32BE;
    case 'q': return H5T_STD_I64BE;
    case 'Q': return H5T_NATIVE_ULLONG;
    case 'f': return H5T_NATIVE_FLOAT;
    case 'F': return H5T_IEEE_F32BE;
    case 'd': return H5T_NATIVE_DOUBLE;
    case 'D': return H5T_IEEE_F64BE;
    default: return -1;
    }
}

static hid_t memory_type(hid_t dataset) {
    char kind = word();
    hid_t stored = H5Dget_type(dataset), type;
    if (kind == 'n') type = H5Tget_native_type(stored, H5T_DIR_DEFAULT);
    else if (number_type(kind) >= 0) type = H5Tcopy(number_type(kind));
    else type = H5Tcopy(stored);
    if (stored >= 0) H5Tclose(stored);
    return type;
}

/* Room for what may be written to: without a dataspace of its own, memory has the file's, which
   need not have the dataset's extents any more. */
static size_t elements(hid_t dataset, hid_t memory, hid_t file) {
    if (memory != H5S_ALL) return H5Sget_simple_extent_npoints(memory);
    hid_t space = H5Dget_space(dataset);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    hssize_t m = file == H5S_ALL ? 0 : H5Sget_simple_extent_npoints(file);
    if (space >= 0) H5Sclose(space);
    return n < 0 ? 0 : (size_t)(n > m ? n : m);
}

/* The last one is the innermost. */
static herr_t keep_error(unsigned n, const H5E_error2_t *error, void *kept) {
    (void)n;
    snprintf(kept, 200, "%s", error->desc ? error->desc : "");
    return 0;
}

static void transfer_data(int writes) {
    hid_t dataset = datasets[number()], type = memory_type(dataset);
    hid_t memory = dataspace(), file = dataspace(), transfer = H5P_DEFAULT;
    char how = word();
    if (how != '0') transfer = H5Pcreate(H5P_DATASET_XFER);
    if (how == 'b') H5Pset_buffer(transfer, 4096, NULL, NULL);
    if (how == 'e') H5Pset_edc_check(transfer, H5Z_DISABLE_EDC);
    size_t nbytes = elements(dataset, memory, file) * (type < 0 ? 1 : H5Tget_size(type));
    unsigned char *buffer = malloc(nbytes + 8);
    for (size_t i = 0; i < nbytes + 8; i++) buffer[i] = (unsigned char)(171 + i * 31);
    herr_t status = writes ? H5Dwrite(dataset, type, memory, file, transfer, buffer)
                           : H5Dread(dataset, type, memory, file, transfer, buffer);
    ssize_t errors = H5Eget_num(H5E_DEFAULT);
    /* What a failed read has left behind is nobody's. */
    if (status >= 0) printf(" sum %016llx", (unsigned long long)sum(buffer, nbytes + 8));
    else {
        char innermost[200] = "";
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_error, innermost);
        printf(" failed: %s;", innermost);
    }
    printf(" %d errors", (int)errors);
    free(buffer);
    if (transfer > 0) H5Pclose(transfer);
    if (memory > 0) H5Sclose(memory);
    if (file > 0) H5Sclose(file);
    if (type > 0) H5Tclose(type);
}

int main(void) {
    char path[4096];
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int line = 0;; line++) {
        char what[2];
        if (scanf(" %1s", what) != 1) break;
        printf("%d %s", line, what);
        long long slot;
        switch (what[0]) {
        case 'F': { /* open a file: slot, mode, degree of closing, path */
            slot = number();
            char mode = word();
            hid_t access = H5Pcreate(H5P_FILE_ACCESS);
            if (word() == 's') H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
            if (scanf("%4095s", path) != 1) exit(3);
            files[slot] = H5Fopen(path, mode == 'w' ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
            H5Pclose(access);
            printf(" %d", files[slot] >= 0);
            break;
        }
        case 'f': /* close a file: slot, way */
            slot = number();
            printf(" %d", word() == 'i' ? H5Idec_ref(files[slot]) : H5Fclose(files[slot]));
            printf(" %d errors", (int)H5Eget_num(H5E_DEFAULT));
            break;
        case 'D': /* open a dataset: slot, file, name */
            slot = number();
            { hid_t file = files[number()];
              if (scanf("%4095s", path) != 1) exit(3);
              datasets[slot] = H5Dopen2(file, path, H5P_DEFAULT); }
            printf(" %d", datasets[slot] >= 0);
            break;
        case 'd': { /* close a dataset: slot, way */
            hid_t dataset = datasets[number()];
            char way = word();
            printf(" %d", way == 'o' ? H5Oclose(dataset) : way == 'i' ? H5Idec_ref(dataset) : H5Dclose(dataset));
            break;
        }
        case '+': slot = number(); printf(" %d", H5Iinc_ref(datasets[slot])); break;
        case 'C': { /* make a dataset: slot, file, name, type, level (-1: contiguous), extents, chunk */
            slot = number();
            hid_t file = files[number()];
            if (scanf("%4095s", path) != 1) exit(3);
            hid_t type = number_type(word()), made = H5Pcreate(H5P_DATASET_CREATE);
            int level = (int)number(), rank = (int)number();
            hsize_t dims[RANK], chunk[RANK], most[RANK];
            for (int d = 0; d < rank; d++) most[d] = dims[d] = number();
            for (int d = 0; d < rank; d++) chunk[d] = number();
            if (level >= 0) {
                most[0] = H5S_UNLIMITED;
                H5Pset_chunk(made, rank, chunk);
            }
            if (level > 0) H5Pset_deflate(made, level);
            /* Otherwise what is never written is what the file has there. */
            H5Pset_fill_time(made, H5D_FILL_TIME_ALLOC);
            hid_t space = H5Screate_simple(rank, dims, most);
            datasets[slot] = H5Dcreate2(file, path, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
            printf(" %d", datasets[slot] >= 0);
            H5Sclose(space);
            H5Pclose(made);
            break;
        }
        case 'U': /* remove a name: file, name */
            { hid_t file = files[number()];
              if (scanf("%4095s", path) != 1) exit(3);
              printf(" %d", H5Ldelete(file, path, H5P_DEFAULT)); }
            break;
        case 'L': slot = number(); printf(" %d", H5Fflush(files[slot], H5F_SCOPE_LOCAL)); break;
        case 'R': transfer_data(0); break;
        case 'W': transfer_data(1); break;
        case 'E': { /* another extent: slot, first dimension */
            hid_t dataset = datasets[number()], space = H5Dget_space(dataset);
            hsize_t dims[RANK] = {0};
            H5Sget_simple_extent_dims(space, dims, NULL);
            if (space >= 0) H5Sclose(space);
            dims[0] = number();
            printf(" %d", H5Dset_extent(dataset, dims));
            break;
        }
        case 'X':
            printf(" %d", H5close());
            /* Handles count from the beginning again: an old one may be another's now. */
            for (int i = 0; i < SLOTS; i++) files[i] = datasets[i] = -1;
            break;
        default: exit(4);
        }
        printf("\n");
    }
    return 0;
}
