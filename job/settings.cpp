#include "job/settings.h"

#include "runtime/user_errors.h"

namespace tutti {

namespace {

// What cuts a batch by ranks, or by what memory a rank has, gives other bits on other numbers of ranks.
void require_elastic(const RunSettings& settings, const Setting& recipe) {
  const auto& elastic = settings.reproducibility.mode;
  if (!settings.reproducibility.is_elastic()) return;
  const auto refuse = [&elastic](bool is_set, const Setting& key, const std::string& why) {
    if (is_set)
      key.fail("contradicts " + elastic.key.path + " = \"elastic\" (" + elastic.key.position.text() +
               "): " + why);
  };
  const Setting& train = recipe.at("train");
  const Setting& size = train.at("device_train_microbatch_size");
  const std::string grain = "each of reproducibility.grains is a microbatch";
  refuse(!size.is_none(), size, grain);
  refuse(!settings.train.accumulation.key.is_none(), settings.train.accumulation.key, grain);
  refuse(settings.train.cuda_graphs, train.at("cuda_graphs"), "a graph needs grains of one size");
  refuse(settings.train.composer, recipe.at("compat").at("composer"), "Composer's numbers depend on ranks");
  const DataSettings& data = settings.train_data;
  refuse(data.sampling == DataSettings::Sampling::kOwn, data.sampling.key, "samples then depend on ranks");
  refuse(data.device_batch_size->has_value(), data.device_batch_size.key,
         "expected batch_size, the samples of all ranks");
  refuse(settings.precision.reduce_dtype.has_value(), recipe.at("precision").at("reduce_dtype"),
         "ranks that sum several grains would round less often than others");
}

}  // namespace

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
  read([&] {
    settings.reproducibility = ReproducibilitySettings::read(recipe.at("reproducibility"));
    require_elastic(settings, recipe);
  });
  settings.device = DeviceSettings::kind().read(recipe.at("device"));
  settings.journal = JournalSettings::kind().read(recipe.at("journal"));
  mistakes.throw_all();
  return settings;
}

}  // namespace tutti
