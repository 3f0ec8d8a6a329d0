#include "training/loggers/trainer_log.h"

#include "recipe/command_keys.h"

namespace tutti {
namespace {

Hyperparameter value_of(const Setting& setting) {
  if (const auto* flag = std::get_if<bool>(&setting.value)) return *flag;
  if (setting.is_integer()) return setting.integer();
  if (setting.is_text()) return setting.text();
  if (const auto* number = std::get_if<double>(&setting.value)) return *number;
  return setting.toml();
}

void add_leaves(const Setting& setting, const std::string& path, LoggedHyperparameters& leaves) {
  if (setting.is_none()) return;
  if (!setting.is_table()) {
    leaves.emplace_back(path, value_of(setting));
    return;
  }
  for (const auto& [key, member] : setting.table())
    add_leaves(member, path.empty() ? key : path + "." + key, leaves);
}

// Arrays of tables ([[callbacks]]) are numbered from 0: "callbacks.0.kind".
void add_repeated(const Setting& setting, const std::string& path, LoggedHyperparameters& leaves) {
  for (std::size_t i = 0; i < setting.array().size(); ++i)
    add_leaves(setting.array()[i], path + "." + std::to_string(i), leaves);
}

bool is_repeated(const Setting& setting) {
  return setting.is_array() && !setting.array().empty() && setting.array().front().is_table();
}

}  // namespace

void TrainerLog::start(const Setting* recipe) {
  if (!log_.has_destinations()) return;
  LoggedHyperparameters all = {{"rank_zero_seed", static_cast<int64_t>(state_.seed)}};
  if (recipe) {
    const Setting shown = with_command_names(*recipe);
    for (const auto& [key, section] : shown.table())
      if (is_repeated(section))
        add_repeated(section, key, all);
      else
        add_leaves(section, key, all);
  }
  log_.log_hyperparameters(all);
}

void TrainerLog::epoch_start() {
  if (!log_.has_destinations()) return;
  log_.log_trainer_metrics({{"time/epoch", static_cast<double>(state_.timestamp.epoch)}});
}

void TrainerLog::batch_start(bool has_tokens) { log_times(has_tokens, /*epoch=*/false); }

void TrainerLog::fit_end() { log_times(state_.timestamp.token > 0, /*epoch=*/true); }

void TrainerLog::log_times(bool has_tokens, bool epoch) {
  if (!log_.has_destinations()) return;
  const Timestamp& time = state_.timestamp;
  LoggedMetrics all;
  const auto add = [&all](const char* name, int64_t value) { all.emplace_back(name, value); };
  if (epoch) add("time/epoch", time.epoch);
  add("time/batch", time.batch);
  add("time/sample", time.sample);
  add("time/batch_in_epoch", time.batch_in_epoch);
  add("time/sample_in_epoch", time.sample_in_epoch);
  if (has_tokens) {
    add("time/token", time.token);
    add("time/token_in_epoch", time.token_in_epoch);
  }
  log_.log_trainer_metrics(all);
}

void TrainerLog::epoch_trained() {
  const LoggedMetrics metrics = train_metrics();
  if (!metrics.empty()) log_.log_trainer_metrics(metrics);
}

LoggedMetrics TrainerLog::train_metrics() const {
  static const std::string kTrain = "train/", kParts = "train/loss/";
  LoggedMetrics metrics;
  for (const auto& [name, value] : state_.metric_values)
    if (name.starts_with(kParts))  // beside loss/train/total, as Composer's losses with names
      metrics.emplace_back("loss/train/" + name.substr(kParts.size()), value);
    else if (name.starts_with(kTrain))
      metrics.emplace_back("metrics/" + name, value);
  return metrics;
}

}  // namespace tutti
