// Tiles that are not there: what the instructions of AMX do, in C++, so that the kernels that need them run on any
// processor with AVX-512. It is included before their source.

#pragma once

#include <immintrin.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace pretended {

constexpr int TILES = 8, ROWS = 16, BYTES = 64;

inline unsigned char (&tiles())[TILES][ROWS][BYTES] {
    static thread_local unsigned char all[TILES][ROWS][BYTES];
    return all;
}

inline void read(int tile, const void *from, int64_t stride) {
    for (int row = 0; row < ROWS; row++) std::memcpy(tiles()[tile][row], (const char *)from + row * stride, BYTES);
}

inline void write(int tile, void *to, int64_t stride) {
    for (int row = 0; row < ROWS; row++) std::memcpy((char *)to + row * stride, tiles()[tile][row], BYTES);
}

inline float number(const unsigned char *row, int place) {
    uint32_t bits = 0;
    std::memcpy((char *)&bits + 2, row + 2 * place, 2);
    float wide;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
}

// sums += left right, where a row of `right` has two rows of its matrix side by side, number by number
inline void multiply(int sums, int left, int right) {
    for (int row = 0; row < ROWS; row++) {
        float into[ROWS];
        std::memcpy(into, tiles()[sums][row], BYTES);
        for (int pair = 0; pair < ROWS; pair++)
            for (int column = 0; column < ROWS; column++)
                for (int half = 0; half < 2; half++)
                    into[column] += number(tiles()[left][row], 2 * pair + half) *
                                    number(tiles()[right][pair], 2 * column + half);
        std::memcpy(tiles()[sums][row], into, BYTES);
    }
}

}  // namespace pretended

#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#define _tile_loadd(tile, from, stride) pretended::read(tile, from, stride)
#define _tile_stream_loadd(tile, from, stride) pretended::read(tile, from, stride)
#define _tile_stored(tile, to, stride) pretended::write(tile, to, stride)
#define _tile_zero(tile) std::memset(pretended::tiles()[tile], 0, sizeof pretended::tiles()[tile])
#define _tile_dpbf16ps(sums, left, right) pretended::multiply(sums, left, right)
#define _tile_loadconfig(shapes) (void)(shapes)
#define _tile_release() (void)0
#define __builtin_cpu_supports(name) 1
#define syscall(...) 0
