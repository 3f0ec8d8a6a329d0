#include "tests/sharding/sharded_run.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "recipe/toml_reader.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

double largest_peak(const std::string& metrics) {
  static const std::regex kPeak("\"memory_peak_mb\": ([0-9.e+-]+)");
  double largest = 0;
  for (std::sregex_iterator found(metrics.begin(), metrics.end(), kPeak), end; found != end; ++found)
    largest = std::max(largest, std::stod((*found)[1]));
  return largest;
}

std::string without_measured(const std::string& metrics) {
  static const std::regex kMeasured(
      "\"(step_ms|data_wait_ms|data_read_ms|data_disk_ms|samples_per_s|tokens_per_s|memory_peak_mb|since_"
      "start_s)\": [^,}]*");
  return std::regex_replace(metrics, kMeasured, "");
}

}  // namespace

ShardedRun ShardedJob::run(const Sharded& sharded) const {
  LocalRunOptions options;
  options.ranks = sharded.ranks;
  options.run_dir = folder;
  options.resume = resume;
  options.prepare = prepare;
  train_in_one_process(
      recipe_of(recipe + "\n[sharding]\nstrategy = '" + sharded.strategy + "'\n" + sharded.more), options);
  const std::string metrics = read_text(folder + "/metrics.jsonl");
  return {inspect_digest(folder), without_measured(metrics), largest_peak(metrics)};
}

}  // namespace tutti
