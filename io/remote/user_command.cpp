#include "io/remote/user_command.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "recipe/command_keys.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/process/child_process.h"

namespace tutti {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(2);
constexpr int kLooksAtKilled = 500;  // the process may hang in a file system

std::string quoted(const std::string& text) {
  std::string inside = text;
  replace_all(inside, "'", "'\\''");
  return '\'' + inside + '\'';
}

// Names are the arguments $1, $2, ..., so that no name is part of a program.
std::string command_line(const UserCommand& command) {
  std::string line = command.line, names = "set --";
  int count = 0;
  for (const auto& [field, name] : command.fields) {
    replace_all(line, field, "\"$" + std::to_string(++count) + '"');
    names += ' ' + quoted(name);
  }
  const std::string priority = command.gives_way ? "renice -n 19 -p $$ > /dev/null 2>&1\n" : "";
  return names + '\n' + priority + "exec > " + quoted(command.output) + '\n' + line;
}

// The quote that is open before this place, or 0.
char open_quote(const std::string& command, std::size_t place) {
  char quote = 0;
  for (std::size_t at = 0; at < place; ++at) {
    const char c = command[at];
    if (c == '\\' && quote != '\'')
      ++at;
    else if (c == quote)
      quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
  }
  return quote;
}

void wait_for(ChildProcess& child, const UserCommand& command) {
  const TimePoint start = std::chrono::steady_clock::now();
  while (!child.ended()) try {
      if (command.while_waiting) command.while_waiting();
      if (command.timeout > Nanoseconds(0) && std::chrono::steady_clock::now() - start > command.timeout)
        throw OperatingError(command_name(command.line) + ", which " + command.task + ", was ended after " +
                             std::to_string(command.timeout / std::chrono::seconds(1)) + " s");
      std::this_thread::sleep_for(kLookInterval);
    } catch (...) {
      child.kill();
      for (int looks = 0; looks < kLooksAtKilled && !child.ended(); ++looks)
        std::this_thread::sleep_for(kLookInterval);
      throw;
    }
}

}  // namespace

void require_fields(const std::string& command, const std::vector<std::string>& fields) {
  if (is_command_name(command)) return;
  std::string all;
  for (const std::string& field : fields) all += (all.empty() ? "" : " and ") + field;
  for (const std::string& field : fields) {
    std::size_t at = command.find(field);
    if (at == std::string::npos)
      throw UserError("expected a command line with " + all + "; there is no " + field);
    for (; at != std::string::npos; at = command.find(field, at + 1))
      if (open_quote(command, at) != 0 || (at > 0 && command[at - 1] == '\\'))
        throw UserError(field +
                        " stands in quotes; tutti gives each name as one word, so leave the quotes out");
  }
}

void run(const UserCommand& command) {
  std::error_code ignored;
  std::filesystem::remove(command.log, ignored);
  const auto child = start_child(command_line(command), command.log);
  child->end_input();
  wait_for(*child, command);
  const bool printed = !child->succeeded() && !std::filesystem::is_empty(command.log, ignored);
  if (!printed) std::filesystem::remove(command.log, ignored);
  if (!child->succeeded())
    throw OperatingError(command_name(command.line) + ", which " + command.task + ", failed with " +
                         child->outcome() + (printed ? "; what it printed is in " + command.log : ""));
}

}  // namespace tutti
