#define _GNU_SOURCE
#include "cscan.h"

bool tapline_contains(const void *bytes, size_t count, const char *text, size_t length) {
    return count >= length && memmem(bytes, count, text, length) != NULL;
}
