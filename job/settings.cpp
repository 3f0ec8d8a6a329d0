#include "job/settings.h"

#include "runtime/user_errors.h"

namespace tutti {

RunSettings RunSettings::read(const Setting& recipe) {
  RunSettings settings;
  settings.run_name = RunKeys::kind().read(recipe).run_name;
  MistakeCollector mistakes;
  const auto read = [&](const auto& work) { return mistakes.collect(work); };
  const auto read_checkpoint = [&] {
    settings.checkpoint = CheckpointSettings::read(recipe, settings.train);
  };
  if (read([&] { settings.train = TrainSettings::read(recipe); })) read(read_checkpoint);
  read([&] { settings.train_data = DataSettings::read(recipe.at("data").at("train")); });
  read([&] { settings.precision = Precision::read(recipe); });
  read([&] { settings.collectives = CollectiveSettings::kind().read(recipe.at("collectives")); });
  read([&] { settings.sharding = ShardingSettings::read(recipe.at("sharding")); });
  settings.device = DeviceSettings::kind().read(recipe.at("device"));
  settings.journal = JournalSettings::kind().read(recipe.at("journal"));
  mistakes.throw_all();
  return settings;
}

}  // namespace tutti
