#include "training/loggers/factory.h"

#include "recipe/command_keys.h"
#include "recipe/placeholders.h"
#include "training/loggers/command_logger.h"
#include "training/loggers/console_logger.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/tensorboard_logger.h"
#include "training/settings.h"

namespace tutti {
namespace {

std::FILE* stream(const std::string& name, const LoggerSeams& seams) {
  return name == "stdout" ? seams.out : seams.err;
}

std::function<void(const std::string&)> warn_to(const LoggerSeams& seams) {
  return [&log = seams.log](const std::string& what) { log.warning(what); };
}

void check_logger(const Setting& section) {
  if (section.at("kind").text() == "mlflow") check_tracking_uri(section.at("tracking_uri"));
  const auto file = LoggerKinds::written(section);
  if (!file) return;
  const Setting& named = section.at(file->key);
  require_placeholders(named, {"run_name", "rank"});
  if (file->by_rank && file->path.find("{rank}") == std::string::npos)
    named.fail("expected {rank} in the name: every rank writes a file (rank_zero_only = false)");
  if (section.at("kind").text() == "wandb" && file->path.starts_with('/'))  // a resumed run looks for its id
    named.fail("expected a folder in the run's folder; `wandb sync` takes folders of any place");
}

}  // namespace

DestinationPtr ConsoleLoggerOptions::make(const Setting&, const LoggerSeams& seams) const {
  return std::make_shared<ConsoleLogger>(log_interval, tutti::stream(stream, seams), log_traces,
                                         warn_to(seams));
}

DestinationPtr FileLoggerOptions::make(const Setting&, const LoggerSeams& seams) const {
  return std::make_shared<FileLogger>(seams.disk, *this, log_traces, warn_to(seams));
}

DestinationPtr CsvLoggerOptions::make(const Setting&, const LoggerSeams& seams) const {
  return std::make_shared<CsvLogger>(seams.disk, *this, warn_to(seams));
}

DestinationPtr JsonlLoggerOptions::make(const Setting&, const LoggerSeams& seams) const {
  return std::make_shared<JsonlLogger>(seams.disk, *this, warn_to(seams));
}

DestinationPtr TensorboardLoggerOptions::make(const Setting&, const LoggerSeams& seams) const {
  return std::make_shared<TensorboardLogger>(seams.disk, seams.clock, *this, warn_to(seams));
}

DestinationPtr CommandLoggerOptions::make(const Setting& section, const LoggerSeams& seams) const {
  if (seams.start_child) require_whole_command(section.at("command"));
  return std::make_shared<CommandLogger>(command, rank_zero_only, seams.start_child, warn_to(seams));
}

Destinations make_loggers(const Setting& recipe, const LoggerSeams& seams) {
  Destinations destinations;
  const TrainSettings train = TrainSettings::kind().read(recipe.at("train"));
  if (train.log_to_console)
    destinations.push_back(std::make_shared<ConsoleLogger>(
        train.console_log_interval, stream(train.console_stream, seams), train.log_traces, warn_to(seams)));
  if (!recipe.has("loggers")) return destinations;
  for (const Setting& section : recipe.at("loggers").array()) {
    if (auto made = LoggerKinds::made<DestinationPtr>(section, seams))
      destinations.push_back(std::move(made));
  }
  return destinations;
}

void check_loggers(const Setting& recipe) {
  if (!recipe.has("loggers")) return;
  const Setting* mlflow = nullptr;
  for (const Setting& section : recipe.at("loggers").array()) {
    check_logger(section);
    if (section.at("kind").text() != "mlflow") continue;
    if (mlflow)
      section.at("kind").fail("expected one such logger; " + mlflow->position.text() + " has the other");
    mlflow = &section;
  }
}

}  // namespace tutti
