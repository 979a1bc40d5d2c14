/* Selects in one dataspace in many ways, and reads after each.  Prints for each read how many elements
 * libhdf5 says are selected, and whether they are a box: `selecting FILE`, whose /x has 100 numbers. */
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>

static hid_t dataset, space;

static void reads(void) {
    float values[100];
    hsize_t first = 0, last = 0, count = (hsize_t)H5Sget_select_npoints(space);
    if (count) H5Sget_select_bounds(space, &first, &last);
    int is_box = count && last - first + 1 == count && H5Sget_select_type(space) != H5S_SEL_POINTS;
    hid_t memory = H5Screate_simple(1, &count, NULL);
    if (!count) H5Sselect_none(memory);
    if (H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values) < 0) count = 1000;
    printf("%d %d %d\n", (int)count, is_box, (int)first);
    H5Sclose(memory);
}

static void select_box(hid_t of, H5S_seloper_t how, hsize_t start, hsize_t count) {
    H5Sselect_hyperslab(of, how, &start, NULL, &count, NULL);
}

static void box(hsize_t start, hsize_t count) { select_box(space, H5S_SELECT_SET, start, count); }

static void *elsewhere(void *argument) {
    (void)argument;
    box(70, 3);
    return NULL;
}

int main(int count, char **words) {
    if (count != 2) return 2;
    hid_t file = H5Fopen(words[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    space = H5Dget_space(dataset);
    hsize_t all = 100, start = 3, stride = 4, blocks = 5, block = 2, points[] = {2, 3, 4};
    hid_t other = H5Screate_simple(1, &all, NULL);
    select_box(other, H5S_SELECT_SET, 40, 7);
    for (int i = 0; i < 3; i++) {
        box(10 * i, 10);
        reads();
    }
    H5Sselect_all(space);
    reads();
    for (int i = 0; i < 2; i++) {
        box(30 + i, 9);
        reads();
        H5Sselect_none(space);
        reads();
        box(20, 8);
        select_box(space, i ? H5S_SELECT_OR : H5S_SELECT_AND, 25, 60);
        reads();
        box(20, 8);
        H5Sselect_elements(space, H5S_SELECT_SET, 3, points);
        reads();
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &blocks, &block);
        reads();
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &block, &blocks, &block);
        reads();
        box(20, 8);
        H5Sset_extent_simple(space, 1, &all, NULL);
        reads();
        box(20, 8);
        H5Sextent_copy(space, other);
        reads();
#if H5_VERSION_GE(1, 10, 7)
        hssize_t back = 5;
        box(20, 8);
        H5Sselect_copy(space, other);
        reads();
        box(20, 8);
        H5Sselect_adjust(space, &back);
        reads();
        box(20, 30);
        H5Smodify_select(space, H5S_SELECT_AND, other);
        reads();
#endif
        box(20, 8);
        pthread_t thread;
        pthread_create(&thread, NULL, elsewhere, NULL);
        pthread_join(thread, NULL);
        reads();
        box(20, 8);
        reads();
    }
    for (int i = 0; i < 3; i++) {
        H5Sclose(space);
        space = H5Dget_space(dataset);
        if (i) box(60 + i, 12);
        reads();
    }
    hssize_t offset = 11;
    box(50, 6);
    H5Soffset_simple(space, &offset);
    reads();
    box(51, 6);
    reads();
    H5Sclose(other);
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(file);
    return 0;
}
