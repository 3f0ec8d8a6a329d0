#pragma once

// XXH3 with the widest vectors that the processor has: xxHash's library chooses at run time where it is asked
// to. The hashes are the same everywhere.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
