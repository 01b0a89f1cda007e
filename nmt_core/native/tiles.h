// Tiles of bfloat16 (AMX), multiplied and summed in float32: 32 rows by 32 columns at a time. While the processor
// multiplies one block, it works on the numbers of the block before.

#pragma once

#include "vectors.h"

#if defined(__GNUC__) && __GNUC__ >= 11  // older compilers do not know the instructions
#define HYBRIDMT_TILES
#endif

namespace {

constexpr int SIDE = 2 * LANES;         // rows, columns, and numbers of a row at a time: two by two tiles of sums
constexpr int64_t COLUMNS = 32 * SIDE;  // of a matrix with 512 rows, 1 MiB, stay in the second-level cache

#ifdef HYBRIDMT_TILES

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,amx-tile,amx-bf16,prefer-vector-width=512")

struct alignas(64) TileShapes {
    uint8_t palette = 1, start = 0, unused[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {LANES, LANES, LANES, LANES, LANES, LANES, LANES, LANES};
};

// 32 rows of the left side; from step `whole` on they are at `ends`, filled up with zeros
struct Rows {
    const Bf16 *from, *ends;
    int64_t stride, whole;
};

// Adds the product of 32 rows and 32 columns, from one step to another, to the tiles 0 to 3. Meanwhile `work` is done for
// 32 rows from row `done` on.
template <class Work>
static inline void multiply(const Rows &rows, const Bf16 *columns, int64_t first, int64_t last, int done, Work work) {
    constexpr int64_t TILE = SIDE * LANES, PAIRS = SIDE * sizeof(Bf16);
    for (int64_t step = first; step < last; step++) {
        const Bf16 *upper = step < rows.whole ? rows.from + step * SIDE : rows.ends;
        int64_t stride = step < rows.whole ? rows.stride : SIDE;
        _tile_loadd(4, upper, stride * sizeof(Bf16));
        _tile_stream_loadd(6, columns + 2 * step * TILE, PAIRS);  // past the first-level cache, where the rows stay
        _tile_loadd(5, upper + LANES * stride, stride * sizeof(Bf16));
        _tile_stream_loadd(7, columns + (2 * step + 1) * TILE, PAIRS);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        for (; done * (last - first) < SIDE * (step - first + 1); done++) work(done);
    }
}

typedef float Square[SIDE][SIDE];

static inline void begin_tiles(const Square *from) {  // with these sums, or none
    constexpr int64_t STRIDE = SIDE * sizeof(float);
    if (from) {
        _tile_loadd(0, (*from)[0], STRIDE);
        _tile_loadd(1, (*from)[0] + LANES, STRIDE);
        _tile_loadd(2, (*from)[LANES], STRIDE);
        _tile_loadd(3, (*from)[LANES] + LANES, STRIDE);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
}

static inline void store_tiles(Square &to) {
    constexpr int64_t STRIDE = SIDE * sizeof(float);
    _tile_stored(0, to[0], STRIDE);
    _tile_stored(1, to[0] + LANES, STRIDE);
    _tile_stored(2, to[LANES], STRIDE);
    _tile_stored(3, to[LANES] + LANES, STRIDE);
}

static inline void configure_tiles() {
    TileShapes shapes;
    asm volatile("" ::: "memory");  // compilers do not know what the next instruction reads
    _tile_loadconfig(&shapes);
}

#pragma GCC pop_options

#endif

}  // namespace
