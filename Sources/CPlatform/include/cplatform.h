#pragma once

#include <stddef.h>
#include <stdint.h>

/// The text of an errno value, a constant string; never null.
const char *tapline_strerror(int code);

/// Names the calling thread (15 bytes are kept).
void tapline_set_thread_name(const char *name);

/// Lets other threads of the process go before the calling one where both have something to do: 0 for none,
/// to 19 (nice(2), which is of a thread on Linux).
void tapline_set_thread_niceness(int niceness);

/// How long the calling thread, and those that it starts, may run before others have their turn, in
/// nanoseconds; 0 for the kernel's own. The shorter, the sooner it runs once it is woken, also where others
/// run already (EEVDF, Linux 6.12; without effect before).
void tapline_set_thread_slice(uint64_t nanoseconds);

/// Bounds the number of malloc arenas, which keeps the idle size small.
void tapline_limit_malloc_arenas(int count);

/// Fills `bytes` from the kernel's random source; ends the process if there is none.
void tapline_random(void *bytes, size_t count);

/// Whether an open file is read and written past the page cache from now on (O_DIRECT); 0, or -1 with errno.
int tapline_set_direct(int descriptor, int is_direct);

/// The first place of `pattern` within `bytes`, or null.
const void *tapline_find(
    const void *bytes, size_t count, const void *pattern, size_t pattern_count);

/// Asks memory for the line at an address; never faults.
static inline void tapline_prefetch(const void *address) { __builtin_prefetch(address); }

/// Zeroed memory, or null. Of 2 MiB and more it is on huge pages where the kernel gives them, as look-ups
/// all over a large table spend more on finding small pages than on reading them.
void *tapline_allocate_zeroed(size_t count);

/// Makes a block that `tapline_allocate_zeroed` gave for `count` bytes one of `more`, with what it holds; what is
/// new is zeroed. A large block is moved by its pages, not copied. Null, and the block as it was, without memory.
void *tapline_grow_zeroed(void *bytes, size_t count, size_t more);

/// Frees what `tapline_allocate_zeroed` gave for the same count.
void tapline_free_zeroed(void *bytes, size_t count);
