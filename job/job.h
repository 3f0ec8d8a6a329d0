#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collectives/device_library.h"
#include "collectives/mesh.h"
#include "data/dataset.h"
#include "data/readers/make_dataset.h"
#include "job/plugin_library.h"
#include "job/settings.h"
#include "job/task.h"
#include "recipe/setting.h"
#include "training/engine/engine.h"
#include "training/evaluation/evaluator.h"
#include "training/state.h"
#include "training/trainee.h"

namespace tutti {

// Makes the listeners of a rank. Each rank needs its own, since ranks may share a process.
using Listeners = std::function<Engine::Options(int rank)>;

// The components of a program: for sections with kind = "program" in its recipe, and listeners.
struct UserComponents {
  ModelFactory make_model;                 // empty: the recipe's
  std::map<std::string, DatasetPtr> data;  // by "train" or an evaluator's label; other data are the recipe's
  Listeners listeners;                     // may be empty
  std::vector<Task> tasks;                 // after the training
  int64_t tasks_done = 0;                  // tasks that earlier runs of this program did
};

// A run, as defined by the recipe and the command line, before building. The same on every rank.
struct Job {
  Setting recipe;  // resolved
  std::string recipe_text;
  RunSettings settings;  // of the recipe
  int world = 1;
  uint64_t seed = 0;
  std::string nonce;  // of this attempt
  std::string run_dir;
  std::string checkpoints;  // folder
  std::string resume;       // of the command line: "", "auto", or a path
  StartFrom from;
  PluginLibraryPtr plugin;                       // may be null
  std::shared_ptr<const DeviceLibrary> devices;  // of [device]; null: the CPU
  bool cpu_stands_in = false;                    // Device::stands_in
  DatasetPtr train;                              // with per-rank datasets: of the first rank of this process
  PerRankData per_rank_train;
  std::vector<Evaluator> evaluators;  // labels differ
  ModelFactory make_model = tutti::make_model;
  std::function<std::shared_ptr<Algorithm>(const Setting& section)> make_algorithm;  // of the recipe
  StepObserver before_step;                                                          // may be empty
  Listeners listeners;      // of a rank; may be empty
  std::vector<Task> tasks;  // after the training
  int64_t tasks_done = 0;   // tasks that earlier runs of this program did
  int64_t global_batch = 0;
  uint64_t data_digest = 0;  // of the training data of all ranks
  std::string fitted;        // Dataset::fitted of the training data, or as JobOptions says

  Sampler train_sampler(const RankTopology& place) const;
  Sampler eval_sampler(const Evaluator& evaluator, const RankTopology& place) const;
  Sampler train_sampler(int rank) const { return train_sampler(topology(rank)); }
  Sampler eval_sampler(const Evaluator& evaluator, int rank) const {
    return eval_sampler(evaluator, topology(rank));
  }
  const DatasetPtr& train_of(int rank) const { return per_rank_train.of(rank, train); }
  Mesh mesh() const;  // of all ranks
  RankTopology topology(int rank) const;
  // Of a rank whose memory the meter counts under this slot, which is its number among the ranks of this
  // process.
  Device device(int memory_slot) const;
  int data_world() const { return topology(0).data_world; }
  // Samples of an epoch, all ranks.
  int64_t train_samples() const { return per_rank_train.samples_of_all(data_world(), train); }
  SampleSpec spec() const { return per_rank_train.spec(train); }  // of the training data
  // Sets all fields that need no model or device.
  void describe_to(State& state, const RankTopology& place) const;
  std::string model_name() const;  // its kind, or its name in the plugin
  std::vector<std::string> replaced()
      const;               // on samples that could not be read so far; a line each, or none
  void scan_data() const;  // reads all data; throws UserError with the path's key
};

// Installs the memory meter and sets the threads, deterministic_mode and tf32 of kernels. Called before a
// process uses any tensor.
void begin_process(const RunSettings& settings);

// "global batch 96 = 2 ranks x 48 = 2 ranks x 2 microbatches x 24"
std::string batch_identity(const Job& job);

}  // namespace tutti
