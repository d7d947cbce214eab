#include "chash.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SHA_CODE __attribute__((target("sha,ssse3,sse4.1")))

static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// A text under way. The instructions want the state as words ABEF and CDGH, the highest first.
struct lane {
    const unsigned char *next;
    size_t blocks;
    uint64_t *digest;
    __m128i abef, cdgh;
};

static void begin(struct lane *lane, struct tapline_text text, uint64_t *digest) {
    lane->next = text.bytes;
    lane->blocks = text.blocks;
    lane->digest = digest;
    lane->abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c);
    lane->cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19);
}

// One block of each of the first `count` lanes, which is known where this is inlined.
SHA_CODE static inline __attribute__((always_inline)) void compress(
    struct lane *lanes, const int count) {
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abef[2], cdgh[2], words[2][4];
    for (int lane = 0; lane < count; lane++) {
        abef[lane] = lanes[lane].abef;
        cdgh[lane] = lanes[lane].cdgh;
        const __m128i *block = (const __m128i *)lanes[lane].next;
        for (int part = 0; part < 4; part++) {
            words[lane][part] = _mm_shuffle_epi8(_mm_loadu_si128(block + part), order);
        }
    }
#pragma clang loop unroll(full)
    for (int step = 0; step < 16; step++) {
        const __m128i constant = _mm_load_si128((const __m128i *)constants + step);
#pragma clang loop unroll(full)
        for (int lane = 0; lane < count; lane++) {
            __m128i *word = words[lane];
            __m128i sum = _mm_add_epi32(word[step & 3], constant);
            cdgh[lane] = _mm_sha256rnds2_epu32(cdgh[lane], abef[lane], sum);
            sum = _mm_shuffle_epi32(sum, 0x0E);
            abef[lane] = _mm_sha256rnds2_epu32(abef[lane], cdgh[lane], sum);
            if (step < 12) {
                __m128i last = word[(step + 3) & 3];
                __m128i next = _mm_sha256msg1_epu32(word[step & 3], word[(step + 1) & 3]);
                next = _mm_add_epi32(next, _mm_alignr_epi8(last, word[(step + 2) & 3], 4));
                word[step & 3] = _mm_sha256msg2_epu32(next, last);
            }
        }
    }
    for (int lane = 0; lane < count; lane++) {
        lanes[lane].abef = _mm_add_epi32(lanes[lane].abef, abef[lane]);
        lanes[lane].cdgh = _mm_add_epi32(lanes[lane].cdgh, cdgh[lane]);
        lanes[lane].next += 64;
        lanes[lane].blocks--;
    }
}

SHA_CODE static void finish(const struct lane *lane) {
    // The digest begins with A, B, C and D.
    lane->digest[0] = (uint64_t)_mm_extract_epi64(lane->abef, 1);
    lane->digest[1] = (uint64_t)_mm_extract_epi64(lane->cdgh, 1);
}

SHA_CODE static void hash_three(const struct tapline_text *texts, uint64_t *digests) {
    struct lane lanes[2];
    begin(&lanes[0], texts[0], digests);
    begin(&lanes[1], texts[1], digests + 2);
    int next = 2;
    while (1) {
        // A lane that is done takes the next text; when there is none the other goes on alone.
        for (int lane = 0; lane < 2; lane++) {
            if (lanes[lane].blocks > 0) continue;
            finish(&lanes[lane]);
            if (next == 3) {
                struct lane *other = &lanes[1 - lane];
                while (other->blocks > 0) compress(other, 1);
                finish(other);
                return;
            }
            begin(&lanes[lane], texts[next], digests + 2 * next);
            next++;
            lane = -1;
        }
        compress(lanes, 2);
    }
}

bool tapline_sha256_three(
    struct tapline_text first, struct tapline_text second, struct tapline_text third,
    uint64_t digests[6]) {
    if (!__builtin_cpu_supports("sha")) return false;
    const struct tapline_text texts[3] = {first, second, third};
    hash_three(texts, digests);
    return true;
}
#else
bool tapline_sha256_three(
    struct tapline_text first, struct tapline_text second, struct tapline_text third,
    uint64_t digests[6]) {
    (void)first, (void)second, (void)third, (void)digests;
    return false;
}
#endif
