/* A filter that is registered nowhere, with parameters that belong to its dataset's chunks.

   When a dataset is made, it puts the number of a chunk's elements and the key for them before
   the values that the program gave, as bitshuffle's does. Chunks of any other length fail. */

#include <stddef.h>
#include <stdint.h>

typedef int64_t hid_t;

typedef struct {
    int version, id;
    unsigned encoder, decoder;
    const char *name;
    int (*can_apply)(hid_t, hid_t, hid_t);
    int (*set_local)(hid_t, hid_t, hid_t);
    size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} filter_class;

int H5Pget_chunk(hid_t, int, uint64_t *);
int H5Pget_filter_by_id2(hid_t, int, unsigned *, size_t *, unsigned *, size_t, char *, unsigned *);
int H5Pmodify_filter(hid_t, int, unsigned, size_t, const unsigned *);

#define ID 411
#define MOST 20

static int set_local(hid_t list, hid_t type, hid_t space)
{
    unsigned values[MOST + 1], flags;
    size_t count = MOST - 1;
    uint64_t lengths[32];
    unsigned elements = 1;
    int rank = H5Pget_chunk(list, 32, lengths);
    if (rank < 0 || H5Pget_filter_by_id2(list, ID, &flags, &count, values + 1, 0, NULL, NULL) < 0)
        return -1;
    for (int axis = 0; axis < rank; axis++)
        elements *= (unsigned)lengths[axis];
    values[0] = elements;
    return H5Pmodify_filter(list, ID, flags, count + 1, values);
}

static size_t filter(unsigned flags, size_t count, const unsigned *values, size_t nbytes,
                     size_t *room, void **buffer)
{
    unsigned char *bytes = *buffer;
    if (count < 1 || values[0] == 0 || nbytes % values[0] != 0)
        return 0;
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] ^= (unsigned char)(values[0] + i);
    return nbytes;
}

static const filter_class CLASS = {1, ID, 1, 1, "keyed", NULL, set_local, filter};

int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return &CLASS; }
