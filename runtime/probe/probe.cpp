#include "runtime/probe/probe.h"

namespace tutti {

// The bounds of the section, by the linker. Hidden: each program and library has its own.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern Probe __start_tutti_probes[];
[[gnu::weak, gnu::visibility("hidden")]] extern Probe __stop_tutti_probes[];
}

std::vector<Probe*> all_probes() {
  std::vector<Probe*> probes;
  for (Probe* probe = __start_tutti_probes; probe != __stop_tutti_probes; ++probe) probes.push_back(probe);
  return probes;
}

void clear_probes() {
  for (Probe* probe : all_probes()) probe->is_hit = false;
}

UncountedProbes::UncountedProbes() {
  for (const Probe* probe : all_probes()) hit_before_.push_back(probe->is_hit);
}

UncountedProbes::~UncountedProbes() {
  const std::vector<Probe*> probes = all_probes();
  for (std::size_t i = 0; i < probes.size(); ++i) probes[i]->is_hit = hit_before_[i];
}

}  // namespace tutti
