#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A text to hash: whole blocks of 64 bytes, the padding of SHA-256 (FIPS 180-4 §5.1.1) included.
struct tapline_text {
    const void *bytes;
    size_t blocks;
};

/// The first 128 bits of the SHA-256 of three texts; of one without blocks they mean nothing.
///
/// The instructions for SHA-256 take their time one after the other, so two texts at once take no
/// longer than one. False where the processor has none; nothing is written then.
bool tapline_sha256_three(
    struct tapline_text first, struct tapline_text second, struct tapline_text third,
    uint64_t digests[6]);
