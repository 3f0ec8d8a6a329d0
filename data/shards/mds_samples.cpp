#include "data/shards/mds_samples.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/nearest_name.h"
#include "runtime/text.h"

namespace tutti {
namespace {

std::vector<int64_t> samples_of(const MdsIndex& index) {
  std::vector<int64_t> samples;
  for (const MdsShard& shard : index.shards) samples.push_back(shard.samples);
  return samples;
}

std::vector<int64_t> firsts_of(const MdsIndex& index) {
  std::vector<int64_t> firsts{0};
  for (const MdsShard& shard : index.shards) firsts.push_back(firsts.back() + shard.samples);
  return firsts;
}

// Of what index.json says of the samples; how shards are compressed does not matter.
uint64_t digest_of(const MdsIndex& index) {
  std::string text;
  const auto add = [&](const std::string& part) { text += part + '\n'; };
  for (const MdsColumn& column : index.columns) {
    add(column.name);
    add(column.encoding);
  }
  for (const MdsShard& shard : index.shards) {
    add(std::to_string(shard.samples) + ' ' + std::to_string(shard.raw.bytes));
    for (const auto& [algorithm, hash] : shard.raw.hashes) add(algorithm + ' ' + hash);
  }
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace

MdsBytes MdsSamples::Sample::value(std::size_t column) const {
  return mds_value(shard_->file.bytes(), *columns_, row_, column);
}

MdsSamples::MdsSamples(const ShardFolder::Options& options, int64_t shuffle_block)
    : folder_(options),
      firsts_(firsts_of(folder_.index())),
      order_(samples_of(folder_.index()), shuffle_block),
      digest_(digest_of(folder_.index())) {}

std::size_t MdsSamples::column(const std::string& name) const {
  std::vector<std::string> names;
  for (const MdsColumn& column : columns()) {
    if (column.name == name) return names.size();
    names.push_back(column.name);
  }
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  const std::string nearest = nearest_name(name, names);
  throw UserError({folder_.options().path + '/' + kMdsIndexName},
                  "there is no column '" + name + "'; it has " + all +
                      (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

int64_t MdsSamples::shard_of(int64_t index) const {
  TUTTI_ASSERT(index >= 0 && index < size(), "sample " + std::to_string(index));
  return std::ranges::upper_bound(firsts_, index) - firsts_.begin() - 1;
}

MdsSamples::Sample MdsSamples::sample(int64_t index) const {
  const int64_t shard = shard_of(index);
  Sample sample;
  sample.shard_ = folder_.open(shard);
  sample.columns_ = &columns();
  sample.row_ = index - firsts_[static_cast<std::size_t>(shard)];
  return sample;
}

std::string MdsSamples::place(int64_t index) const {
  return "sample " + std::to_string(index - firsts_[static_cast<std::size_t>(shard_of(index))]) +
         " of the shard";
}

void MdsSamples::verify() const {
  for (int64_t shard = 0; shard < std::ssize(folder_.index().shards); ++shard) folder_.verify(shard);
}

std::string MdsSamples::advice() const {
  constexpr uint64_t kMb = 1'000'000;
  uint64_t bytes = 0;
  for (const MdsShard& shard : folder_.index().shards) bytes += shard.raw.bytes;
  const auto samples = static_cast<double>(size());
  const auto window = static_cast<uint64_t>(static_cast<double>(bytes) *
                                            static_cast<double>(order_.most_samples()) / samples);
  const uint64_t most = folder_.options().most_bytes;
  if (most == 0 || window <= most) return "";
  return "shuffled samples come from shards of about " + grouped(static_cast<int64_t>(window / kMb)) +
         " MB at a time (shuffle_block), and cache_mb keeps " + grouped(static_cast<int64_t>(most / kMb)) +
         ": shards are fetched again and again; raise cache_mb, or lower shuffle_block";
}

}  // namespace tutti
