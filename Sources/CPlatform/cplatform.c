#define _GNU_SOURCE
#include "cplatform.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *tapline_strerror(int code) {
    const char *text = strerrordesc_np(code);
    return text ? text : "unknown error";
}

int tapline_set_direct(int descriptor, int is_direct) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0) return -1;
    return fcntl(descriptor, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT);
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
