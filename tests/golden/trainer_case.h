#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/golden/golden_file.h"
#include "tests/golden/golden_recipe.h"
#include "tests/runtime/scratch.h"

namespace tutti {

inline constexpr const char* kTrainerFile = "trainer.h5";

// Why a test that needs a Python beside libtorch, with torch, numpy and h5py, is skipped.
inline constexpr const char* kNoPython = "no Python beside libtorch has torch, numpy and h5py";

// A case of trainer.h5 as files that the commands take: data, weights and a recipe.
class CaseFiles {
 public:
  CaseFiles(const GoldenCase& c, Manner manner);

  std::string recipe() const { return folder_.path("recipe.toml"); }
  std::string run(const std::string& name) const { return folder_.path(name); }

 private:
  Scratch folder_;
  std::string data_ = folder_.path("data.h5");
  std::string weights_ = folder_.path("weights.safetensors");
};

// Expects (gtest) what the case has under "out" of the run in the folder `run`.
void expect_golden(const GoldenCase& c, const std::string& run);

// What the run in the folder has measured, by the names under "out": "loss", "eval_accuracy".
std::map<std::string, std::vector<double>> series_of(const std::string& run);

// True if it trains with algorithms that are not built yet.
bool waits_for_algorithms(const GoldenCase& c);

// Trains the case in this process, with its own draws, and expects its values, or its error.
void train_here(const GoldenCase& c, Manner manner, int ranks);

// Trains a case without draws, then again from a checkpoint of the middle, and expects the same numbers, bit
// for bit.
void resume_here(const GoldenCase& c, Manner manner);

}  // namespace tutti
