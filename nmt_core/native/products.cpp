// Products with matrices of bfloat16 in tiles (AMX), summed in float32. Each row is computed by itself and in one order, so
// that it does not depend on what is beside it.

#include "tiles.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int64_t STEPS = 16;  // times so many numbers of 32 rows, 32 KiB, stay in the first-level cache

struct ProductArguments {
    const Bf16 *inputs, *matrix, *bias;
    int64_t rows, columns, stride, size, outputs;
    Bf16 *product, *copies, *ends;
    float *sums;
};

#ifdef HYBRIDMT_TILES

constexpr int ASK_FOR = 0x1023, TILES = 18;  // arch_prctl(2): ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,amx-tile,amx-bf16,prefer-vector-width=512")

// Sums of products without their bias, and where they belong.
struct alignas(64) Outputs {
    Square sums;
    const Bf16 *bias = nullptr;
    Bf16 *to = nullptr;
    int64_t rows, columns, stride;
};

static inline void put_row(const Outputs &block, int row) {
    if (row >= block.rows) return;
    for (int64_t column = 0; column < block.columns; column += LANES) {
        Floats sum = load(block.sums[row] + column);
        int64_t many = block.columns - column;
        Bf16 *to = block.to + row * block.stride + column;
        if (many >= LANES) {
            narrow(to, block.bias ? sum + widen(block.bias + column) : sum);
        } else {
            narrow_some(to, block.bias ? sum + widen_some(block.bias + column, many) : sum, many);
        }
    }
}

// the rows from number `row` on, at most 32: the last ones, and the last numbers of each, are copied
static Rows rows_from(const ProductArguments &given, int64_t row) {
    int64_t some = given.rows - row < SIDE ? given.rows - row : SIDE, rest = given.columns % SIDE;
    Rows rows = {given.inputs + row * given.stride, given.ends, given.stride, given.columns / SIDE};
    if (some < SIDE) {
        std::memset(given.copies, 0, SIDE * given.size * sizeof(Bf16));
        for (int64_t one = 0; one < some; one++)
            std::memcpy(given.copies + one * given.size, rows.from + one * rows.stride, given.columns * sizeof(Bf16));
        rows.from = given.copies;
        rows.stride = given.size;
    }
    std::memset(given.ends, 0, SIDE * SIDE * sizeof(Bf16));
    for (int64_t one = 0; one < SIDE; one++)
        std::memcpy(given.ends + one * SIDE, rows.from + one * rows.stride + given.columns - rest, rest * sizeof(Bf16));
    asm volatile("" ::: "memory");  // compilers do not know what is read of it
    return rows;
}

static void multiply_matrix(const ProductArguments &given) {
    configure_tiles();
    int64_t steps = given.size / SIDE, parts = (steps + STEPS - 1) / STEPS, each = (steps + parts - 1) / parts;
    int64_t width = COLUMNS / parts / SIDE * SIDE;
    if (width < SIDE) width = SIDE;
    Outputs blocks[2];
    int turn = 0;
    for (int64_t begin = 0; begin < given.outputs; begin += width)
        for (int64_t row = 0; row < given.rows; row += SIDE) {
            Rows rows = rows_from(given, row);
            for (int64_t part = 0; part < parts; part++) {
                int64_t first = part * each, last = first + each < steps ? first + each : steps;
                for (int64_t column = begin; column < begin + width && column < given.outputs; column += SIDE) {
                    Outputs &next = blocks[turn], &before = blocks[1 - turn];
                    Square *sums = reinterpret_cast<Square *>(given.sums) + (column - begin) / SIDE;
                    begin_tiles(part ? sums : nullptr);
                    multiply(rows, given.matrix + column * given.size, first, last, before.to ? 0 : SIDE,
                             [&](int one) { put_row(before, one); });
                    before.to = nullptr;
                    if (part + 1 < parts) {
                        store_tiles(*sums);
                        continue;
                    }
                    store_tiles(next.sums);
                    next.bias = given.bias ? given.bias + column : nullptr;
                    next.to = given.product + row * given.outputs + column;
                    next.rows = given.rows - row;
                    next.columns = given.outputs - column < SIDE ? given.outputs - column : SIDE;
                    next.stride = given.outputs;
                    turn = 1 - turn;
                }
            }
        }
    if (blocks[1 - turn].to)
        for (int row = 0; row < SIDE; row++) put_row(blocks[1 - turn], row);
    _tile_release();
}

#pragma GCC pop_options

static bool has_tiles() {
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
           syscall(SYS_arch_prctl, ASK_FOR, TILES) == 0;
}

#else

static void multiply_matrix(const ProductArguments &) {}
static bool has_tiles() { return false; }

#endif

}  // namespace

extern "C" {

// whether this processor has tiles, and the system lets this process use them
int hybridmt_has_tiles() { return has_tiles(); }

void hybridmt_multiply(const ProductArguments *given) { multiply_matrix(*given); }
}
