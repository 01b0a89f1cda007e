// Products of bfloat16 in tiles (AMX), summed in float32: those with matrices, and the log of the sum of exp(logit) over all
// words, whose logits never leave the first-level cache unless they are wanted, too. While the processor multiplies one
// block, it works on the numbers of the block before. Each row is computed by itself and in one order, so that it does not
// depend on what is beside it.

#include "vectors.h"

#include <cmath>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int SIDE = 2 * LANES;           // rows, columns, and numbers of a row at a time: two by two tiles of sums
constexpr int64_t STEPS = 16;             // times so many numbers of 32 rows, 32 KiB, stay in the first-level cache
constexpr int64_t COLUMNS = 32 * SIDE;    // of a matrix with 512 rows, 1 MiB, stay in the second-level cache
constexpr int64_t FOR_SHIFT = 4 * SIDE;   // words whose largest logit keeps exp in range

struct NormalizerArguments {
    const Bf16 *inputs, *matrix;
    const float *bias;
    int64_t rows, size, words;
    float *lanes, *shifts, *totals;
};

// Where logits are written, of so many rows and words, which those of the normaliser fill up, and the largest of every
// `block` words, a power of two that is at least SIDE.
struct ScoreArguments {
    NormalizerArguments normalizer;
    int64_t rows, words, block, blocks;
    Bf16 *scores, *tops;
    float *most;
};

struct ProductArguments {
    const Bf16 *inputs, *matrix, *bias;
    int64_t rows, columns, stride, size, outputs;
    Bf16 *product, *copies, *ends;
    float *sums;
};

#if defined(__GNUC__) && __GNUC__ >= 11  // older compilers do not know the instructions

constexpr int ASK_FOR = 0x1023, TILES = 18;  // arch_prctl(2): ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA

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

// Logits without their bias, and where they belong: `lanes` has a vector for each row.
struct alignas(64) Logits {
    Square sums;
    const float *bias = nullptr, *shifts = nullptr;
    float *lanes = nullptr;
    int64_t row, word;
};

// exp to 2e-7 of itself for numbers near 0; what is no number stays none
static inline Floats quick_exp(Floats x) {
    Floats scaled = x * 1.44269504088896341f;
    Floats whole = (Floats)_mm512_roundscale_ps((__m512)scaled, 0);
    Floats rest = scaled - whole;
    Floats sum = rest * 1.5403530e-4f + 1.3333558e-3f;
    sum = sum * rest + 9.6181291e-3f;
    sum = sum * rest + 5.5504109e-2f;
    sum = sum * rest + 2.4022651e-1f;
    sum = sum * rest + 6.9314718e-1f;
    sum = sum * rest + 1.0f;
    return (Floats)_mm512_scalef_ps((__m512)sum, (__m512)whole);
}

static inline void add_row(const Logits &block, int row, Floats first, Floats second) {
    float *lanes = block.lanes + row * LANES, shift = block.shifts[row];
    store(lanes, load(lanes) + (quick_exp(first - shift) + quick_exp(second - shift)));
}

// the largest logits of a row, or the sums of exp(logit - shift)
template <bool LARGEST>
static inline void take_row(const Logits &block, int row) {
    Floats first = load(block.sums[row]) + load(block.bias);
    Floats second = load(block.sums[row] + LANES) + load(block.bias + LANES);
    float *lanes = block.lanes + row * LANES;
    if (LARGEST) store(lanes, larger(load(lanes), larger(first, second)));
    else add_row(block, row, first, second);
}

// The logits of a row, rounded, are written; of these are the sums and the largest (of those that are numbers).
static inline void put_scores(const ScoreArguments &given, const Logits &block, int row) {
    if (block.row + row >= given.rows) return;
    Bf16 rounded[SIDE];
    narrow(rounded, load(block.sums[row]) + load(block.bias));
    narrow(rounded + LANES, load(block.sums[row] + LANES) + load(block.bias + LANES));
    Bf16 *to = given.scores + (block.row + row) * given.words + block.word;
    if (block.word + SIDE <= given.words) std::memcpy(to, rounded, sizeof rounded);
    else std::memcpy(to, rounded, (given.words - block.word) * sizeof(Bf16));
    Floats first = widen(rounded), second = widen(rounded + LANES);
    add_row(block, row, first, second);
    __m512 most = _mm512_max_ps((__m512)first, (__m512)second);
    float *lanes = given.most + (block.row + row) * LANES;
    if (block.word & (given.block - 1)) most = _mm512_max_ps(most, _mm512_loadu_ps(lanes));
    if ((block.word + SIDE) & (given.block - 1) && block.word + SIDE < given.words) {
        _mm512_storeu_ps(lanes, most);
        return;
    }
    float top = _mm512_reduce_max_ps(most);
    uint32_t bits;
    std::memcpy(&bits, &top, sizeof bits);
    given.tops[(block.row + row) * given.blocks + block.word / given.block] = bits >> 16;
}

// the rows by the words from `begin` to `end`; `work` is done for every row of a block of logits
template <class Work>
static void take(const NormalizerArguments &given, int64_t begin, int64_t end, Work work) {
    Logits blocks[2];
    int turn = 0;
    int64_t steps = given.size / SIDE;
    for (int64_t row = 0; row < given.rows; row += SIDE) {
        Rows rows = {given.inputs + row * given.size, nullptr, given.size, steps};
        for (int64_t word = begin; word < end; word += SIDE) {
            Logits &next = blocks[turn], &before = blocks[1 - turn];
            begin_tiles(nullptr);
            multiply(rows, given.matrix + word * given.size, 0, steps, before.lanes ? 0 : SIDE,
                     [&](int one) { work(before, one); });
            store_tiles(next.sums);
            next.bias = given.bias + word;
            next.shifts = given.shifts + row;
            next.lanes = given.lanes + row * LANES;
            next.row = row;
            next.word = word;
            turn = 1 - turn;
        }
    }
    if (blocks[1 - turn].lanes)
        for (int row = 0; row < SIDE; row++) work(blocks[1 - turn], row);
}

// `work` has to add to the lanes
template <class Work>
static void log_sum_exp(const NormalizerArguments &given, Work work) {
    configure_tiles();
    for (int64_t lane = 0; lane < given.rows * LANES; lane++) given.lanes[lane] = -INFINITY;
    take(given, 0, given.words < FOR_SHIFT ? given.words : FOR_SHIFT,
         [](const Logits &block, int row) { take_row<true>(block, row); });
    for (int64_t row = 0; row < given.rows; row++) given.shifts[row] = largest_of(load(given.lanes + row * LANES));
    std::memset(given.lanes, 0, given.rows * LANES * sizeof(float));
    for (int64_t word = 0; word < given.words; word += COLUMNS)
        take(given, word, word + COLUMNS < given.words ? word + COLUMNS : given.words, work);
    for (int64_t row = 0; row < given.rows; row++) given.totals[row] = sum_of(load(given.lanes + row * LANES));
    _tile_release();
}

static void log_sum_exp(const NormalizerArguments &given) {
    log_sum_exp(given, [](const Logits &block, int row) { take_row<false>(block, row); });
}

static void score(const ScoreArguments &given) {
    log_sum_exp(given.normalizer, [&](const Logits &block, int row) { put_scores(given, block, row); });
}

#pragma GCC pop_options

static bool has_tiles() {
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
           syscall(SYS_arch_prctl, ASK_FOR, TILES) == 0;
}

#else

static void multiply_matrix(const ProductArguments &) {}
static void log_sum_exp(const NormalizerArguments &) {}
static void score(const ScoreArguments &) {}
static bool has_tiles() { return false; }

#endif

}  // namespace

extern "C" {

// whether this processor has tiles, and the system lets this process use them
int hybridmt_has_tiles() { return has_tiles(); }

void hybridmt_multiply(const ProductArguments *given) { multiply_matrix(*given); }

void hybridmt_log_sum_exp(const NormalizerArguments *given) { log_sum_exp(*given); }

void hybridmt_score(const ScoreArguments *given) { score(*given); }
}
