/* What Rust calls of ISA-L: one zlib stream from one piece of memory. */

#include <stddef.h>
#include <stdint.h>

#include "crc.h"
#include "igzip_lib.h"

/* Bytes of tokens are kept until their Huffman codes are made, a block at a time. */
static const uint32_t LEVEL_NBYTES[] = {
    0,
    ISAL_DEF_LVL1_DEFAULT,
    ISAL_DEF_LVL2_DEFAULT,
    ISAL_DEF_LVL3_DEFAULT,
};

/* Bytes of working memory that `level`, 0 to 3, needs. */
size_t chunkwise_isal_state_nbytes(uint32_t level)
{
    return sizeof(struct isal_zstream) + LEVEL_NBYTES[level];
}

/* Bytes written to `out`, or 0 where they do not fit.  `state` has the bytes that the level
   needs, aligned to 8. */
size_t chunkwise_isal_deflate(uint32_t level, void *state, const uint8_t *source, uint32_t len,
                              uint8_t *out, uint32_t room)
{
    struct isal_zstream *stream = state;
    isal_deflate_stateless_init(stream);
    stream->level = level;
    stream->level_buf = (uint8_t *)(stream + 1);
    stream->level_buf_size = LEVEL_NBYTES[level];
    stream->gzip_flag = IGZIP_ZLIB;
    stream->end_of_stream = 1;
    stream->flush = NO_FLUSH;
    stream->next_in = (uint8_t *)source;
    stream->avail_in = len;
    stream->next_out = out;
    stream->avail_out = room;
    return isal_deflate_stateless(stream) == COMP_OK && stream->avail_in == 0 ? stream->total_out : 0;
}

/* igzip.c names it, for gzip's trailer; the fast ones bring files of their own. */
uint32_t crc32_gzip_refl(uint32_t seed, const unsigned char *buffer, uint64_t len)
{
    return crc32_gzip_refl_base(seed, (unsigned char *)buffer, len);
}
