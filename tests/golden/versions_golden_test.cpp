// Files of older versions (versions/README.md), which are read, resumed and replayed.

#include <ATen/Version.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "analysis/comparison/compared_runs.h"
#include "analysis/comparison/run_table.h"
#include "analysis/report/report_page.h"
#include "analysis/run_diff.h"
#include "analysis/run_status.h"
#include "analysis/timeline.h"
#include "commands/check.h"
#include "commands/export.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/journal/recorded_run.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "sim/replay/replay.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double kLossTolerance = 1e-6, kOtherProcessorsTolerance = 1e-3;
// Its ranks agree once less before the first step.
constexpr const char* kOtherStart = "2026-11-23-64581c44";
// Its sums of gradients were rounded otherwise there: runs of today without a stop differ as much.
const std::set<std::pair<std::string, std::string>> kOtherRounding{{kOtherStart, "bytes"},
                                                                   {kOtherStart, "ranks"}};
// Models, optimizers and readers of files that other runs have, too.
const std::set<std::string> kOnlyNightly{"bytes", "tokens"};
const fs::path kVersions = TUTTI_SOURCE_DIR "/tests/golden/versions";

std::vector<std::string> version_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kVersions))
    if (entry.path().extension() == ".xz") names.push_back(entry.path().stem().stem());
  std::ranges::sort(names);
  return names;
}

// A run that its version stopped in mid-epoch.
struct StoppedRun {
  std::string name;
  int ranks = 1;
  int64_t stopped = 0;  // steps
  std::string digest;   // of the weights at the end of the undisturbed run
};

std::map<int64_t, double> losses_of(const fs::path& run) {
  std::map<int64_t, double> losses;
  std::istringstream lines(read_text(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    if (fields.contains("lr")) losses[fields["step"]] = fields["loss"];
  }
  return losses;
}

class VersionsGolden : public testing::TestWithParam<std::string> {
 protected:
  explicit VersionsGolden(std::string version) {
    const std::string archive = kVersions / (version + ".tar.xz");
    const std::string command =
        "cd '" + scratch_.path() + "' && '" TUTTI_CMAKE "' -E tar xf '" + archive + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("cannot unpack " + archive);
    folder_ = fs::path(scratch_.path()) / version;
    const auto described = nlohmann::json::parse(read_text(folder_ / "version.json"));
    for (const auto& [name, run] : described["cases"].items())
      if (is_nightly() || !kOnlyNightly.contains(name))
        runs_.push_back({name, run["ranks"], run["stopped"], run["digest"]});
    const auto head = recorded_run(folder_ / "runs/plain").heads.at(0);
    on_same_processor_ = head.cpu == at::get_cpu_capability();
  }
  VersionsGolden() : VersionsGolden(GetParam()) {}

  fs::path run(const StoppedRun& stopped) const { return folder_ / "runs" / stopped.name; }
  bool is_recorded(const StoppedRun& stopped) const { return fs::exists(run(stopped) / "journal"); }
  std::vector<std::string> run_folders() const {
    std::vector<std::string> folders;
    for (const StoppedRun& stopped : runs_) folders.push_back(run(stopped));
    return folders;
  }

  // Recipes of runs have the paths at which their version ran.
  std::vector<std::string> paths_here(const fs::path& recipe) const {
    std::vector<std::string> overrides;
    const Setting data = read_recipe(recipe).at("data");
    for (const char* section : {"train", "eval"}) {
      for (const char* key : {"path", "tokenizer", "cache"}) {
        if (!data.has(section) || !data.at(section).has(key)) continue;
        const std::string there = data.at(section).at(key).text(), version = folder_.filename();
        const auto here = folder_ / there.substr(there.find(version) + version.size() + 1);
        overrides.push_back(std::string("data.") + section + '.' + key + '=' + here.string());
      }
    }
    return overrides;
  }
  std::vector<std::string> paths_here(const StoppedRun& stopped) const {
    return paths_here(run(stopped) / "recipe.toml");
  }
  Setting recipe_of_run(const StoppedRun& stopped, int ranks) const {
    std::vector<std::string> overrides = paths_here(stopped);
    const auto file = run(stopped) / "recipe.toml";
    const int64_t parts = read_recipe(file).at("train").at("grad_accum").integer();
    overrides.push_back("train.grad_accum=" + std::to_string(parts * stopped.ranks / ranks));
    return resolve_recipe(read_recipe(file, overrides));
  }

  // The folder of the run, resumed to its end on so many ranks.
  fs::path resumed(const StoppedRun& stopped, int ranks) const {
    const fs::path copy = folder_ / (stopped.name + "-" + std::to_string(ranks));
    fs::copy(run(stopped), copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    LocalRunOptions options;
    options.quiet = true;
    options.ranks = ranks;
    options.run_dir = copy;
    options.resume = "auto";
    EXPECT_EQ(train_in_one_process(recipe_of_run(stopped, ranks), options).exit_code, 0);
    return copy;
  }

  void expect_losses_of_undisturbed(const StoppedRun& stopped, const fs::path& resumed) const {
    const auto expected = losses_of(folder_ / "whole" / stopped.name), got = losses_of(resumed);
    ASSERT_EQ(got.size(), expected.size());
    const double tolerance = on_same_processor_ ? kLossTolerance : kOtherProcessorsTolerance;
    for (const auto& [step, loss] : expected)
      EXPECT_NEAR(got.at(step), loss, tolerance * std::max(1.0, loss)) << "step " << step;
  }

  Scratch scratch_;
  fs::path folder_;
  std::vector<StoppedRun> runs_;
  bool on_same_processor_ = false;  // as far as libtorch's instructions go
};

TEST_P(VersionsGolden, RunsResumeToTheSameBits) {
  for (const StoppedRun& stopped : runs_) {
    SCOPED_TRACE(stopped.name);
    const fs::path end = resumed(stopped, stopped.ranks);
    expect_losses_of_undisturbed(stopped, end);
    if (on_same_processor_ && !kOtherRounding.contains({GetParam(), stopped.name}))
      EXPECT_EQ(inspect_digest(end), stopped.digest);
  }
}

TEST_P(VersionsGolden, RunsResumeOnOtherRanks) {
  if (!is_nightly() && GetParam() != version_names().back()) GTEST_SKIP() << "at night";
  for (const StoppedRun& stopped : runs_) {
    if (stopped.ranks == 1 && !is_nightly()) continue;
    SCOPED_TRACE(stopped.name);
    expect_losses_of_undisturbed(stopped, resumed(stopped, stopped.ranks == 1 ? 2 : 1));
  }
}

TEST_P(VersionsGolden, JournalsReplay) {
  if (!is_nightly() && GetParam() != version_names().back()) GTEST_SKIP() << "at night";
  for (const StoppedRun& stopped : runs_) {
    if (!is_recorded(stopped) || (stopped.ranks == 1 && !is_nightly())) continue;
    const ReplayResult result = replay({.run_dir = run(stopped), .overrides = paths_here(stopped)});
    if (GetParam() == kOtherStart) {
      EXPECT_THAT(result.text, HasSubstr("commit 64581c44, this is tutti"));
      EXPECT_THAT(result.text, HasSubstr("so no step can be replayed: replay the run with the tutti that"));
      EXPECT_FALSE(result.same);
      continue;
    }
    EXPECT_TRUE(result.same) << stopped.name << ": " << result.text;
    EXPECT_THAT(result.text, StartsWith("replayed " + std::to_string(stopped.ranks) + " rank"));
  }
}

TEST_P(VersionsGolden, CheckpointsAndRecipesAreRead) {
  for (const StoppedRun& stopped : runs_) {
    SCOPED_TRACE(stopped.name);
    const std::string folder = run(stopped), weights = folder + "/weights.safetensors";
    EXPECT_THAT(inspect_text(folder), HasSubstr("step " + std::to_string(stopped.stopped)));
    EXPECT_THAT(export_text({.path = folder, .to = weights}), StartsWith("written to " + weights));
    const auto file = folder_ / "recipes" / (stopped.name + ".toml");
    EXPECT_THAT(check_text(resolve_recipe(read_recipe(file))), StartsWith("ok"));
    const Setting recipe = recipe_of_run(stopped, 1);
    if (recipe.at("data").has("eval")) EXPECT_THAT(eval_text(recipe, folder), HasSubstr("metrics/eval/loss"));
  }
}

TEST_P(VersionsGolden, RunFoldersAreCompared) {
  std::vector<RunStatus> states;
  PosixDisk disk;
  for (const StoppedRun& stopped : runs_) {
    SCOPED_TRACE(stopped.name);
    const std::string folder = run(stopped);
    states.push_back(status_of(folder));
    EXPECT_EQ(states.back().metrics.step, stopped.stopped);
    if (!is_recorded(stopped)) continue;
    EXPECT_TRUE(diff_runs(folder, folder).same);
    write_timeline(disk, folder, folder + "/timeline.json");
  }
  EXPECT_THAT(RunTable(states, {.sort = "loss"}).text(0, 0), testing::Not(HasSubstr("damaged")));
  EXPECT_THAT(comparison_text(run_folders(), 0), HasSubstr("plain"));
  write_report(disk, run_folders(), scratch_.path("report.html"));
}

// With a hash that is right.
void make_newer_manifest(const fs::path& file) {
  std::string body = read_text(file);
  body.erase(0, body.find(R"({"format":1)"));
  body.pop_back();
  body.replace(body.find("1"), 1, "2");
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(body.data(), body.size())));
  write_text(file, std::string(R"({"hash":")") + hash + R"(","manifest":)" + body + "}");
}

class NewerVersionGolden : public VersionsGolden {
 protected:
  NewerVersionGolden() : VersionsGolden(version_names().back()) {}

  StoppedRun plain() const { return *std::ranges::find(runs_, "plain", &StoppedRun::name); }
};

TEST_F(NewerVersionGolden, CheckpointsEndAStart) {
  const fs::path folder = run(plain());
  make_newer_manifest(folder / "checkpoints/latest/manifest.json");
  const auto is_refused = AllOf(HasSubstr("manifest.json: is of format 2, by a newer tutti"),
                                HasSubstr("this tutti reads format 1"));
  EXPECT_THAT(message_of<UserError>([&] { resumed(plain(), 1); }), is_refused);
  EXPECT_THAT(message_of<UserError>([&] { inspect_text(folder); }), is_refused);
  EXPECT_THAT(message_of<UserError>([&] { export_text({.path = folder, .to = folder / "w.safetensors"}); }),
              is_refused);
  EXPECT_THAT(message_of<UserError>([&] { replay({.run_dir = folder, .overrides = paths_here(plain())}); }),
              is_refused);
}

TEST_F(NewerVersionGolden, JournalsAreRefused) {
  const fs::path folder = run(plain());
  const std::string journal = recorded_run(folder).path(0);
  std::string bytes = read_text(journal);
  bytes.at(8) = 2;
  write_text(journal, bytes);
  EXPECT_THAT(message_of<RunError>([&] { replay({.run_dir = folder}); }),
              HasSubstr("is a journal of version 2 (at offset 8); this tutti reads version 1"));
}

INSTANTIATE_TEST_SUITE_P(Versions, VersionsGolden, testing::ValuesIn(version_names()),
                         [](const auto& info) { return info.param.substr(info.param.rfind('-') + 1); });

}  // namespace
}  // namespace tutti
