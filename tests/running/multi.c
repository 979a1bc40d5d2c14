/* Reads several datasets by one call, and writes them to another file: `multi FILE OUT`
 *
 * Declares by itself what it calls: the headers that are at hand may be those of a version without
 * these functions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int64_t hid_t;
typedef uint64_t hsize_t;
#define ALL 0

extern hid_t H5T_IEEE_F32LE_g;
int H5open(void);
hid_t H5Fopen(const char *, unsigned, hid_t);
hid_t H5Fcreate(const char *, unsigned, hid_t, hid_t);
int H5Fclose(hid_t);
hid_t H5Dopen2(hid_t, const char *, hid_t);
hid_t H5Dcreate2(hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t);
int H5Dclose(hid_t);
hid_t H5Dget_space(hid_t);
hid_t H5Screate_simple(int, const hsize_t *, const hsize_t *);
int64_t H5Sget_simple_extent_npoints(hid_t);
int H5Sselect_hyperslab(hid_t, int, const hsize_t *, const hsize_t *, const hsize_t *, const hsize_t *);
int H5Dread_multi(size_t, hid_t *, hid_t *, hid_t *, hid_t *, hid_t, void **);
int H5Dwrite_multi(size_t, hid_t *, hid_t *, hid_t *, hid_t *, hid_t, const void **);

#define COUNT 3
static const char *names[COUNT] = {"a", "plain", "c"};

int main(int count, char **words) {
    if (count < 3 || H5open() < 0) return 2;
    hid_t file = H5Fopen(words[1], 0, 0), out = H5Fcreate(words[2], 2, 0, 0);
    hid_t datasets[COUNT], made[COUNT], types[COUNT], memory[COUNT], in_file[COUNT];
    float *values[COUNT];
    size_t sizes[COUNT];
    for (int k = 0; k < COUNT; k++) {
        datasets[k] = H5Dopen2(file, names[k], 0);
        types[k] = H5T_IEEE_F32LE_g;
        hid_t space = H5Dget_space(datasets[k]);
        sizes[k] = H5Sget_simple_extent_npoints(space);
        values[k] = calloc(sizes[k], sizeof(float));
        made[k] = H5Dcreate2(out, names[k], types[k], space, 0, 0, 0);
        memory[k] = in_file[k] = ALL;
    }
    int status = H5Dread_multi(COUNT, datasets, types, memory, in_file, 0, (void **)values);
    for (int k = 0; k < COUNT; k++) {
        double sum = 0;
        for (size_t i = 0; i < sizes[k]; i++) sum += values[k][i] * (double)(i % 7);
        printf("%s: %d, %g\n", names[k], status, sum);
    }
    status = H5Dwrite_multi(COUNT, made, types, memory, in_file, 0, (const void **)values);
    printf("written: %d\n", status);
    /* Rows of the first one, all of the last. */
    hsize_t start[2] = {0, 0}, rows[2] = {5, 30};
    in_file[0] = H5Dget_space(datasets[0]);
    memory[0] = H5Screate_simple(2, rows, NULL);
    hid_t some[] = {datasets[0], datasets[2]}, from[] = {in_file[0], ALL}, to[] = {memory[0], ALL};
    void *buffers[] = {values[0], values[2]};
    for (start[0] = 0; start[0] < 15; start[0] += 5) {
        H5Sselect_hyperslab(in_file[0], 0, start, NULL, rows, NULL);
        status = H5Dread_multi(2, some, types, to, from, 0, buffers);
        printf("%d: %g %g\n", status, values[0][149], values[2][8]);
    }
    datasets[1] = -1;
    printf("no dataset: %d\n", H5Dread_multi(COUNT, datasets, types, memory, in_file, 0, (void **)values) < 0);
    printf("nothing: %d\n", H5Dread_multi(COUNT, NULL, types, memory, in_file, 0, (void **)values) < 0);
    for (int k = 0; k < COUNT; k++) H5Dclose(made[k]);
    H5Fclose(out);
    H5Fclose(file);
    return 0;
}
