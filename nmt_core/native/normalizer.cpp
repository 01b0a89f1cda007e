// The log of the sum of exp(logit) over all words, from products of bfloat16 in tiles (AMX); logits never leave the
// first-level cache unless they are wanted, too. Each row is computed by itself and in one order, so that it does not depend
// on what is beside it.

#include "tiles.h"

#include <cmath>

namespace {

constexpr int64_t FOR_SHIFT = 4 * SIDE;  // words whose largest logit keeps exp in range

// Pairs are rows and words whose logits are wanted, sorted by SIDE rows, then by word: those of block b of rows begin at
// `next[b]`, which is counted on, and end before `ends[b]`.
struct NormalizerArguments {
    const Bf16 *inputs, *matrix;
    const float *bias;
    int64_t rows, size, words;
    const int64_t *pair_rows, *pair_words, *ends;
    int64_t *next;
    float *logits, *lanes, *shifts, *totals;
};

// Where logits are written, of so many rows and words, which those of the normaliser fill up, and the largest of every
// `block` words, a power of two that is at least SIDE.
struct ScoreArguments {
    NormalizerArguments normalizer;
    int64_t rows, words, block, blocks;
    Bf16 *scores, *tops;
    float *most;
};

#ifdef HYBRIDMT_TILES

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,amx-tile,amx-bf16,prefer-vector-width=512")

// Logits without their bias, and where they belong: `lanes` has a vector for each row.
struct alignas(64) Logits {
    Square sums;
    const float *bias = nullptr, *shifts = nullptr;
    float *lanes = nullptr;
    int64_t row, word;
};

// exp to (2e-7 + |x| 2e-8) of itself; what is no number stays none
static inline Floats quick_exp(Floats x) {
    __m512 by = _mm512_set1_ps(1.44269504088896341f);
    Floats whole = (Floats)_mm512_roundscale_ps(_mm512_mul_ps((__m512)x, by), 0);
    Floats rest = (Floats)_mm512_fmsub_ps((__m512)x, by, (__m512)whole);
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

// logit - shift of the pairs of a block, as `add_row` has them
static inline void pick(const NormalizerArguments &given, const Logits &block) {
    int64_t rows = block.row / SIDE, pair = given.next[rows];
    for (; pair < given.ends[rows] && given.pair_words[pair] < block.word + SIDE; pair++) {
        int64_t row = given.pair_rows[pair] - block.row, word = given.pair_words[pair] - block.word;
        float logit = block.sums[row][word] + block.bias[word];
        given.logits[pair] = logit - block.shifts[row];
    }
    given.next[rows] = pair;
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
    log_sum_exp(given, [&](const Logits &block, int row) {
        if (row == 0) pick(given, block);
        take_row<false>(block, row);
    });
}

static void score(const ScoreArguments &given) {
    log_sum_exp(given.normalizer, [&](const Logits &block, int row) { put_scores(given, block, row); });
}

#pragma GCC pop_options

#else

static void log_sum_exp(const NormalizerArguments &) {}
static void score(const ScoreArguments &) {}

#endif

}  // namespace

extern "C" {

void hybridmt_log_sum_exp(const NormalizerArguments *given) { log_sum_exp(*given); }

void hybridmt_score(const ScoreArguments *given) { score(*given); }
}
