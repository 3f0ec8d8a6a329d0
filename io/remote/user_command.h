#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/clock.h"

namespace tutti {

// A command line of the user for sh, in which fields such as {source} stand for names, as words that sh does
// not look into.
struct UserCommand {
  std::string line;
  std::vector<std::pair<std::string, std::string>> fields;  // and their names
  std::string task;                                         // "fetches s3://bucket/shard"; in messages
  std::string log;                   // gets the standard error of a command that fails; secrets may be in it
  std::string output = "/dev/null";  // gets the standard output
  bool gives_way = false;            // to the training, where processors are few
  Nanoseconds timeout{};             // 0 = none
  std::function<void()> while_waiting = {};  // may throw, which ends the command
};

// Throws UserError unless the command line has all fields, outside of quotes, in which sh would take apart
// the inserted names. The name of a command (recipe/command_keys.h) has no fields.
void require_fields(const std::string& command, const std::vector<std::string>& fields);

// Runs the command, and waits for its end. Throws OperatingError with the command's name, the task, the exit
// code and the log if the command fails.
void run(const UserCommand& command);

}  // namespace tutti
