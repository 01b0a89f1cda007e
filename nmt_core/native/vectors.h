// Vectors of sixteen float32 and what is computed of them, for a processor with AVX-512.

#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int LANES = 16;
typedef uint16_t Bf16;
typedef float Floats __attribute__((vector_size(64)));
typedef uint32_t Bits __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")

static inline Floats load(const float *from) {
    Floats all;
    std::memcpy(&all, from, sizeof all);
    return all;
}

static inline void store(float *to, Floats all) { std::memcpy(to, &all, sizeof all); }

static inline Floats widen(const Bf16 *from) {
    Halves narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    return (Floats)(__builtin_convertvector(narrow, Bits) << 16);
}

static inline void narrow(Bf16 *to, Floats all) {  // to the nearest, ties to even; what is no number stays none
    Bits bits = (Bits)all;
    Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    Bits chosen = all == all ? rounded : (Bits){} + 0x7fc0u;
    Halves halves = __builtin_convertvector(chosen, Halves);
    std::memcpy(to, &halves, sizeof halves);
}

static inline Floats widen_some(const Bf16 *from, int64_t many) {
    Bf16 padded[LANES] = {};
    std::memcpy(padded, from, many * sizeof(Bf16));
    return widen(padded);
}

static inline void narrow_some(Bf16 *to, Floats all, int64_t many) {
    Bf16 padded[LANES];
    narrow(padded, all);
    std::memcpy(to, padded, many * sizeof(Bf16));
}

// of a row's end, filled up with -inf
static inline Floats widen_ending(const Bf16 *from, int64_t many) {
    Bf16 padded[LANES];
    for (int lane = 0; lane < LANES; lane++) padded[lane] = 0xff80;
    std::memcpy(padded, from, many * sizeof(Bf16));
    return widen(padded);
}

// what is no number is larger than any
static inline Floats larger(Floats left, Floats right) { return (right > left) | (right != right) ? right : left; }

static inline float largest_of(Floats all) {
    float lanes[LANES];
    store(lanes, all);
    float most = lanes[0];
    for (int lane = 1; lane < LANES; lane++) most = lanes[lane] > most || lanes[lane] != lanes[lane] ? lanes[lane] : most;
    return most;
}

static inline float sum_of(Floats all) {
    float lanes[LANES];
    store(lanes, all);
    for (int width = LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
    return lanes[0];
}

// no smaller and no larger than the bounds; what is no number stays none
static inline Floats between(Floats x, float least, float most) {
    return (Floats)_mm512_min_ps(_mm512_set1_ps(most), _mm512_max_ps(_mm512_set1_ps(least), (__m512)x));
}

// exp to 1e-7 of itself; 0 below -104, infinity above 88.7
static inline Floats exp_of(Floats x) {
    Floats inside = between(x, -110.0f, 100.0f);
    Floats whole = (Floats)_mm512_roundscale_ps((__m512)(inside * 1.44269504088896341f), 0);
    Floats rest = inside - whole * 0.693359375f;
    rest = rest + whole * 2.12194440e-4f;
    Floats sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * (rest * rest) + rest + 1.0f;
    return (Floats)_mm512_scalef_ps((__m512)sum, (__m512)whole);
}

struct Fraction {
    Floats over, under;
};

// tanh as a quotient of polynomials, to 4e-7 of itself (the coefficients are those of Eigen's ptanh)
static inline Fraction tanh_fraction(Floats x) {
    x = between(x, -7.90531110763549805f, 7.90531110763549805f);
    Floats square = x * x;
    Floats over = square * -2.76076847742355e-16f + 2.00018790482477e-13f;
    over = over * square + -8.60467152213735e-11f;
    over = over * square + 5.12229709037114e-08f;
    over = over * square + 1.48572235717979e-05f;
    over = over * square + 6.37261928875436e-04f;
    over = over * square + 4.89352455891786e-03f;
    Floats under = square * 1.19825839466702e-06f + 1.18534705686654e-04f;
    under = under * square + 2.26843463243900e-03f;
    under = under * square + 4.89352518554385e-03f;
    return {over * x, under};
}

static inline Floats tanh_of(Floats x) {
    Fraction found = tanh_fraction(x);
    return found.over / found.under;
}

static inline Floats sigmoid_of(Floats x) { return tanh_of(x * 0.5f) * 0.5f + 0.5f; }

#pragma GCC pop_options

}  // namespace
