// Reads every seed of the fuzz targets, among them files that once broke a reader.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

namespace fs = std::filesystem;

// Relative to the source tree.
std::vector<std::string> seeds_of(const std::string& target) {
  std::vector<std::string> seeds;
  std::istringstream lines(source_file("tests/fuzz/seeds.txt"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(target + ' ')) seeds.push_back(line.substr(target.size() + 1));
  const std::string folder = "tests/fuzz/corpus/" + target;
  if (fs::exists(TUTTI_SOURCE_DIR "/" + folder))
    for (const auto& one : fs::directory_iterator(TUTTI_SOURCE_DIR "/" + folder))
      seeds.push_back(folder + '/' + one.path().filename().string());
  return seeds;
}

class CorpusTest : public testing::TestWithParam<Target> {};

TEST_P(CorpusTest, IsReadOrRefused) {
  const std::vector<std::string> seeds = seeds_of(GetParam().name);
  EXPECT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) {
    const std::string bytes = source_file(seed);
    EXPECT_FALSE(bytes.empty()) << seed;
    EXPECT_NO_THROW(GetParam().read(bytes)) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CorpusTest, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace tutti::fuzz
