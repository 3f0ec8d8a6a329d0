#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/make_dataset.h"
#include "job/checkpoint_options.h"
#include "job/plugin_library.h"
#include "job/task.h"
#include "recipe/setting.h"
#include "training/engine/engine.h"
#include "training/evaluation/evaluator.h"
#include "training/trainee.h"

namespace tutti {

// What listens to the events of a rank: its own, since ranks may share a process.
using Listeners = std::function<Engine::Options(int rank)>;

// What a program brings along for what its recipe calls kind = "program", and to listen to the training.
struct UserComponents {
  ModelFactory make_model;                 // empty: the recipe's
  std::map<std::string, DatasetPtr> data;  // "train", or an evaluator's label; else the recipe's
  Listeners listeners;                     // may be empty
  std::vector<Task> tasks;                 // after the training
};

// A run as the recipe and the command line define it, before anything is built. The same on every rank.
struct Job {
  Setting recipe;  // resolved
  std::string recipe_text;
  int world = 1;
  uint64_t seed = 0;
  std::string nonce;  // of this start
  std::string run_dir;
  std::string checkpoints;  // folder
  std::string resume;       // as the command line says: "", "auto", or a path
  StartFrom from;
  PluginLibraryPtr plugin;  // may be null
  DatasetPtr train;         // where each rank has its own, the first one's of this process
  PerRankData per_rank_train;
  std::vector<Evaluator> evaluators;  // labels differ
  ModelFactory make_model = tutti::make_model;
  StepObserver before_step;  // may be empty
  Listeners listeners;       // of a rank; may be empty
  std::vector<Task> tasks;   // after the training
  int64_t global_batch = 0;

  Sampler train_sampler(int rank) const;
  Sampler eval_sampler(const Evaluator& evaluator, int rank) const;
  const DatasetPtr& train_of(int rank) const { return per_rank_train.of(rank, train); }
  int64_t train_samples() const {
    return per_rank_train.samples_of_all(world, train);
  }                                                               // of an epoch, all ranks
  SampleSpec spec() const { return per_rank_train.spec(train); }  // of what is trained on
  uint64_t data_digest() const { return per_rank_train.empty() ? train->digest() : per_rank_train.digest; }

  int64_t memory_budget(int rank) const;  // bytes; 0 = none
};

// What the command line adds to a recipe.
struct JobOptions {
  int world = 1;
  std::string run_dir;      // "" = runs/<run_name>
  std::string resume;       // overrides the recipe's
  uint64_t fresh_seed = 0;  // where the recipe names none; equal on all ranks
  std::string nonce;
  bool makes_folders = true;  // the run's and the checkpoints'
  UserComponents components = {};

  // The one rank of this process, where others have theirs, and how they tell each other what they have: a
  // text of each, by rank. Else all ranks are in this process.
  int rank = -1;
  std::function<std::vector<std::string>(const std::string& mine)> tell_all = {};
  std::vector<std::string> hosts = {};  // by rank; those that are not named are this machine
};

// Opens the data and checks that batches fit the ranks, that the model can take the data, and that evaluation
// is on samples of the same kind; then makes the run's folders. Throws UserError.
Job make_job(Setting recipe, const JobOptions& options);

// What a process does before it touches a tensor: the meter counts from here on, and kernels use the recipe's
// number of threads and its deterministic_mode.
void begin_process(const Setting& recipe);

// "global batch 96 = 2 ranks x 48 = 2 ranks x 2 microbatches x 24"
std::string batch_identity(const Job& job);

}  // namespace tutti
