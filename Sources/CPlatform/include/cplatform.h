#pragma once

#include <stddef.h>
#include <stdint.h>

/// CRC-32C (Castagnoli) of `count` bytes, continuing from `seed`; 0 starts one.
/// tapline_crc32c(0, "123456789", 9) is 0xE3069283.
uint32_t tapline_crc32c(uint32_t seed, const void *bytes, size_t count);

/// The same without the instruction; exposed so that a test compares the two.
uint32_t tapline_crc32c_software(uint32_t seed, const void *bytes, size_t count);

/// The text of an errno value, a constant string; never null.
const char *tapline_strerror(int code);

/// Names the calling thread (15 bytes are kept).
void tapline_set_thread_name(const char *name);

/// Bounds the number of malloc arenas, which keeps the idle size small.
void tapline_limit_malloc_arenas(int count);

/// Fills `bytes` from the kernel's random source; ends the process if there is none.
void tapline_random(void *bytes, size_t count);

/// The first place of `pattern` within `bytes`, or null.
const void *tapline_find(
    const void *bytes, size_t count, const void *pattern, size_t pattern_count);
