// The oracle of the differential test of JSONLines: simdjson's DOM parser, which validates all of a
// text. No exception and no C++ type passes through.
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    tapline_simdjson_valid = 0,
    tapline_simdjson_number = 1,  // also a number too large for a double or 64 bits
    tapline_simdjson_string = 2,  // also a lone surrogate
    tapline_simdjson_utf8 = 3,
    tapline_simdjson_depth = 4,
    tapline_simdjson_other = 5,
} tapline_simdjson_verdict;

// What simdjson says of the `count` bytes at `text`, which need no padding.
tapline_simdjson_verdict tapline_simdjson_check(const void *text, size_t count);

#ifdef __cplusplus
}
#endif
