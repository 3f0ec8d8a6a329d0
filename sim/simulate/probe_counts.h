#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

// The places in the sources of all probes of this program (runtime/probe/probe.h), by their names.
std::map<std::string, std::string> probe_places();

// The names of the probes that were hit since clear_probes().
std::vector<std::string> hit_probes();

// How many seeds hit each probe.
class ProbeCounts {
 public:
  // Places by names, as of probe_places().
  explicit ProbeCounts(std::map<std::string, std::string> places);

  // The probes of a seed. A name without a place is ignored.
  void add(const std::vector<std::string>& hit);

  bool all_hit() const;
  std::string summary() const;  // "138 of 150 hit"
  // "PLACE: NAME", by the place.
  std::vector<std::string> never_hit() const;
  // "SEEDS: NAME" of at most `most` probes, the rarest first.
  std::vector<std::string> rarest(std::size_t most) const;

 private:
  std::map<std::string, std::string> places_;
  std::map<std::string, int64_t> seeds_;  // of each name
};

}  // namespace tutti
