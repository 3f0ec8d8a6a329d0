#pragma once

#include <atomic>
#include <vector>

namespace tutti {

// A rare state of the program that simulated runs must reach; declared by TUTTI_PROBE.
struct Probe {
  const char* name;
  const char* file;  // from the root of the sources
  int line;
  std::atomic<bool> is_hit{false};

  void hit() {
    if (!is_hit.load(std::memory_order_relaxed)) is_hit.store(true, std::memory_order_relaxed);
  }
};

// All probes of libtutti.so, or of the program that has this function in it; in any order.
std::vector<Probe*> all_probes();

// Marks all probes as not hit.
void clear_probes();

// While it lives, probes are hit in vain: the destructor restores what was hit before. For code that looks at
// a run's files beside the run.
class UncountedProbes {
 public:
  UncountedProbes();
  ~UncountedProbes();
  UncountedProbes(const UncountedProbes&) = delete;

 private:
  std::vector<bool> hit_before_;
};

}  // namespace tutti

// Records that the line was reached: TUTTI_PROBE("verdict: memory ran out on all ranks"). Only in functions
// of .cpp files that are neither templates nor inline, nor in a class of a header: a probe is a record in a
// section of the linker. Costs the load of a flag. The name is unique, and begins with a part of the program.
#define TUTTI_PROBE(name_)                                                                       \
  do {                                                                                           \
    [[gnu::section("tutti_probes"), gnu::used]] alignas(                                         \
        ::tutti::Probe) static constinit ::tutti::Probe tutti_probe_{name_, __FILE__, __LINE__}; \
    tutti_probe_.hit();                                                                          \
  } while (false)
