#include "job/sections.h"

namespace tutti {

Kind<RunKeys> RunKeys::kind() {
  return {"",
          "The whole run; these keys stand above the first section.",
          {option("run_name", &RunKeys::run_name, "names the run folder and the logs"),
           Key{"seed", KeyType::kInteger, "none", "seed of all random numbers; from the clock when absent"}
               .at_least(0),
           Key{"stages", KeyType::kAny, "none",
               "[[stages]]: trainings one after the other, a table each with the keys that change"},
           Key{"stage", KeyType::kInteger, "none",
               "the stage that a command takes which takes one: --set stage=2"}
               .at_least(1)}};
}

Kind<DeviceSettings> DeviceSettings::kind() {
  using Settings = DeviceSettings;
  return {"device",
          "What computes.",
          {option("threads", &Settings::threads, "CPU threads of a rank; another number gives other bits")
               .at_least(1)
               .less_than(1025),
           option("tf32", &Settings::tf32,
                  "float32 products and convolutions on GPUs may use TF32: faster, less precise"),
           option("memory_budget_mb", &Settings::memory_budget_mb,
                  "MB of tensors with which a rank runs out of memory; a list: one a rank")
               .more_than(0)}};
}

int64_t DeviceSettings::memory_budget(int rank) const {
  constexpr double kBytesPerMb = 1e6;
  const std::vector<double>& budgets = memory_budget_mb->values;
  if (budgets.empty()) return 0;
  return static_cast<int64_t>((budgets.size() == 1 ? budgets[0] : budgets.at(rank)) * kBytesPerMb);
}

Catalog device_catalog() {
  Catalog catalog = section_catalog<DeviceSettings>();
  catalog.noun = "device";
  catalog.entries = {{"auto", "A GPU for each rank if this machine and this build have GPUs, else the CPU."},
                     {"cpu", "The CPU."},
                     {"gpu", "A GPU for each rank: NVIDIA's, by CUDA."},
                     {"cuda", "The same as gpu."},
                     {"test", "The device of tutti's own tests, slow and strict, in a build with tests."}};
  catalog.default_kind = "auto";
  return catalog;
}

Kind<JournalSettings> JournalSettings::kind() {
  using enum JournalLevel;
  return {"journal",
          "What every rank writes down, beside the checkpoints: for replay, for a timeline, and for after a "
          "crash.",
          {option("level", &JournalSettings::level,
                  "control: every message and what the outside answered; full: also hashes of batches, "
                  "losses, gradients and weights",
                  {{"off", kOff}, {"control", kControl}, {"full", kFull}}),
           option("keep", &JournalSettings::keep,
                  "newest starts whose journals stay, this one among them; all when absent")
               .may_be_absent()
               .at_least(1)}};
}

Kind<PluginSettings> PluginSettings::kind() {
  return {"plugins",
          "A shared library of your own, which brings what the recipe calls by kind = \"plugin\". "
          "`tutti check` opens it too, and so runs its code: to check a recipe is to trust its library.",
          {option("library", &PluginSettings::library, "the library; examples/cpp/plugin.cpp is one")
               .as(KeyType::kPath)}};
}

}  // namespace tutti
