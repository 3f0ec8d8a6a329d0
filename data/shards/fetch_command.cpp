#include "data/shards/fetch_command.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "recipe/command_keys.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/child_process.h"
#include "runtime/process/process_watch.h"

namespace tutti {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(2);
constexpr const char *kSourceField = "{source}", *kTargetField = "{target}";

std::string quoted(const std::string& text) {
  std::string inside = text;
  replace_all(inside, "'", "'\\''");
  return '\'' + inside + '\'';
}

// The files are the arguments $1 and $2, so that no name is part of a program.
std::string command_line(std::string command, const std::string& source, const std::string& target) {
  replace_all(command, kSourceField, "\"$1\"");
  replace_all(command, kTargetField, "\"$2\"");
  return "set -- " + quoted(source) + ' ' + quoted(target) + "\nexec > /dev/null\n" + command;
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

void wait_for(ChildProcess& child) {
  while (!child.ended()) try {
      require_no_held_stop("a file was fetched");
      std::this_thread::sleep_for(kLookInterval);
    } catch (const OperatingError&) {
      child.kill();
      throw;
    }
}

}  // namespace

void require_fetch_command(const std::string& command) {
  if (is_command_name(command)) return;
  for (const std::string field : {kSourceField, kTargetField}) {
    std::size_t at = command.find(field);
    if (at == std::string::npos)
      throw UserError("expected a command line with {source} and {target}; there is no " + field);
    for (; at != std::string::npos; at = command.find(field, at + 1))
      if (open_quote(command, at) != 0 || (at > 0 && command[at - 1] == '\\'))
        throw UserError(field +
                        " stands in quotes; tutti gives each name as one word, so leave the quotes out");
  }
}

void fetch_file(const std::string& command, const std::string& source, const std::string& target,
                const std::string& log) {
  if (is_command_name(command))
    throw OperatingError(on_one_line(source) +
                         " must be fetched, and of the command that fetches, which may have secrets in "
                         "it, a run keeps its first word; give the whole, like --set data.train.fetch='...'");
  const std::string did = command_name(command) + ", which fetches " + on_one_line(source) + ',';
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  const auto child = start_child(command_line(command, source, target), log);
  child->end_input();
  wait_for(*child);
  const bool printed = !child->succeeded() && !std::filesystem::is_empty(log, ignored);
  if (!printed) std::filesystem::remove(log, ignored);
  if (!child->succeeded())
    throw OperatingError(did + " failed with " + child->outcome() +
                         (printed ? "; what it printed is in " + log : ""));
  if (!std::filesystem::is_regular_file(target, ignored))
    throw OperatingError(did + " ended well, and has not made its {target}");
}

}  // namespace tutti
