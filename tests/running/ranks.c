/* Each rank reads a file of its own, then all read and write one together: `ranks FOLDER`. */
#include <hdf5.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { ROWS = 64, COLUMNS = 500 };

static uint64_t sum(const float *values, size_t n) {
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++) found = found * 31 + (uint64_t)values[i];
    return found;
}

int main(int count, char **words) {
    static float values[ROWS * COLUMNS];
    int rank, ranks;
    char path[4096];
    uint64_t own, together;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    snprintf(path, sizeof path, "%s/%d.h5", words[1], rank);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    if (H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 3;
    own = sum(values, ROWS * COLUMNS);
    H5Dclose(dataset);
    H5Fclose(file);

    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    snprintf(path, sizeof path, "%s/all.h5", words[1]);
    file = H5Fopen(path, H5F_ACC_RDWR, access);
    dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    hsize_t start[2] = {(hsize_t)rank * ROWS / ranks, 0}, part[2] = {ROWS / ranks, COLUMNS};
    hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(2, part, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    if (H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, transfer, values) < 0) return 3;
    together = sum(values, part[0] * part[1]);
    for (size_t i = 0; i < part[0] * part[1]; i++) values[i] += 1;
    if (H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, transfer, values) < 0) return 3;
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(transfer);
    H5Dclose(dataset);
    H5Fclose(file);
    H5Pclose(access);

    snprintf(path, sizeof path, "%s/said.%d", words[1], rank);
    FILE *said = fopen(path, "w");
    fprintf(said, "%llu %llu\n", (unsigned long long)own, (unsigned long long)together);
    fclose(said);
    MPI_Finalize();
    return 0;
}
