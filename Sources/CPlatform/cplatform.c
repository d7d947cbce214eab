#define _GNU_SOURCE
#include "cplatform.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1)));
        }
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int slice = 1; slice < 8; slice++) {
            uint32_t previous = table[slice - 1][i];
            table[slice][i] = (previous >> 8) ^ table[0][previous & 0xFF];
        }
    }
}

uint32_t tapline_crc32c_software(uint32_t seed, const void *bytes, size_t count) {
    pthread_once(&table_once, make_table);
    const unsigned char *next = bytes;
    uint32_t crc = ~seed;
    for (; count >= 8; count -= 8, next += 8) {
        uint32_t low = crc ^ ((uint32_t)next[0] | (uint32_t)next[1] << 8 |
                              (uint32_t)next[2] << 16 | (uint32_t)next[3] << 24);
        crc = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^
              table[5][(low >> 16) & 0xFF] ^ table[4][low >> 24] ^ table[3][next[4]] ^
              table[2][next[5]] ^ table[1][next[6]] ^ table[0][next[7]];
    }
    for (; count > 0; count--, next++) {
        crc = (crc >> 8) ^ table[0][(crc ^ *next) & 0xFF];
    }
    return ~crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_hardware(
    uint32_t seed, const void *bytes, size_t count) {
    const unsigned char *next = bytes;
    uint64_t crc = (uint32_t)~seed;
    for (; count >= 8; count -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    for (; count > 0; count--, next++) {
        crc = _mm_crc32_u8((uint32_t)crc, *next);
    }
    return ~(uint32_t)crc;
}

uint32_t tapline_crc32c(uint32_t seed, const void *bytes, size_t count) {
    return __builtin_cpu_supports("sse4.2") ? crc32c_hardware(seed, bytes, count)
                                            : tapline_crc32c_software(seed, bytes, count);
}
#else
uint32_t tapline_crc32c(uint32_t seed, const void *bytes, size_t count) {
    return tapline_crc32c_software(seed, bytes, count);
}
#endif

const char *tapline_strerror(int code) {
    const char *text = strerrordesc_np(code);
    return text ? text : "unknown error";
}

void tapline_set_thread_name(const char *name) {
    char kept[16];
    strncpy(kept, name, sizeof kept - 1);
    kept[sizeof kept - 1] = 0;
    pthread_setname_np(pthread_self(), kept);
}

void tapline_set_thread_niceness(int niceness) {
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), niceness);
}

// struct sched_attr of sched_setattr(2), which the C library does not declare.
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

void tapline_set_thread_slice(uint64_t nanoseconds) {
    struct attributes attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    if (attributes.policy != 0) return;  // Somebody has chosen another way to share the processors.
    attributes.size = sizeof attributes;
    attributes.runtime = nanoseconds;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void tapline_limit_malloc_arenas(int count) {
    mallopt(M_ARENA_MAX, count);
    // Bodies of a few hundred KB come and go, and batches of fifty of them: their pages are kept, or each
    // would be faulted in anew.
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 48 << 20);
}

void tapline_random(void *bytes, size_t count) {
    unsigned char *next = bytes;
    while (count > 0) {
        ssize_t got = getrandom(next, count, 0);
        if (got < 0 && errno != EINTR) {
            abort();
        }
        if (got > 0) {
            next += got;
            count -= (size_t)got;
        }
    }
}

const void *tapline_find(
    const void *bytes, size_t count, const void *pattern, size_t pattern_count) {
    return memmem(bytes, count, pattern, pattern_count);
}

static const size_t huge_page = 2 << 20;

static size_t mapped(size_t count) { return (count + huge_page - 1) / huge_page * huge_page; }

// Address space for `size` bytes, a multiple of it, that starts on a huge page; or null.
static char *reserve(size_t size) {
    // One page more than is wanted, so that the part that starts on a huge page is large enough.
    char *block = mmap(
        NULL, size + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        return NULL;
    }
    size_t before = (huge_page - (uintptr_t)block % huge_page) % huge_page;
    if (before > 0) {
        munmap(block, before);
    }
    if (before < huge_page) {
        munmap(block + before + size, huge_page - before);
    }
    return block + before;
}

void *tapline_allocate_zeroed(size_t count) {
    if (count < huge_page) {
        return calloc(1, count);
    }
    char *block = reserve(mapped(count));
    if (block != NULL) {
        madvise(block, mapped(count), MADV_HUGEPAGE);
    }
    return block;
}

void *tapline_grow_zeroed(void *bytes, size_t count, size_t more) {
    if (count < huge_page) {
        char *block = tapline_allocate_zeroed(more);
        if (block != NULL) {
            memcpy(block, bytes, count);
            free(bytes);
        }
        return block;
    }
    if (mapped(more) == mapped(count)) {
        return bytes;
    }
    char *place = reserve(mapped(more));
    if (place == NULL) {
        return NULL;
    }
    char *block = mremap(
        bytes, mapped(count), mapped(more), MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (block == MAP_FAILED) {
        munmap(place, mapped(more));
        return NULL;
    }
    madvise(block, mapped(more), MADV_HUGEPAGE);
    return block;
}

void tapline_free_zeroed(void *bytes, size_t count) {
    if (count < huge_page) {
        free(bytes);
    } else {
        munmap(bytes, mapped(count));
    }
}
