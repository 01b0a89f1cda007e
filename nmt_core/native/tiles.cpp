// The log of the sum of exp(logit) over all words, with the logits in tiles (AMX): products of bfloat16, summed in
// float32, never leave the first-level cache. While the processor multiplies one block of logits, it takes exponentials of
// the block before.

#include "vectors.h"

#include <cmath>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int SIDE = 2 * LANES;        // rows, words, and numbers of a row at a time: two by two tiles of logits
constexpr int64_t WORDS = 32 * SIDE;   // whose part of the matrix, 1 MiB for rows of 512, stays in the second-level cache
constexpr int64_t FOR_SHIFT = 4 * SIDE;  // words whose largest logit keeps exp in range

struct NormalizerArguments {
    const Bf16 *inputs, *matrix;
    const float *bias;
    int64_t rows, size, words;
    float *lanes, *shifts, *totals;
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

// Logits without their bias, and where they belong: `lanes` has a vector for each row.
struct alignas(64) Block {
    float logits[SIDE][SIDE];
    const float *bias = nullptr, *shifts = nullptr;
    float *lanes = nullptr;
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

// the largest logits of a row, or the sums of exp(logit - shift)
template <bool LARGEST>
static inline void take_row(const Block &block, int row) {
    Floats first = load(block.logits[row]) + load(block.bias);
    Floats second = load(block.logits[row] + LANES) + load(block.bias + LANES);
    float *lanes = block.lanes + row * LANES;
    if (LARGEST) {
        store(lanes, larger(load(lanes), larger(first, second)));
    } else {
        float shift = block.shifts[row];
        store(lanes, load(lanes) + (quick_exp(first - shift) + quick_exp(second - shift)));
    }
}

// the rows by the words from `begin` to `end`
template <bool LARGEST>
static void take(const NormalizerArguments &given, int64_t begin, int64_t end) {
    Block blocks[2];
    int turn = 0;
    int64_t steps = given.size / SIDE, bytes = given.size * sizeof(Bf16);
    for (int64_t row = 0; row < given.rows; row += SIDE) {
        const Bf16 *upper = given.inputs + row * given.size, *lower = upper + LANES * given.size;
        for (int64_t word = begin; word < end; word += SIDE) {
            const Bf16 *columns = given.matrix + word * given.size;
            Block &next = blocks[turn], &before = blocks[1 - turn];
            int taken = before.bias ? 0 : SIDE;
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
            for (int64_t step = 0; step < steps; step++) {
                _tile_loadd(4, upper + step * SIDE, bytes);
                _tile_stream_loadd(6, columns + 2 * step * SIDE * LANES, SIDE * sizeof(Bf16));  // the rows stay in the cache
                _tile_loadd(5, lower + step * SIDE, bytes);
                _tile_stream_loadd(7, columns + (2 * step + 1) * SIDE * LANES, SIDE * sizeof(Bf16));
                _tile_dpbf16ps(0, 4, 6);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
                for (; taken * steps < SIDE * (step + 1); taken++) take_row<LARGEST>(before, taken);
            }
            constexpr int64_t STRIDE = SIDE * sizeof(float);
            _tile_stored(0, next.logits[0], STRIDE);
            _tile_stored(1, next.logits[0] + LANES, STRIDE);
            _tile_stored(2, next.logits[LANES], STRIDE);
            _tile_stored(3, next.logits[LANES] + LANES, STRIDE);
            next.bias = given.bias + word;
            next.shifts = given.shifts + row;
            next.lanes = given.lanes + row * LANES;
            turn = 1 - turn;
        }
    }
    for (int row = 0; row < SIDE; row++) take_row<LARGEST>(blocks[1 - turn], row);
}

static void log_sum_exp(const NormalizerArguments &given) {
    TileShapes shapes;
    asm volatile("" ::: "memory");  // what compilers do not know that the next instructions read
    _tile_loadconfig(&shapes);
    for (int64_t lane = 0; lane < given.rows * LANES; lane++) given.lanes[lane] = -INFINITY;
    take<true>(given, 0, given.words < FOR_SHIFT ? given.words : FOR_SHIFT);
    for (int64_t row = 0; row < given.rows; row++) given.shifts[row] = largest_of(load(given.lanes + row * LANES));
    std::memset(given.lanes, 0, given.rows * LANES * sizeof(float));
    for (int64_t word = 0; word < given.words; word += WORDS)
        take<false>(given, word, word + WORDS < given.words ? word + WORDS : given.words);
    for (int64_t row = 0; row < given.rows; row++) given.totals[row] = sum_of(load(given.lanes + row * LANES));
    _tile_release();
}

#pragma GCC pop_options

static bool has_tiles() {
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
           syscall(SYS_arch_prctl, ASK_FOR, TILES) == 0;
}

#else

static void log_sum_exp(const NormalizerArguments &) {}
static bool has_tiles() { return false; }

#endif

}  // namespace

extern "C" {

// whether this processor has tiles, and the system lets this process use them
int hybridmt_has_tiles() { return has_tiles(); }

void hybridmt_log_sum_exp(const NormalizerArguments *given) { log_sum_exp(*given); }
}
