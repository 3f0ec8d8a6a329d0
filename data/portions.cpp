#include "data/portions.h"

#include <algorithm>

namespace tutti {
namespace {

void cut(const Portion& batch, int64_t most, std::vector<Portion>& portions) {
  for (int64_t begin = 0; begin < batch.samples; begin += most)
    portions.push_back({std::ssize(portions), batch.first + begin, std::min(most, batch.samples - begin)});
}

}  // namespace

int64_t PortionPlan::portion_size(int64_t batch) const { return std::max(size, largest_part(batch, count)); }

std::vector<Portion> parts_of_rank(int64_t global_samples, const RankTopology& topology) {
  std::vector<Portion> parts;
  for (int part = 0; part < topology.data_parts; ++part) {
    RankTopology place = topology;
    place.data_rank = topology.data_rank + part * topology.data_stride;
    parts.push_back(part_of_rank(global_samples, place));
  }
  return parts;
}

Portion part_of_rank(int64_t global_samples, const RankTopology& topology) {
  const int64_t parts = topology.data_world, part = topology.data_rank;
  if (part >= parts) return {part, global_samples, 0, true};
  const int64_t each = global_samples / parts, more = global_samples % parts;
  return {part, part * each + std::min(part, more), each + (part < more ? 1 : 0), part + 1 == parts};
}

int64_t largest_part(int64_t samples, int64_t parts) { return (samples + parts - 1) / parts; }

std::vector<Portion> portions_of(const Portion& batch, const PortionPlan& plan) {
  std::vector<Portion> portions;
  const int64_t most = plan.portion_size(batch.samples);
  for (int64_t index = 0; index < plan.count; ++index) {
    const int64_t begin = std::min(index * most, batch.samples);
    portions.push_back(
        {index, batch.first + begin, std::min(most, batch.samples - begin), index + 1 == plan.count});
  }
  return portions;
}

std::vector<Portion> portions_of(const Portion& batch, int64_t most, int64_t fits) {
  std::vector<Portion> planned, portions;
  cut(batch, most, planned);
  for (const Portion& portion : planned) cut(portion, fits, portions);
  for (Portion& portion : portions) portion.last = portion.index + 1 == std::ssize(portions);
  return portions;
}

Batch samples_of(const Batch& batch, int64_t first, const Portion& portion) {
  if (portion.samples == batch.samples()) return batch;
  return batch.narrow(portion.first - first, portion.samples);
}

}  // namespace tutti
