// Inner loops of bfloat16 models on a CPU. Nothing here knows of PyTorch: callers pass pointers whose types, shapes and
// lifetimes they have checked (kernels.py). Every number is computed in float32 and rounded once; each row by itself and in
// one order, so that it does not depend on what else is computed.

#include "vectors.h"

#include <cmath>

namespace {

struct AttentionArguments {
    const Bf16 *queries, *keys, *values, *energy;
    const int64_t *sentences, *widths;
    int64_t rows, positions, units, size;
    Bf16 *context;
    float *weights, *scratch;
};

struct GateArguments {
    const Bf16 *words, *contexts, *states;
    int64_t rows, units, word_stride, context_stride;
};

struct CellArguments {
    const Bf16 *words, *contexts, *states;
    int64_t rows, units, word_stride, context_stride, state_stride;
    float remember;
};

struct MaxoutArguments {
    const Bf16 *pieces[3];
    int64_t strides[3], rows, units;
};

inline int64_t filled_up(int64_t units) { return (units + LANES - 1) / LANES * LANES; }
inline int64_t lanes_from(int64_t begin, int64_t end) { return end - begin < LANES ? end - begin : LANES; }

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")

// the sum of exp(score - shift) over a row
static inline float sum_of_exponentials(const Bf16 *row, int64_t columns, Floats shift) {
    Floats first = {}, second = {}, third = {}, fourth = {};
    int64_t column = 0;
    for (; column + 4 * LANES <= columns; column += 4 * LANES) {
        first += exp_of(widen(row + column) - shift);
        second += exp_of(widen(row + column + LANES) - shift);
        third += exp_of(widen(row + column + 2 * LANES) - shift);
        fourth += exp_of(widen(row + column + 3 * LANES) - shift);
    }
    for (; column + LANES <= columns; column += LANES) first += exp_of(widen(row + column) - shift);
    if (column < columns) second += exp_of(widen_ending(row + column, columns - column) - shift);
    return sum_of((first + second) + (third + fourth));
}

// totals[row] += the sum of exp(logit) over the columns
static void add_exponentials(const Bf16 *logits, int64_t rows, int64_t columns, int64_t stride, float *totals) {
    for (int64_t row = 0; row < rows; row++)
        totals[row] += sum_of_exponentials(logits + row * stride, columns, Floats{});
}

// v . tanh(query + key); query and v are filled up to whole vectors, v with zeros. Two quotients are one:
// a / b + c / d = (a d + c b) / (b d).
static inline float energy_of(const float *query, const Bf16 *key, const float *v, int64_t units) {
    Floats sum = {};
    int64_t unit = 0;
    for (; unit + 2 * LANES <= units; unit += 2 * LANES) {
        Fraction first = tanh_fraction(load(query + unit) + widen(key + unit));
        Fraction second = tanh_fraction(load(query + unit + LANES) + widen(key + unit + LANES));
        Floats over = load(v + unit) * first.over * second.under + load(v + unit + LANES) * second.over * first.under;
        sum += over / (first.under * second.under);
    }
    for (; unit < units; unit += LANES) {
        int64_t many = lanes_from(unit, units);
        sum += load(v + unit) * tanh_of(load(query + unit) + widen_some(key + unit, many));
    }
    return sum_of(sum);
}

static void softmax(float *weights, int64_t positions) {
    float most = weights[0];
    for (int64_t place = 1; place < positions; place++) most = weights[place] > most ? weights[place] : most;
    float total = 0.0f;
    for (int64_t place = 0; place < positions; place += LANES) {
        int64_t many = lanes_from(place, positions);
        float lanes[LANES] = {};
        std::memcpy(lanes, weights + place, many * sizeof(float));
        store(lanes, exp_of(load(lanes) - most));
        for (int64_t lane = 0; lane < many; lane++) total += lanes[lane];
        std::memcpy(weights + place, lanes, many * sizeof(float));
    }
    for (int64_t place = 0; place < positions; place++) weights[place] /= total;
}

// sums of the values weighted, for rows of one sentence
template <int ROWS>
static inline void blend(const Bf16 *values, const float *weights, int64_t stride, int64_t positions, int64_t size,
                         Bf16 *context) {
    int64_t x = 0;
    for (; x + 2 * LANES <= size; x += 2 * LANES) {
        Floats sums[ROWS][2] = {};
        for (int64_t place = 0; place < positions; place++) {
            Floats first = widen(values + place * size + x), second = widen(values + place * size + x + LANES);
            for (int row = 0; row < ROWS; row++) {
                sums[row][0] += first * weights[row * stride + place];
                sums[row][1] += second * weights[row * stride + place];
            }
        }
        for (int row = 0; row < ROWS; row++) {
            narrow(context + row * size + x, sums[row][0]);
            narrow(context + row * size + x + LANES, sums[row][1]);
        }
    }
    for (; x < size; x += LANES) {
        int64_t many = lanes_from(x, size);
        for (int row = 0; row < ROWS; row++) {
            Floats sum = {};
            for (int64_t place = 0; place < positions; place++)
                sum += widen_some(values + place * size + x, many) * weights[row * stride + place];
            narrow_some(context + row * size + x, sum, many);
        }
    }
}

static void attend(const AttentionArguments &given) {
    float *v = given.scratch, *query = given.scratch + filled_up(given.units);
    for (int64_t unit = 0; unit < given.units; unit += LANES) {
        int64_t many = lanes_from(unit, given.units);
        store(v + unit, widen_some(given.energy + unit, many));
    }
    for (int64_t row = 0; row < given.rows; row++) {
        int64_t sentence = given.sentences[row], width = given.widths[sentence];
        const Bf16 *keys = given.keys + sentence * given.positions * given.units;
        for (int64_t unit = 0; unit < given.units; unit += LANES) {
            int64_t many = lanes_from(unit, given.units);
            store(query + unit, widen_some(given.queries + row * given.units + unit, many));
        }
        float *weights = given.weights + row * given.positions;
        for (int64_t place = 0; place < width; place++)
            weights[place] = energy_of(query, keys + place * given.units, v, given.units);
        softmax(weights, width);
        std::memset(weights + width, 0, (given.positions - width) * sizeof(float));
    }
    for (int64_t row = 0; row < given.rows;) {
        int64_t sentence = given.sentences[row], width = given.widths[sentence];
        const Bf16 *values = given.values + sentence * given.positions * given.size;
        const float *weights = given.weights + row * given.positions;
        Bf16 *context = given.context + row * given.size;
        int64_t alike = 1;
        while (alike < 4 && row + alike < given.rows && given.sentences[row + alike] == sentence) alike++;
        if (alike == 4) blend<4>(values, weights, given.positions, width, given.size, context);
        else blend<1>(values, weights, given.positions, width, given.size, context);
        row += alike == 4 ? 4 : 1;
    }
}

static inline Floats part(const Bf16 *from, int64_t many) {
    return many == LANES ? widen(from) : widen_some(from, many);
}

static inline void put(Bf16 *to, Floats all, int64_t many) {
    if (many == LANES) narrow(to, all);
    else narrow_some(to, all, many);
}

// z = sigmoid(x_z + c_z + U_z h) in `updates`, r h with r = sigmoid(x_r + c_r + U_r h) in `kept`
static void gates(const GateArguments &given, const Bf16 *product, Bf16 *updates, Bf16 *kept) {
    int64_t units = given.units;
    for (int64_t row = 0; row < given.rows; row++) {
        const Bf16 *word = given.words + row * given.word_stride + units, *state = given.states + row * units;
        const Bf16 *context = given.contexts ? given.contexts + row * given.context_stride + units : nullptr;
        const Bf16 *gate = product + row * 2 * units;
        for (int64_t unit = 0; unit < units; unit += LANES) {
            int64_t many = lanes_from(unit, units);
            Floats update = part(word + unit, many), reset = part(word + units + unit, many);
            if (context) {
                update += part(context + unit, many);
                reset += part(context + units + unit, many);
            }
            update += part(gate + unit, many);
            reset += part(gate + units + unit, many);
            put(updates + row * units + unit, sigmoid_of(update), many);
            put(kept + row * units + unit, sigmoid_of(reset) * part(state + unit, many), many);
        }
    }
}

// (1 - z) h + z tanh(x + c + U (r h))
static void candidate(const GateArguments &given, const Bf16 *product, const Bf16 *updates, Bf16 *next) {
    int64_t units = given.units;
    for (int64_t row = 0; row < given.rows; row++) {
        const Bf16 *word = given.words + row * given.word_stride, *state = given.states + row * units;
        const Bf16 *context = given.contexts ? given.contexts + row * given.context_stride : nullptr;
        for (int64_t unit = 0; unit < units; unit += LANES) {
            int64_t many = lanes_from(unit, units);
            Floats sum = part(word + unit, many);
            if (context) sum += part(context + unit, many);
            sum += part(product + row * units + unit, many);
            Floats before = part(state + unit, many), update = part(updates + row * units + unit, many);
            put(next + row * units + unit, before + update * (tanh_of(sum) - before), many);
        }
    }
}

// h' = o tanh(c') and behind it c' = f c + i g, where i, f, o = sigmoid(x + x' + U h), f of `remember` more, and
// g = tanh(x + x' + U h)
static void memory_cell(const CellArguments &given, const Bf16 *product, Bf16 *next) {
    int64_t units = given.units;
    for (int64_t row = 0; row < given.rows; row++) {
        const Bf16 *word = given.words + row * given.word_stride, *state = given.states + row * given.state_stride;
        const Bf16 *context = given.contexts ? given.contexts + row * given.context_stride : nullptr;
        const Bf16 *gate = product + row * 4 * units;
        Bf16 *hidden = next + row * 2 * units, *cell = hidden + units;
        for (int64_t unit = 0; unit < units; unit += LANES) {
            int64_t many = lanes_from(unit, units);
            Floats sums[4];
            for (int number = 0; number < 4; number++) {
                int64_t place = number * units + unit;
                sums[number] = part(word + place, many) + part(gate + place, many);
                if (context) sums[number] += part(context + place, many);
            }
            Floats kept = sigmoid_of(sums[1] + given.remember) * part(state + units + unit, many);
            Floats memory = kept + sigmoid_of(sums[0]) * tanh_of(sums[3]);
            put(cell + unit, memory, many);
            put(hidden + unit, sigmoid_of(sums[2]) * tanh_of(memory), many);
        }
    }
}

// Unit k is the larger of numbers 2k and 2k + 1 of the sum.
static void maxout(const MaxoutArguments &given, Bf16 *read) {
    for (int64_t row = 0; row < given.rows; row++)
        for (int64_t unit = 0; unit < given.units; unit += LANES) {
            int64_t many = lanes_from(unit, given.units);
            Floats even = {}, odd = {};
            for (int piece = 0; piece < 3; piece++) {
                if (!given.pieces[piece]) continue;
                Bits pairs = {};
                const Bf16 *from = given.pieces[piece] + row * given.strides[piece] + 2 * unit;
                std::memcpy(&pairs, from, 2 * many * sizeof(Bf16));
                even += (Floats)(pairs << 16);
                odd += (Floats)(pairs & 0xffff0000u);
            }
            put(read + row * given.units + unit, larger(even, odd), many);
        }
}

// The largest score of every `block` columns, of all of them (the shift), and the sum of exp(score - shift).
static void normalize(const Bf16 *scores, int64_t rows, int64_t columns, int64_t stride, int64_t block,
                      Bf16 *tops, float *shifts, float *totals) {
    int64_t blocks = (columns + block - 1) / block;
    for (int64_t row = 0; row < rows; row++) {
        const Bf16 *here = scores + row * stride;
        Floats most = (Floats){} - INFINITY;
        for (int64_t number = 0; number < blocks; number++) {
            int64_t first = number * block, last = first + block < columns ? first + block : columns;
            Floats top = (Floats){} - INFINITY;
            for (int64_t column = first; column + LANES <= last; column += LANES) top = larger(top, widen(here + column));
            if (int64_t rest = (last - first) % LANES) top = larger(top, widen_ending(here + last - rest, rest));
            Floats all = (Floats){} + largest_of(top);
            Bf16 lanes[LANES];
            narrow(lanes, all);
            tops[row * blocks + number] = lanes[0];
            most = larger(most, all);
        }
        float lanes[LANES];
        store(lanes, most);
        shifts[row] = lanes[0];
        totals[row] = sum_of_exponentials(here, columns, most);
    }
}

#pragma GCC pop_options

}  // namespace

extern "C" {

// the source that this was made of
int hybridmt_source() { return SOURCE_CRC; }

// whether this processor has the instructions
int hybridmt_supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}

void hybridmt_add_exponentials(const Bf16 *logits, int64_t rows, int64_t columns, int64_t stride, float *totals) {
    add_exponentials(logits, rows, columns, stride, totals);
}

void hybridmt_normalize(const Bf16 *scores, int64_t rows, int64_t columns, int64_t stride, int64_t block,
                        Bf16 *tops, float *shifts, float *totals) {
    normalize(scores, rows, columns, stride, block, tops, shifts, totals);
}

void hybridmt_attend(const AttentionArguments *given) { attend(*given); }

void hybridmt_gates(const GateArguments *given, const Bf16 *product, Bf16 *updates, Bf16 *kept) {
    gates(*given, product, updates, kept);
}

void hybridmt_candidate(const GateArguments *given, const Bf16 *product, const Bf16 *updates, Bf16 *next) {
    candidate(*given, product, updates, next);
}

void hybridmt_memory_cell(const CellArguments *given, const Bf16 *product, Bf16 *next) {
    memory_cell(*given, product, next);
}

void hybridmt_maxout(const MaxoutArguments *given, Bf16 *read) { maxout(*given, read); }
}
