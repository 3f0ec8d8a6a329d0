#include "training/loggers/factory.h"

#include <map>

#include "recipe/placeholders.h"
#include "training/loggers/command_logger.h"
#include "training/loggers/console_logger.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/tensorboard_logger.h"

namespace tutti {
namespace {

using DestinationPtr = std::shared_ptr<LoggerDestination>;
using LoggerMaker = DestinationPtr (*)(const Setting& section, const LoggerSeams& seams);

std::FILE* stream(const Setting& named, const LoggerSeams& seams) {
  return named.text() == "stdout" ? seams.out : seams.err;
}

std::function<void(const std::string&)> warn_to(const LoggerSeams& seams) {
  return [&log = seams.log](const std::string& what) { log.warning(what); };
}

DestinationPtr console(const Setting& section, const LoggerSeams& seams) {
  return std::make_shared<ConsoleLogger>(Time::parse(section.at("log_interval")),
                                         stream(section.at("stream"), seams),
                                         section.at("log_traces").boolean(), warn_to(seams));
}

LoggedFile file_of(const Setting& section) {
  return {section.at("filename").text(), section.at("flush_interval").integer(),
          section.at("rank_zero_only").boolean()};
}

DestinationPtr file(const Setting& section, const LoggerSeams& seams) {
  return std::make_shared<FileLogger>(seams.disk, file_of(section), section.at("log_traces").boolean(),
                                      warn_to(seams));
}

template <class Kind>
DestinationPtr lines(const Setting& section, const LoggerSeams& seams) {
  return std::make_shared<Kind>(seams.disk, file_of(section), warn_to(seams));
}

DestinationPtr tensorboard(const Setting& section, const LoggerSeams& seams) {
  return std::make_shared<TensorboardLogger>(
      seams.disk, seams.clock,
      TensorboardLogger::Options{section.at("log_dir").text(), section.at("flush_interval").integer(),
                                 section.at("rank_zero_only").boolean()},
      warn_to(seams));
}

DestinationPtr command(const Setting& section, const LoggerSeams& seams) {
  return std::make_shared<CommandLogger>(section.at("command").text(), section.at("rank_zero_only").boolean(),
                                         seams.start_child, warn_to(seams));
}

const std::map<std::string, LoggerMaker>& logger_makers() {
  static const std::map<std::string, LoggerMaker> all = {
      {"command", command}, {"console", console},          {"csv", lines<CsvLogger>},
      {"file", file},       {"jsonl", lines<JsonlLogger>}, {"tensorboard", tensorboard},
  };
  return all;
}

// The key with the file name; null for loggers without a file.
const Setting* named_file(const Setting& section) {
  for (const char* key : {"filename", "log_dir"})
    if (const Setting* found = section.find(key)) return found;
  return nullptr;
}

void check_logger(const Setting& section) {
  const Setting* named = named_file(section);
  if (named) require_placeholders(*named, {"run_name", "rank"});
  if (named && !section.at("rank_zero_only").boolean() && named->text().find("{rank}") == std::string::npos)
    named->fail("expected {rank} in the name: every rank writes a file (rank_zero_only = false)");
}

}  // namespace

Destinations make_loggers(const Setting& recipe, const LoggerSeams& seams) {
  Destinations destinations;
  const Setting& train = recipe.at("train");
  if (train.at("log_to_console").boolean())
    destinations.push_back(std::make_shared<ConsoleLogger>(Time::parse(train.at("console_log_interval")),
                                                           stream(train.at("console_stream"), seams),
                                                           train.at("log_traces").boolean(), warn_to(seams)));
  if (!recipe.has("loggers")) return destinations;
  for (const Setting& section : recipe.at("loggers").array()) {
    const auto maker = logger_makers().find(section.at("kind").text());
    if (maker != logger_makers().end()) destinations.push_back(maker->second(section, seams));
  }
  return destinations;
}

void check_loggers(const Setting& recipe) {
  if (!recipe.has("loggers")) return;
  for (const Setting& section : recipe.at("loggers").array()) check_logger(section);
}

}  // namespace tutti
