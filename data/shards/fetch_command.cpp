#include "data/shards/fetch_command.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/process/child_process.h"

namespace tutti {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(2);

std::string quoted(const std::string& text) {
  std::string inside = text;
  replace_all(inside, "'", "'\\''");
  return '\'' + inside + '\'';
}

// Names that have a field in them stay as they are.
std::string command_line(const std::string& command, const std::string& source, const std::string& target) {
  const std::string kSource = "{source}", kTarget = "{target}";
  std::string line;
  for (std::size_t at = 0; at < command.size();) {
    const bool is_source = command.compare(at, kSource.size(), kSource) == 0;
    const bool is_field = is_source || command.compare(at, kTarget.size(), kTarget) == 0;
    line += is_source ? quoted(source) : is_field ? quoted(target) : std::string(1, command[at]);
    at += is_field ? kSource.size() : 1;
  }
  return line;
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line))
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  return last;
}

}  // namespace

void fetch_file(const std::string& command, const std::string& source, const std::string& target) {
  const std::string filled = command_line(command, source, target);
  const std::string log = target + ".log";
  const auto child = start_child("{ " + filled + "\n} > /dev/null", log);
  child->end_input();
  while (!child->ended()) std::this_thread::sleep_for(kLookInterval);
  const std::string last = child->succeeded() ? "" : last_line(log);
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  if (!child->succeeded())
    throw OperatingError("'" + filled + "' failed with " + child->outcome() +
                         (last.empty() ? "" : ": " + last));
  if (!std::filesystem::is_regular_file(target, ignored))
    throw OperatingError("'" + filled + "' ended well, and has not made its {target}");
}

}  // namespace tutti
