#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/sweep/search_space.h"
#include "recipe/setting.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"

namespace tutti {

// A run of a sweep.
struct Trial {
  std::string name;              // of its folder in the sweep's
  std::vector<std::string> set;  // "optimizer.lr=0.1" each, for --set
  bool operator==(const Trial&) const = default;
};

// A finished rung of successive halving.
struct Rung {
  std::string stop_at;            // train.stop_at
  std::vector<std::string> kept;  // names of the trials that train on, the best first
};

// A sweep as its user asked for it, and how far the halving is: sweep.toml in the sweep's folder.
struct SweepPlan {
  static constexpr int kMostRanks = 1024, kMostEta = 100;

  RecipeFile recipe;  // the path is absolute
  SearchSpace space;
  int ranks = 1;  // of a trial
  bool halves = false;
  std::string metric;  // that ranks trials; "" = the headline
  int eta = 2;         // a rung keeps one of so many trials
  std::vector<Trial> trials;
  std::vector<Rung> rungs;

  // The recipe of a trial, resolved. Throws UserError.
  Setting resolved(const Trial& trial) const;
  // The resolved recipe before any trial's changes.
  Setting base() const;
  // Fills `trials` by `space`, with whole names of keys. Throws UserError if a trial's recipe is wrong.
  void plan_trials();
  // The fractions of the training at which trials are compared: "0.25dur", "0.5dur"; none without halving.
  std::vector<std::string> rungs_ahead() const;

  // Replaces sweep.toml; with all of its text or none.
  void write(Disk& disk, const std::string& folder) const;
  // Throws UserError if the folder has no sweep.toml, or a damaged file.
  static SweepPlan read(const std::string& folder);
  // Throws UserError that names the first option or key in which another plan for the folder differs.
  void require_same(const SweepPlan& other, const std::string& folder) const;
  // Throws UserError if options are given that a sweep under way has already.
  void require_only_folder() const;
};

}  // namespace tutti
