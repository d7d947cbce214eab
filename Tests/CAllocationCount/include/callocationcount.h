#pragma once

#include <stdbool.h>

/// The allocations that the calling thread has made so far, whoever asked for them. The whole program
/// that this is linked into is counted.
unsigned long tapline_allocation_count(void);

/// Whether they are counted; not under a sanitizer, which has an allocator of its own.
bool tapline_allocations_are_counted(void);
