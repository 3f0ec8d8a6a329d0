#pragma once

// Before a function: compiled once more for newer processors, and chosen as the program starts. For loops
// over many numbers that the compiler turns into vectors (-O3).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TUTTI_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TUTTI_VECTORS
#endif
