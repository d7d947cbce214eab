#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/// A mask of 16 bytes, the first in the lowest bit: those that end a run of plain text in a JSON
/// string, which are quote, backslash, control and not ASCII.
///
/// In C because Swift has no instruction that makes a mask of a vector. Inlined in its callers.
static inline uint32_t tapline_special_mask(const void *bytes) {
#ifdef __SSE2__
    __m128i block = _mm_loadu_si128((const __m128i *)bytes);
    // Signed, so that bytes from 0x80 on are less than a space too.
    __m128i special = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    return (uint32_t)_mm_movemask_epi8(special);
#else
    const unsigned char *byte = bytes;
    uint32_t mask = 0;
    for (int index = 0; index < 16; index++) {
        uint32_t is_special = byte[index] < 0x20 || byte[index] >= 0x80 || byte[index] == '"'
            || byte[index] == '\\';
        mask |= is_special << index;
    }
    return mask;
#endif
}

/// The same of quote and backslash alone, for strings that are known to be valid.
static inline uint32_t tapline_quote_mask(const void *bytes) {
#ifdef __SSE2__
    __m128i block = _mm_loadu_si128((const __m128i *)bytes);
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(
        _mm_cmpeq_epi8(block, _mm_set1_epi8('"')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))));
#else
    const unsigned char *byte = bytes;
    uint32_t mask = 0;
    for (int index = 0; index < 16; index++) {
        mask |= (uint32_t)(byte[index] == '"' || byte[index] == '\\') << index;
    }
    return mask;
#endif
}

/// Whether one of two texts of three bytes may be somewhere in the bytes: what is asked of all bytes, before what
/// takes longer. The first byte of both is the same.
///
/// Yes where there are no instructions for it. Inlined in its callers.
static inline bool tapline_contains_start(
    const void *bytes, size_t count, const char *text, const char *other) {
    if (count < 3) return false;
#ifdef __SSE2__
    // Sixteen places at once, each with the two bytes behind it.
    if (count < 18) return true;
    const __m128i first = _mm_set1_epi8(text[0]);
    const __m128i seconds[2] = {_mm_set1_epi8(text[1]), _mm_set1_epi8(other[1])};
    const __m128i thirds[2] = {_mm_set1_epi8(text[2]), _mm_set1_epi8(other[2])};
    const unsigned char *place = bytes, *last = place + count - 18;
    while (1) {
        __m128i second = _mm_loadu_si128((const __m128i *)(place + 1));
        __m128i third = _mm_loadu_si128((const __m128i *)(place + 2));
        __m128i rest = _mm_or_si128(
            _mm_and_si128(_mm_cmpeq_epi8(second, seconds[0]), _mm_cmpeq_epi8(third, thirds[0])),
            _mm_and_si128(_mm_cmpeq_epi8(second, seconds[1]), _mm_cmpeq_epi8(third, thirds[1])));
        __m128i start = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)place), first);
        if (_mm_movemask_epi8(_mm_and_si128(start, rest)) != 0) return true;
        if (place == last) return false;
        // The last sixteen may have been looked at in part.
        place = last - place < 16 ? last : place + 16;
    }
#else
    return true;
#endif
}

/// Whether `text`, of `length` bytes, is somewhere in the bytes; those may be NULL when there are none.
///
/// The C library's search, whose declaration hangs on what is defined before its header is read.
bool tapline_contains(const void *bytes, size_t count, const char *text, size_t length);
