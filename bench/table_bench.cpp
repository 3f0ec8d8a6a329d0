// build/bench/table_bench FILE TARGET BATCH: opens a CSV or Parquet file as training data, and reads shuffled
// batches of it as a Loader's thread does. Prints seconds to open, and rows a second, as JSON. See tables.py.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

DatasetPtr open_table(const std::string& path, const std::string& target) {
  const Catalog catalog = train_data_catalog();
  const std::string kind = path.ends_with(".parquet") ? "parquet" : "csv";
  const std::string recipe = "[data.train]\nkind = '" + kind + "'\npath = '" + path + "'\nbatch_size = 1\n" +
                             "target = ['" + target + "']\nnormalize = true\n";
  return make_dataset(
      resolve(parse_recipe(recipe, "bench.toml"), std::span(&catalog, 1)).at("data").at("train"));
}

double rows_a_second(const Dataset& data, int64_t batch) {
  const auto begin = Clock::now();
  int64_t rows = 0;
  for (int64_t epoch = 0; seconds_since(begin) < 3; ++epoch)
    for (int64_t at = 0; at + batch <= data.size() && seconds_since(begin) < 3; at += batch) {
      std::vector<int64_t> indices;
      for (int64_t i = at; i < at + batch; ++i) indices.push_back(data.order(1, epoch, i, true));
      rows += data.get(indices, {1, epoch})["input"].size(0);
    }
  return static_cast<double>(rows) / seconds_since(begin);
}

}  // namespace
}  // namespace tutti

int main(int count, char** words) {
  if (count != 4) return 2;
  const auto begin = tutti::Clock::now();
  const auto data = tutti::open_table(words[1], words[2]);
  const double open_s = tutti::seconds_since(begin);
  std::printf("{\"open_s\": %g, \"rows_per_s\": %g}\n", open_s,
              tutti::rows_a_second(*data, std::atoll(words[3])));
}
