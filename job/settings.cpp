#include "job/settings.h"

#include "runtime/user_errors.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

int64_t bytes_of(const Setting& mb) { return static_cast<int64_t>(mb.number() * kBytesPerMb); }

JournalLevel level_of(const std::string& name) {
  if (name == "off") return JournalLevel::kOff;
  return name == "control" ? JournalLevel::kControl : JournalLevel::kFull;
}

}  // namespace

DeviceSettings DeviceSettings::read(const Setting& section) {
  DeviceSettings settings{static_cast<int>(section.at("threads").integer()), section.at("tf32").boolean()};
  const Setting& budget = section.at("memory_budget_mb");
  if (budget.is_array())
    for (const Setting& bytes : budget.array()) settings.memory_budget_bytes.push_back(bytes_of(bytes));
  else if (!budget.is_none())
    settings.memory_budget_bytes = {bytes_of(budget)};
  return settings;
}

int64_t DeviceSettings::memory_budget(int rank) const {
  if (memory_budget_bytes.empty()) return 0;
  return memory_budget_bytes.size() == 1 ? memory_budget_bytes[0] : memory_budget_bytes.at(rank);
}

JournalSettings JournalSettings::read(const Setting& section) {
  return {level_of(section.at("level").text()),
          section.has("keep") ? static_cast<int>(section.at("keep").integer()) : -1};
}

RunSettings RunSettings::read(const Setting& recipe) {
  RunSettings settings;
  settings.run_name = recipe.at("run_name").text();
  MistakeCollector mistakes;
  const auto read = [&](const auto& work) { return mistakes.collect(work); };
  const auto read_checkpoint = [&] {
    settings.checkpoint = CheckpointSettings::read(recipe, settings.train);
  };
  if (read([&] { settings.train = TrainSettings::read(recipe); })) read(read_checkpoint);
  read([&] { settings.train_data = DataSettings::read(recipe.at("data").at("train")); });
  read([&] { settings.precision = Precision::read(recipe); });
  read([&] { settings.collectives = CollectiveSettings::read(recipe.at("collectives")); });
  read([&] { settings.sharding = ShardingSettings::read(recipe.at("sharding")); });
  settings.device = DeviceSettings::read(recipe.at("device"));
  settings.journal = JournalSettings::read(recipe.at("journal"));
  mistakes.throw_all();
  return settings;
}

}  // namespace tutti
