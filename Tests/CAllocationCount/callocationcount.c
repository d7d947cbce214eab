#include "callocationcount.h"

#include <errno.h>
#include <stddef.h>

static __thread unsigned long allocations;

unsigned long tapline_allocation_count(void) { return allocations; }

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || !defined(__GLIBC__)
bool tapline_allocations_are_counted(void) { return false; }
#else
bool tapline_allocations_are_counted(void) { return true; }

// These take the place of glibc's in every library of the program, and call them by their other names.
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
    allocations++;
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    allocations++;
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    allocations++;
    void *made = __libc_memalign(alignment, bytes);
    if (!made) return ENOMEM;
    *memory = made;
    return 0;
}
#endif
